"""A table is kept in order by what the journal knows of it; no other one is touched."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from sqlalchemy import update

from airflow_provider_streams import DeltaSink, ParquetSink
from airflow_provider_streams.errors import InvalidRequest, RowsDiffer, TableOwnedByOther
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.journal.tables import runs
from airflow_provider_streams.lake.data_files import WindowFiles
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.job import staging
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.windows.after_landing.maintenance import LONGEST_RUN, compact_table, expire_table
from airflow_provider_streams.windows.claim.table_coverage import compare

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
MEGABYTE = 1 << 20
KEY = FakeSource("numbers").key


def minutes(start, end):
    return Window(EPOCH + start * MINUTE, EPOCH + end * MINUTE)


class InPieces(WindowFiles):
    """A file for each batch."""

    def __init__(self, target):
        super().__init__(replace(target, row_group_bytes=1, file_bytes=1))


@pytest.fixture
def world(world, monkeypatch):
    """Its tables are Delta's, with two files for each window."""
    monkeypatch.setattr(staging, "WindowFiles", InPieces)
    world.sink = lambda name="lake": DeltaSink(str(world.path / name))
    return world


def files(world):
    return sorted(DeltaTable(world.sink().path).file_uris())


def ids(world):
    return sorted(DeltaTable(world.sink().path).to_pyarrow_table()["value"].to_pylist())


def compacted(world, **options):
    return compact_table(world.journal, world.sink(), MEGABYTE, **options)


def begun(world, window, since):
    """A run of a window that has not ended."""
    plan = world.journal.pinned(KEY, "reader", window)
    kept = world.journal.landing(KEY, "reader")
    task = TaskInstanceKey("dag", "late", "read", 1)
    started = world.journal.start_run(KEY, plan, task, landing_id=kept.id)
    with world.journal._database.writing() as connection:
        connection.execute(update(runs).where(runs.c.id == started.run).values(started_at=since))


def test_covered_windows_get_fewer_files_and_nothing_else_is_known_of_them_after_it(world):
    for number in range(3):
        world.read(minutes(number, number + 1))
    rows, span = ids(world), minutes(0, 3)
    done = compacted(world)
    assert (len(done.windows), done.files_before, done.files_after) == (3, 6, 3)
    assert (ids(world), len(files(world))) == (rows, 3)
    coverage, view = compare(world.journal, KEY, "reader", world.journal.coverage(KEY, "reader", span.start, span.end))
    assert [one.state for one in coverage.windows] == ["covered"] * 3
    assert (view.status, view.gone) == ("ours", ())
    assert compacted(world).windows == []
    world.read(minutes(1, 2))
    assert (ids(world), len(files(world))) == (rows, 4)


def test_a_window_that_a_run_lands_now_is_left_to_it(world):
    world.read(minutes(0, 1))
    world.read(minutes(1, 2))
    begun(world, minutes(1, 2), datetime.now(UTC) - timedelta(minutes=5))
    done = compacted(world)
    assert done.windows == [minutes(0, 1)]
    assert done.left == {minutes(1, 2): "a run is landing it"}


def test_a_run_that_was_killed_long_ago_is_no_hindrance(world):
    world.read(minutes(0, 1))
    begun(world, minutes(0, 1), datetime.now(UTC) - LONGEST_RUN - DAY)
    assert compacted(world).windows == [minutes(0, 1)]


def test_a_window_that_is_not_covered_is_left_alone(world):
    world.read(minutes(0, 1))
    world.read(minutes(1, 2))
    kept = world.journal.landing(KEY, "reader")
    world.journal.uncover(KEY, "reader", kept.id, [minutes(0, 1)], "told so")
    assert compacted(world).windows == [minutes(1, 2)]


def test_a_window_that_does_not_hold_what_its_receipt_says_fails_and_the_others_are_done(world):
    for number in range(2):
        world.read(minutes(number, number + 1))
    DeltaTable(world.sink().path).delete("value like '%-0:5%'")
    changed = files(world)
    with pytest.raises(
        RowsDiffer, match=r"windows that do not hold .* its receipt says 120\. Of the others, 1 are done"
    ) as caught:
        compacted(world)
    assert not caught.value.retryable
    assert len(set(changed) & set(files(world))) == len(changed) - 2


def test_a_dry_run_changes_nothing(world):
    world.read(minutes(0, 1))
    before = files(world)
    assert compacted(world, dry_run=True).files_before == 2
    assert files(world) == before


def test_a_table_that_was_copied_is_not_touched(world):
    world.read(minutes(0, 1))
    shutil.copytree(world.sink().path, world.sink("copy").path)
    with pytest.raises(TableOwnedByOther, match="copied"):
        compact_table(world.journal, world.sink("copy"), MEGABYTE)
    with pytest.raises(TableOwnedByOther, match="copied"):
        expire_table(world.journal, world.sink("copy"), DAY)


def test_a_table_of_another_journal_is_not_touched(world):
    world.read(minutes(0, 1))
    with (
        Journal.open(f"sqlite:///{world.path}/other.db") as other,
        pytest.raises(TableOwnedByOther, match="another journal"),
    ):
        compact_table(other, world.sink(), MEGABYTE)


def test_a_table_that_was_landed_again_elsewhere_is_not_touched(world):
    world.read(minutes(0, 1))
    world.read(minutes(0, 1), sink="other", full_refresh=True)
    with pytest.raises(TableOwnedByOther):
        expire_table(world.journal, world.sink(), DAY)


def test_where_nothing_was_landed_there_is_nothing_to_keep(world):
    with pytest.raises(InvalidRequest, match="nothing was landed there yet"):
        compacted(world)


def test_what_a_run_may_need_that_has_not_ended_is_kept(world):
    world.read(minutes(0, 1))
    since = datetime.now(UTC) - timedelta(hours=30)
    begun(world, minutes(0, 1), since)
    before, gone = expire_table(world.journal, world.sink(), DAY)
    assert before < since
    assert gone.files == ()


def test_what_was_left_over_goes(world):
    world.read(minutes(0, 1))
    stray = Path(files(world)[0]).with_name(f"{'0' * 32}-{'1' * 32}.parquet")
    shutil.copy(files(world)[0], stray)
    then = (datetime.now(UTC) - 2 * DAY).timestamp()
    os.utime(stray, (then, then))
    assert [one.name for one in expire_table(world.journal, world.sink(), DAY, dry_run=True)[1].files] == [stray.name]
    assert stray.exists()
    expire_table(world.journal, world.sink(), DAY)
    assert not stray.exists()
    assert compacted(world).files_before == 2


def test_what_is_too_young_is_asked_for_in_vain(world):
    world.read(minutes(0, 1))
    with pytest.raises(InvalidRequest, match="too short"):
        expire_table(world.journal, world.sink(), timedelta(minutes=59))


def test_a_folder_that_is_a_table_is_not_compacted(world):
    world.sink = lambda name="lake": ParquetSink(str(world.path / name))
    world.read(minutes(0, 1))
    with pytest.raises(InvalidRequest, match="not compacted here"):
        compacted(world)
    before, gone = expire_table(world.journal, world.sink(), DAY)
    assert (gone.files, before < datetime.now(UTC)) == ((), True)
