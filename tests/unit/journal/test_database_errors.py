"""A journal that cannot be written: what fails for good, what may pass, and the next step of each."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import insert

from airflow_provider_streams.errors import JournalError, JournalUnavailable
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.inspection import inspect_journal
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.journal.tables import digest, sources
from tests.unit.read_only import read_only

_NOBODY = 65534
_OPEN = """
import os, sys
from datetime import UTC, datetime
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.inspection import inspect_journal
from airflow_provider_streams.journal.tables import sources
url, user = sys.argv[1], int(sys.argv[2])
if os.getuid() == 0:
    inspect_journal(url, datetime.now(UTC))  # imports what only root may read, if the checkout is root's alone
    os.setuid(user)
for use in (lambda: Database(url).insert_once(sources.delete()), lambda: inspect_journal(url, datetime.now(UTC))):
    try:
        use()
        print("no error")
    except StreamsError as error:
        print(type(error).__name__, error.retryable, error)
"""


def as_nobody(url: str) -> list[str]:
    """What a user sees that writes and inspects a journal: root itself may write everything."""
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, url, str(_NOBODY)], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("refuses", ["file", "folder"])
def test_a_read_only_file_or_folder_fails_for_good_and_is_foreseen(refuses):
    with tempfile.TemporaryDirectory() as name:
        folder, file = Path(name), Path(name) / "journal.db"
        Journal.open(f"sqlite:///{file}").close()
        file.chmod(0o444 if refuses == "file" else 0o666)
        folder.chmod(0o777 if refuses == "file" and os.getuid() == 0 else 0o555)
        try:
            written, inspected = as_nobody(f"sqlite:///{file}")
        finally:
            folder.chmod(0o700)
    place = file if refuses == "file" else folder
    assert written.startswith("JournalError False")
    assert f"this user may not write {'' if refuses == 'file' else 'to '}{place}" in written
    assert written.endswith("or name another one in the connection.")
    assert inspected.startswith("JournalError False")
    assert str(place) in inspected


def test_a_read_only_file_system_fails_for_good_and_is_foreseen(tmp_path):
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    Journal.open(url).close()
    with read_only(tmp_path) as cause:
        with pytest.raises(JournalError, match=f"{cause} {tmp_path}") as written:
            Database(url).insert_once(insert(sources).values(digest=digest("one"), source_key="one"))
        with pytest.raises(JournalError, match=f"{cause} {tmp_path}"):
            inspect_journal(url, datetime.now(UTC))
    assert not written.value.retryable


def test_a_database_that_is_opened_read_only_fails_for_good(tmp_path):
    Journal.open(f"sqlite:///{tmp_path / 'journal.db'}").close()
    database = Database(f"sqlite:///file:{tmp_path / 'journal.db'}?mode=ro&uri=true")
    with pytest.raises(JournalError, match=r"readonly database.*Let this user write") as caught:
        database.insert_once(insert(sources).values(digest=digest("one"), source_key="one"))
    assert not caught.value.retryable


def test_a_full_disk_may_pass_and_says_what_helps(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'journal.db'}")
    database.prepare()
    with (
        pytest.raises(JournalUnavailable, match=r"is full\. Free some space") as caught,
        database.writing() as connection,
    ):
        _insert_beyond_the_limit(connection)
    assert caught.value.retryable


def _insert_beyond_the_limit(connection):
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    connection.execute(insert(sources).values(digest=digest("one"), source_key="one" * 10_000))


def test_a_file_that_can_be_written_is_no_error(tmp_path):
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    Journal.open(url).close()
    assert inspect_journal(url, datetime.now(UTC)).state == "ready"
