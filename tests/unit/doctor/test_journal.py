"""What is said of a journal; looking at it makes nothing."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.doctor.finding import Notes
from airflow_provider_streams.doctor.journal import judge
from airflow_provider_streams.errors import JournalError, databases
from airflow_provider_streams.journal import inspection
from airflow_provider_streams.journal.inspection import Inspection, Writer, inspect_journal
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.testing.plans import plan_of

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)


def judged(seen, source=None, reader=None):
    notes = Notes("journal")
    judge(notes, seen, source, reader)
    return {one.check: one for one in notes.findings}


def test_a_database_without_a_journal_is_not_given_one(tmp_path):
    seen = inspect_journal(f"sqlite:///{tmp_path / 'journal.db'}", NOW)
    assert (seen.state, list(tmp_path.iterdir())) == ("absent", [])
    assert judged(seen)["migration"].level == "skipped"


def test_a_journal_of_this_release_is_ready(tmp_path):
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    Journal.open(url).close()
    seen = inspect_journal(url, NOW)
    assert (seen.state, seen.writers) == ("ready", ())
    found = judged(seen)
    assert {one.level for one in found.values()} == {"ok"}
    assert "this machine alone" in found["database"].says


def test_a_reader_whose_runs_all_failed_is_no_other_writer(tmp_path):
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    window, began = Window(NOW, NOW + timedelta(hours=1)), datetime.now(UTC) - timedelta(minutes=1)
    with Journal.open(url) as journal:
        task = TaskInstanceKey("dag", "r", "read", 1)
        journal.fail_window("fake:f:n", "broken", window, task, error_type="E", message="m", lost=False)
        journal.pin("fake:f:n", plan := plan_of([], reader="works", window=window))
        journal.start_run("fake:f:n", plan, task)
    assert [one.reader for one in inspect_journal(url, began).writers] == ["works"]


def test_a_journal_of_a_newer_release_is_an_error(tmp_path):
    assert judged(Inspection("db", "postgresql", "newer", "0099"))["migration"].level == "error"
    assert judged(Inspection("db", "postgresql", "older", "0000"))["migration"].level == "warning"


def test_a_file_that_cannot_be_made_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(JournalError, match="may not write"):
        inspect_journal(f"sqlite:///{tmp_path / 'journal.db'}", NOW)


def test_a_file_whose_folder_is_missing_is_an_error(tmp_path):
    with pytest.raises(JournalError, match=f"the folder {tmp_path}/deep does not exist"):
        inspect_journal(f"sqlite:///{tmp_path / 'deep' / 'journal.db'}", NOW)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("free", "level"), [(0, "error"), (10**6, "error"), (10**7, "warning"), (10**9, "ok")])
def test_a_full_disk_is_an_error_before_and_after_the_journal_is_made(tmp_path, monkeypatch, free, level):
    monkeypatch.setattr(inspection, "free_bytes", lambda _: free)
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    assert judged(inspect_journal(url, NOW))["free space"].level == level
    Journal.open(url).close()
    found = judged(inspect_journal(url, NOW))
    assert (found["free space"].level, found["database"].level) == (level, "ok")


def test_an_input_output_error_on_a_full_disk_names_the_disk(tmp_path, monkeypatch):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    assert databases.meaning_of(error, str(tmp_path / "journal.db")) is None
    monkeypatch.setattr(databases, "free_bytes", lambda _: 0)
    meaning = databases.meaning_of(error, str(tmp_path / "journal.db"))
    assert (meaning.why, meaning.advice) == ("its disk is full", "Free some space on its disk.")


def test_other_readers_are_named_and_the_own_one_is_not():
    source = FakeSource("numbers")
    ours, other = Writer(source.key, "nightly", NOW, 0), Writer(source.key, "hourly", NOW - timedelta(hours=1), 2)
    seen = Inspection("db", "mysql", "ready", "0001", (ours, other))
    says = judged(seen, source, "nightly")["other writers"].says
    assert "hourly of fake:" in says
    assert "more" not in says
    many = [Writer(source.key, f"r{number}", NOW, 0) for number in range(21)]
    says = judged(Inspection("db", "mysql", "ready", "0001", (ours, *many)), source, "nightly")["other writers"].says
    assert says.startswith("21 other readers ran within 24 hours: r0 of")
    assert says.endswith("; and 18 more")
    assert says.count(" of ") == 3
    says = judged(seen, source, "nightly")["other writers"].says
    assert "2 running" in says
    assert "nightly" not in says
