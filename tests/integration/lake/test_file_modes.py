"""What a table's users of one group make, they share: files are as open as the umask has it, and no narrower."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.parquet.writer import ParquetWriter
from airflow_provider_streams.lake.process_lock import ProcessLock, is_alive
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from airflow_provider_streams.spark.launch.py_files import executor_archive
from airflow_provider_streams.spark.quarantine.quarantine_files import QuarantineFile
from tests.integration.lake.kept_tables import KeptTable, now, table_in
from tests.integration.lake.landing import SCHEMA, TERMS, hour, land, rows_of
from tests.integration.lake.users import FIRST, IS_ROOT, MAY_READ, SECOND, acting_as, group_folder, umask
from tests.unit.journal.test_database import source
from tests.unit.lake.changes.test_change_writers import Landing, changes
from tests.unit.lake.changes.test_change_writers import hour as change_hour

KINDS = ["parquet", "delta", "iceberg"]
GROUP_MAY_WRITE, OWNER_ALONE = 0o002, 0o077
two_users = pytest.mark.skipif(
    not (IS_ROOT and MAY_READ), reason="only root may act as other users, and these must be able to read the checkout"
)


@pytest.fixture
def folder():
    with group_folder() as made:
        yield made


def unlike(folder: Path, mask: int) -> dict[str, str]:
    """What is not as the umask has it, or in a folder of a group is not the group's."""
    found = {}
    for path in folder.rglob("*"):
        mode, group = path.stat().st_mode & 0o7777, path.stat().st_gid
        wanted = (0o2777 if path.is_dir() else 0o666) & ~mask
        if (mode, group) != (wanted, folder.stat().st_gid):
            found[str(path.relative_to(folder))] = f"{mode:o} of {group}, not {wanted:o}"
    return found


def keep(table: KeptTable, look: Callable[[], None]) -> None:
    """What writers do with a table; `look` is called while files are staged, and at the end."""
    attempt = table.attempt(hour(0), 0, 5)
    look()
    attempt.commit()
    attempt.writer.discard()
    table.land_in_pieces(hour(0), 10, 6, tasks=3)
    table.land(hour(1, hours=2), 20, 2)
    table.land(hour(1), 30, 2, replace_overlaps=True)
    if table.sink.kind == "parquet":
        _with_quarantine(table.sink, look)
    else:
        table.compact()
    table.expire(now())
    look()
    land(table.sink, hour(0), rows_of(0, 3), mark=replace(TERMS.mark, id="b" * 32), set_aside=True)
    look()


def _with_quarantine(sink: Any, look: Callable[[], None]) -> None:
    writer = ParquetWriter(sink, hour(2), TERMS)
    aside = QuarantineFile(str(writer.open_quarantine()), 0)
    aside.write(pa.record_batch({"value": [b"?"]}))
    name = aside.finish()
    writer.open(SCHEMA)
    look()
    writer.commit([], Receipt("plan", (SplitReceipt(0, rows=0, quarantined=1, quarantine_file=name),), 1.0, "complete"))
    writer.discard()


@pytest.mark.parametrize("mask", [GROUP_MAY_WRITE, pytest.param(0o022, marks=pytest.mark.slow), OWNER_ALONE])
@pytest.mark.parametrize("kind", KINDS)
def test_files_and_folders_are_as_open_as_the_umask_has_it(folder, kind, mask):
    def look():
        assert unlike(folder, mask) == {}

    with umask(mask), table_in(kind, folder) as table:
        keep(table, look)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_what_changes_are_applied_by_is_as_open_as_the_umask_has_it(folder, kind):
    with umask(GROUP_MAY_WRITE), _changing(kind, folder) as landing:
        landing.land(change_hour(0), changes((1, "a", "c", 1), (2, None, "d", 2)))
        landing.land(change_hour(1), changes((1, "b", "u", 3)))
    assert any("_markers" in str(path) or "_changes" in str(path) for path in folder.rglob("*"))
    assert unlike(folder, GROUP_MAY_WRITE) == {}


def test_windows_that_were_widened_are_as_open_as_the_umask_has_it(folder):
    with umask(GROUP_MAY_WRITE), table_in("parquet", folder) as table:
        for number, type_ in enumerate([pa.int32(), pa.int64()]):
            land(table.sink, hour(number), rows_of(0, 3, pa.schema([("id", type_)])))
    assert unlike(folder, GROUP_MAY_WRITE) == {}


@contextmanager
def _changing(kind: str, folder: Path) -> Iterator[Landing]:
    where = {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}/warehouse"}
    with given("changes", where):
        yield Landing(kind, folder, AutoCdc())


@two_users
@pytest.mark.parametrize("kind", KINDS)
def test_a_second_user_of_the_group_keeps_the_table_of_the_first(folder, kind):
    with table_in(kind, folder) as table, umask(GROUP_MAY_WRITE):
        with group_folder() as other, table_in(kind, other) as loaded:
            keep(loaded, lambda: None)  # what is imported late, root imports
        with acting_as(FIRST):
            table.land_in_pieces(hour(0), 0, 6, tasks=3)
        with acting_as(SECOND):
            keep(table, lambda: None)
        with acting_as(FIRST):
            keep_mark = replace(TERMS.mark, id="b" * 32)
            land(table.sink, hour(0), rows_of(40, 2), mark=keep_mark)
        assert table.ids()[hour(0)] == [40, 41]
        assert unlike(folder, GROUP_MAY_WRITE) == {}


@two_users
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_second_user_of_the_group_applies_changes(folder, kind):
    with group_folder() as other, _changing(kind, other) as loaded:
        loaded.land(change_hour(0), changes((1, "a", "c", 1)))
    with _changing(kind, folder) as landing, umask(GROUP_MAY_WRITE):
        for number, user in enumerate([FIRST, SECOND, FIRST]):
            with acting_as(user):
                landing.land(change_hour(number), changes((1, f"{number}", "u", number)))
        assert [row["v"] for row in landing.rows()] == ["2"]


@two_users
@pytest.mark.parametrize("mode", [None, 0o600])
def test_what_another_user_is_staging_is_left_alone(folder, mode):
    """Also by a lock file that an earlier release made for its owner alone."""
    with table_in("parquet", folder) as table, umask(GROUP_MAY_WRITE):
        with acting_as(FIRST):
            living = table.attempt(hour(0), 0, 5)
            if mode:
                next(folder.rglob("*.alive")).chmod(mode)
        with acting_as(SECOND):
            table.land(hour(0), 10, 2)
            assert table.expire(now()).files == ()
        with acting_as(FIRST):
            living.commit()
        assert table.ids() == {hour(0): [0, 1, 2, 3, 4]}


@two_users
def test_the_lock_of_an_earlier_release_keeps_no_user_out(folder):
    with table_in("parquet", folder) as table, umask(GROUP_MAY_WRITE):
        with acting_as(FIRST):
            table.land(hour(0), 0, 5)
            (ParquetTable(table.sink.path).root / "_table.lock").chmod(0o644)
        with acting_as(SECOND):
            table.land(hour(0), 10, 2)
        assert table.ids() == {hour(0): [10, 11]}


@two_users
def test_a_lock_that_a_user_cannot_open_counts_as_held(folder):
    file = folder / "life"
    with umask(OWNER_ALONE), acting_as(FIRST):
        ProcessLock(file).begin()
    with acting_as(SECOND):
        assert is_alive(file)
        assert not is_alive(folder / "none")


@two_users
def test_a_journal_that_was_opened_to_a_group_takes_the_runs_of_both_users(folder, tmp_path):
    """Its file is the owner's alone until then, and its helper files have its mode."""
    with Database(f"sqlite:///{tmp_path}/journal.db").writing():
        pass  # what is imported late, root imports
    file = folder / "journal.db"
    with umask(OWNER_ALONE):
        with acting_as(FIRST):
            database = Database(f"sqlite:///{file}")
            with database.writing() as connection:
                connection.execute(source("pulsar:a:b"))
            assert file.stat().st_mode & 0o777 == 0o600
            file.chmod(0o660)
            held = database.reading()
            held.__enter__()
        with acting_as(SECOND), Database(f"sqlite:///{file}").writing() as connection:
            connection.execute(source("pulsar:a:c"))
            assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o660}
        held.__exit__(None, None, None)


@two_users
def test_the_cache_of_another_user_is_not_used(folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    with acting_as(FIRST):
        first = executor_archive()
    with acting_as(SECOND):
        second = executor_archive()
    assert first.is_relative_to(folder)
    assert not second.is_relative_to(folder)
    assert first.read_bytes() == second.read_bytes()
    assert (folder / "airflow-provider-streams").stat().st_mode & 0o777 == 0o700
    second.unlink()
    second.parent.rmdir()
