"""The table is as exact as the read, whatever users do: no row twice, none missing that is called covered."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_provider_streams.errors import (
    ChainOutOfOrder,
    InvalidRequest,
    InvalidWindow,
    LandingMismatch,
    PlanOptionsChanged,
    RowCountDecreased,
    SinkError,
    SourceReplaced,
    StreamsError,
    TableOwnedByOther,
    WindowNotAligned,
    WindowNotReady,
    WindowsOverlap,
)
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.registry import table_state
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.model.window.basis import Cuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.windows.claim.table_coverage import compare
from airflow_provider_streams.windows.run.recording import RunStart

MINUTE = timedelta(minutes=1)
MINUTE_OF_ROWS = 120
MOUNTED = "mount/lake"
SOMEBODYS = json.dumps({"id": "another", "source": "fake:fake_default:numbers", "reader": "reader"})


def minutes(start, end):
    return Window(EPOCH + start * MINUTE, EPOCH + end * MINUTE)


def once(values):
    return not values or set(values.values()) == {1}


class SparkDied(Exception):
    pass


def die(_spec):
    raise SparkDied


# One table, one owner


def test_two_sources_do_not_land_in_one_table(world):
    world.read(minutes(0, 1), source="orders", reader="a")
    with pytest.raises(TableOwnedByOther, match=r"belongs to reader 'a' of fake:fake_default:orders"):
        world.read(minutes(0, 1), source="payments", reader="b")
    assert len(world.values()) == MINUTE_OF_ROWS
    assert all(value.startswith(b"orders") for value in world.values())
    assert world.states(minutes(0, 1), "b", "payments") != ["covered"]


def test_two_readers_of_one_source_do_not_land_in_one_table(world):
    world.read(minutes(0, 1), reader="a")
    with pytest.raises(TableOwnedByOther):
        world.read(minutes(0, 1), reader="b")
    assert world.states(minutes(0, 1), "a") == ["covered"]
    assert world.states(minutes(0, 1), "b") != ["covered"]


def test_a_folder_with_another_owners_data_is_not_taken(world):
    folder = Path(world.sink().path) / "window_start=20261120T100000Z" / "window_end=20261120T110000Z"
    folder.mkdir(parents=True)
    with pytest.raises(TableOwnedByOther, match="move it away"):
        world.read(minutes(0, 1))
    assert folder.exists()


@pytest.mark.parametrize("other", ["lake/sub", "lake/_staging", "lake/window_start=20261120T100000Z", "."])
def test_tables_do_not_lie_in_each_other(world, other):
    world.read(minutes(0, 1))
    with pytest.raises(TableOwnedByOther, match=r"Name a folder outside of it|move it away"):
        world.read(minutes(0, 1), reader="other", sink=other)
    assert sum(world.values().values()) == MINUTE_OF_ROWS


@pytest.mark.parametrize("sign", ["_delta_log/00000000000000000000.json", "metadata/00000-a.metadata.json"])
def test_a_folder_inside_of_a_table_of_another_format_is_not_taken(world, sign):
    """Cleaning that table removes from its folder what its metadata do not name."""
    (world.path / "orders" / sign).parent.mkdir(parents=True)
    (world.path / "orders" / sign).touch()
    with pytest.raises(TableOwnedByOther, match=r"is inside another table, which has .*Name a folder outside of it"):
        world.read(minutes(0, 1), sink="orders/returns")
    assert not (world.path / "orders" / "returns").exists()


def test_data_below_a_folder_has_another_owner(world):
    below = Path(world.sink().path) / "sub"
    below.mkdir(parents=True)
    (below / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(TableOwnedByOther, match=r"sub/x\.parquet"):
        world.read(minutes(0, 1))
    assert list(below.parent.iterdir()) == [below], "nothing of ours is left in it"


def test_another_path_to_a_table_is_the_same_table(world):
    world.read(minutes(0, 1), reader="a")
    (world.path / "link").symlink_to(world.sink().path)
    with pytest.raises(TableOwnedByOther, match="belongs to reader 'a'"):
        world.read(minutes(0, 1), reader="b", sink="link")
    with pytest.raises(LandingMismatch):
        world.read(minutes(1, 2), reader="a", sink="link")
    assert once(world.values())


def test_tables_do_not_lie_in_each_other_by_links(world):
    """Who reads the outer one reads both."""
    world.read(minutes(0, 1), reader="a")
    (Path(world.sink().path) / "sub").mkdir()
    (world.path / "link").symlink_to(Path(world.sink().path) / "sub")
    with pytest.raises(TableOwnedByOther, match="Name a folder outside of it"):
        world.read(minutes(0, 1), reader="b", sink="link")
    (world.path / "outer").mkdir()
    (world.path / "outer" / "link").symlink_to(world.sink().path)
    with pytest.raises(TableOwnedByOther, match="the folder holds link"):
        world.read(minutes(0, 1), reader="c", sink="outer")


def test_a_backfill_of_covered_windows_tells_that_the_table_is_foreign(world):
    for number in range(2):
        world.read(minutes(number, number + 1))
    (Path(world.sink().path) / "_table.json").write_text(SOMEBODYS)
    with pytest.raises(TableOwnedByOther):
        world.backfill(minutes(0, 2))


def test_a_window_without_its_files_is_not_covered(world):
    for number in range(2):
        world.read(minutes(number, number + 1))
    for file in Path(world.sink().path).glob("window_start=20261120T100100Z/*/*.parquet"):
        file.unlink()
    assert _seen(world)[0].counts["covered"] == 1
    _, outcome = world.backfill(minutes(0, 2))
    assert outcome.covered == (minutes(1, 2),)
    assert len(world.values()) == 2 * MINUTE_OF_ROWS


def test_another_journal_does_not_land_in_the_table(world, tmp_path):
    from airflow_provider_streams.journal.store import Journal

    world.read(minutes(0, 1))
    with Journal(f"sqlite:///{tmp_path / 'another.db'}") as world.journal:
        with pytest.raises(TableOwnedByOther, match="another journal"):
            world.read(minutes(1, 2))
        world.read(minutes(1, 2), full_refresh=True)
        assert world.windows() == [minutes(1, 2)]
    assert list((tmp_path / "lake" / "_set_aside").glob("*/window_start=*/window_end=*/*.aside")), "kept"


# Windows that share time


def test_a_window_that_shares_time_with_a_covered_one_is_refused(world):
    world.read(minutes(0, 0.6))
    with pytest.raises(WindowsOverlap, match=r"10:00:00Z/2026-11-20T10:00:36Z.*overlap='replace'") as caught:
        world.read(minutes(0, 1))
    assert caught.value.covered == (minutes(0, 0.6),)
    assert (len(world.values()), once(world.values())) == (72, True)
    assert world.states(minutes(0, 0.6)) == ["covered"]


def test_a_refused_window_is_not_planned_and_leaves_no_hole(world):
    world.read(minutes(0, 10))
    with pytest.raises(WindowsOverlap):
        world.read(minutes(5, 6))
    assert world.states(minutes(0, 10)) == ["covered"]
    assert world.journal.pinned(FakeSource("numbers").key, "reader", minutes(5, 6)) is None


def test_windows_of_one_start_and_two_lengths_do_not_replace_each_other(world):
    world.read(minutes(0, 10))
    with pytest.raises(WindowsOverlap):
        world.read(minutes(0, 1))
    assert len(world.values()) == 10 * MINUTE_OF_ROWS
    assert world.states(minutes(0, 10)) == ["covered"]


def test_an_explicit_act_takes_windows_out_as_a_whole(world):
    world.read(minutes(0, 10))
    world.read(minutes(10, 20))
    world.read(minutes(9, 11), overlap="replace")
    assert world.windows() == [minutes(9, 11)]
    assert (len(world.values()), once(world.values())) == (2 * MINUTE_OF_ROWS, True)
    span = minutes(0, 20)
    coverage = world.journal.coverage(FakeSource("numbers").key, "reader", span.start, span.end)
    assert coverage.covered == (minutes(9, 11),)
    assert [item.state for item in coverage.windows] == ["failed", "covered", "failed"]
    assert "took its place" in coverage.windows[0].cause


def test_a_failed_replacement_leaves_the_rows_and_claims_less(world):
    world.read(minutes(0, 10))
    world.before = die
    with pytest.raises(SparkDied):
        world.read(minutes(5, 6), overlap="replace")
    assert len(world.values()) == 10 * MINUTE_OF_ROWS
    assert "covered" not in world.states(minutes(0, 10))


def test_the_table_refuses_what_the_journal_does_not_know(world, tmp_path):
    """The last look is the table's own, under its lock: another attempt may have landed meanwhile."""
    late = lambda _spec: (setattr(world, "before", lambda _: None), world.read(minutes(0, 2)))  # noqa: E731
    world.before = late
    with pytest.raises(WindowsOverlap):
        world.read(minutes(1, 3))
    assert world.windows() == [minutes(0, 2)]
    assert once(world.values())


# One landing, one window schedule


def test_another_table_is_another_landing(world):
    world.read(minutes(0, 1))
    with pytest.raises(LandingMismatch, match=r"table file://.*/other instead of file://.*/lake"):
        world.read(minutes(1, 2), sink="other")
    with pytest.raises(LandingMismatch, match="columns value instead of none"):
        world.read(minutes(1, 2), columns=("value",))
    with pytest.raises(LandingMismatch, match="transform jobs:clean instead of none"):
        world.read(minutes(1, 2), transform="jobs:clean")
    assert world.windows() == [minutes(0, 1)]


def test_another_transform_is_another_landing(world):
    """No transform is another one as well, and a dry run reports it."""
    world.read(minutes(0, 1), transform="jobs:clean")
    for other in ("jobs:sum_up", None):
        for dry_run in (True, False):
            with pytest.raises(LandingMismatch, match=f"transform {other or 'none'} instead of jobs:clean"):
                world.read(minutes(1, 2), transform=other, dry_run=dry_run)
        with pytest.raises(LandingMismatch, match="instead of jobs:clean"):
            world.backfill(minutes(0, 2), transform=other)
    assert world.windows() == [minutes(0, 1)]
    world.read(minutes(1, 2), transform="jobs:clean")
    assert world.windows() == [minutes(0, 1), minutes(1, 2)]


def test_a_folder_of_another_owner_is_corrected_without_an_act(world):
    """As its error asks: nothing was landed."""
    world.read(minutes(0, 1), reader="a")
    with pytest.raises(TableOwnedByOther, match="land in another one"):
        world.read(minutes(0, 1), reader="b")
    world.read(minutes(0, 1), reader="b", sink="other")
    assert once(world.values("other"))
    assert world.states(minutes(0, 1), "b") == ["covered"]
    with pytest.raises(LandingMismatch):
        world.read(minutes(1, 2), reader="b", sink="third")


CORRECTIONS = {
    "the table": {"sink": "other"},
    "the columns": {"columns": ("value",)},
    "the window schedule": {"window_schedule": "2m"},
    "the basis": {"basis": "chained", "replan": True},
}


@pytest.mark.parametrize("correction", CORRECTIONS.values(), ids=list(CORRECTIONS))
def test_what_failed_before_anything_was_landed_is_corrected_without_landing_again(world, correction):
    """Its folder is marked already; and back again: the mark is the same."""
    world.before = die
    given = {"sink": "lake", "window_schedule": "1m"}
    for how in ({}, correction, {"replan": True}):
        window = minutes(0, 2) if "window_schedule" in how else minutes(0, 1)
        with pytest.raises(SparkDied):
            world.read(window, **{**given, **how})
        ParquetTable(world.sink(how.get("sink", "lake")).path).claim(_terms(world))
    world.before = lambda _spec: None
    how = {**given, **correction}
    window = minutes(0, 2) if correction.get("window_schedule") else minutes(0, 1)
    world.read(window, dry_run=True, **how)
    world.read(window, **how)
    assert once(world.values(how["sink"]))
    assert world.windows(how["sink"]) == [window]
    with pytest.raises((LandingMismatch, WindowNotAligned)):
        world.read(minutes(2, 3), **{**given, "sink": "third"})


def test_rows_whose_task_died_before_it_could_tell_are_not_left_next_to_others(world, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(world.journal, "finish_run", die_after)
        with pytest.raises(SparkDied):
            world.read(minutes(0, 1))
    assert world.windows() == [minutes(0, 1)]
    for changed in ({"columns": ("value",)}, {"window_schedule": "2m", "columns": ("value",)}):
        with pytest.raises(LandingMismatch):
            world.read(minutes(0, 2), **changed)
    world.read(minutes(0, 1))
    assert (len(world.values()), once(world.values())) == (MINUTE_OF_ROWS, True)


def die_after(*_):
    raise SparkDied


def _terms(world):
    kept = world.journal.landing(FakeSource("numbers").key, "reader")
    return TableTerms(TableMark(kept.table_id, FakeSource("numbers").key, "reader"))


def test_a_second_deployment_on_one_journal_is_told(world):
    world.read(minutes(0, 1), sink="prod")
    with pytest.raises(LandingMismatch):
        world.backfill(minutes(0, 2), sink="dev")
    assert not Path(world.sink("dev").path).exists()


def test_reads_without_a_table_prove_only(world):
    world.read(minutes(0, 1), sink=None)
    assert world.states(minutes(0, 1)) == ["covered"], "of a reader that lands nothing"
    _, outcome = world.backfill(minutes(0, 1))
    assert outcome.covered == (minutes(0, 1),)
    assert len(world.values()) == MINUTE_OF_ROWS
    world.read(minutes(1, 2), sink=None)
    assert world.states(minutes(1, 2)) == ["missing"], "the reader lands in a table now"
    assert world.windows() == [minutes(0, 1)]


def test_another_schedule_is_refused_and_both_are_shown(world):
    world.read(minutes(0, 10), window_schedule="10m")
    with pytest.raises(WindowNotAligned, match=r"its window schedule is 10m.*10:10:00Z/2026-11-20T10:20:00Z"):
        world.read(minutes(10, 12), window_schedule="2m")
    with pytest.raises(WindowNotAligned):
        world.backfill(minutes(0, 40), length=2 * MINUTE)
    with pytest.raises(WindowNotAligned):
        world.read(minutes(13, 14), dry_run=True)
    assert world.states(minutes(0, 10)) == ["covered"]


def test_landing_again_sets_aside_and_everything_is_missing_again(world):
    for number in range(4):
        world.read(minutes(number * 10, number * 10 + 10), window_schedule="10m")
    world.read(minutes(0, 2), window_schedule="2m", full_refresh=True)
    assert world.windows() == [minutes(0, 2)]
    span = minutes(0, 40)
    coverage = world.journal.coverage(FakeSource("numbers").key, "reader", span.start, span.end)
    assert [item.window for item in coverage.windows] == [minutes(0, 2), minutes(2, 40)], (
        "none of the other window schedule"
    )
    assert coverage.covered == (minutes(0, 2),)
    world.read(minutes(2, 4), window_schedule="2m", full_refresh=True)
    assert world.windows() == [minutes(0, 2), minutes(2, 4)], "nothing differs, so nothing is set aside"
    assert len(list(Path(world.sink().path).glob("_set_aside/*/window_start=*"))) == 4


def test_what_was_landed_before_is_told(world):
    world.backfill(minutes(0, 2))
    world.read(minutes(0, 1), columns=("value",), full_refresh=True)
    coverage = world.journal.coverage(FakeSource("numbers").key, "reader", EPOCH, EPOCH + 2 * MINUTE)
    assert [item.cause for item in coverage.windows] == ["", "landed in another table before"]


def test_a_backfill_takes_the_readers_own_schedule(world):
    world.read(minutes(0, 10), window_schedule="10m")
    _, outcome = world.backfill(minutes(3, 41), length=None)
    assert outcome.covered == (minutes(10, 20), minutes(20, 30), minutes(30, 40))
    assert (len(world.values()), once(world.values())) == (40 * MINUTE_OF_ROWS, True)


def test_two_bases_do_not_share_a_table(world):
    world.hold(events=60)
    world.read(minutes(0, 1), basis="chained")
    world.hold(events=180)
    with pytest.raises(LandingMismatch, match="basis 'publish' instead of 'chained'"):
        world.backfill(minutes(0, 3))
    assert len(world.values()) == MINUTE_OF_ROWS


# The table as it is


def test_a_deleted_table_covers_nothing(world):
    for number in range(3):
        world.read(minutes(number, number + 1))
    shutil.rmtree(world.sink().path)
    _, outcome = world.backfill(minutes(0, 3))
    assert len(outcome.covered) == 3
    assert (len(world.values()), once(world.values())) == (3 * MINUTE_OF_ROWS, True)


def test_a_window_another_program_removed_is_missing(world):
    for number in range(3):
        world.read(minutes(number, number + 1))
    shutil.rmtree(Path(world.sink().path) / "window_start=20261120T100100Z")
    preview, outcome = world.backfill(minutes(0, 3))
    assert outcome.covered == (minutes(1, 2),)
    assert preview.windows[0].state == "failed"
    assert len(world.values()) == 3 * MINUTE_OF_ROWS


def _seen(world):
    source = FakeSource("numbers").key
    return compare(world.journal, source, "reader", world.journal.coverage(source, "reader", EPOCH, EPOCH + 3 * MINUTE))


@pytest.mark.parametrize(
    ("harm", "status", "covered"),
    [
        (lambda _: None, "ours", 3),
        (lambda root: shutil.rmtree(root / "window_start=20261120T100100Z"), "ours", 2),
        (shutil.rmtree, "absent", 0),
        (lambda root: (root / "_table.json").write_text(SOMEBODYS), "foreign", 0),
        (lambda root: shutil.rmtree(root.parent), "unseen", 3),
    ],
)
def test_coverage_says_what_the_table_holds(world, harm, status, covered):
    for number in range(3):
        world.read(minutes(number, number + 1), sink=MOUNTED)
    harm(Path(world.sink(MOUNTED).path))
    coverage, table = _seen(world)
    assert (table.status, coverage.counts["covered"], len(table.gone)) == (status, covered, 3 - covered)
    assert coverage.is_complete is (covered == 3)


@pytest.mark.parametrize("name", ["x.parquet", "window_start=20261120T100100Z/x.parquet", "sub/_delta_log/0.json"])
def test_coverage_says_of_a_folder_that_had_another_owner_at_the_first_try_what_is_in_it(world, name):
    file = Path(world.sink().path) / name
    file.parent.mkdir(parents=True)
    file.write_text("somebody's")
    with pytest.raises(TableOwnedByOther):
        world.read(minutes(0, 1))
    coverage, table = _seen(world)
    assert (table.status, coverage.counts["covered"], table.gone) == ("foreign", 0, ())
    assert re.match(r"the folder holds .*, and no _table.json says whose that is|it is inside", table.cause)
    shutil.rmtree(world.sink().path)
    assert _seen(world)[1].status == "absent"
    world.read(minutes(0, 1))
    assert _seen(world)[1].status == "ours"


def test_a_table_that_lost_its_mark_is_nobodys_until_it_is_back(world):
    world.read(minutes(0, 1))
    mark = Path(world.sink().path) / "_table.json"
    mark.rename(away := world.path / "away")
    assert _seen(world)[1].status == "foreign"
    for _ in range(2):
        with pytest.raises(TableOwnedByOther, match="says whose that is"):
            world.read(minutes(1, 2))
    away.rename(mark)
    world.read(minutes(1, 2))
    assert len(world.values()) == 2 * MINUTE_OF_ROWS


def test_a_table_on_a_mount_that_is_not_there_is_not_made_again(world):
    world.read(minutes(0, 1), sink=MOUNTED)
    root = Path(world.sink(MOUNTED).path)
    root.parent.rename(away := root.parent.with_name("unmounted"))
    with pytest.raises(SinkError, match="mount it"):
        world.read(minutes(1, 2), sink=MOUNTED)
    away.rename(root.parent)
    world.read(minutes(1, 2), sink=MOUNTED)
    assert (len(world.values(MOUNTED)), once(world.values(MOUNTED))) == (2 * MINUTE_OF_ROWS, True)


@pytest.mark.parametrize(
    ("replan", "would"), [(True, "its new plan cannot hold all of them"), (False, "this read would leave 60")]
)
def test_a_run_that_would_land_fewer_rows_is_an_explicit_act(world, replan, would):
    world.read(minutes(0, 1), on_loss="record")
    world.hold(head=30)
    with pytest.raises(RowCountDecreased, match=f"was landed from 120 rows of the stream, and {would}"):
        world.read(minutes(0, 1), replan=replan, on_loss="record")
    assert len(world.values()) == MINUTE_OF_ROWS
    assert world.states(minutes(0, 1)) == ["covered"], "by the plan that it was read by"
    world.read(minutes(0, 1), replan=replan, on_loss="record", allow_fewer_rows=True)
    assert len(world.values()) == 60
    assert world.states(minutes(0, 1)) == ["covered"]


@pytest.mark.parametrize("earlier", ["", "dry run"])
def test_a_refused_plan_leaves_the_window_its_own(world, earlier):
    """A window with late rows that is planned again without lookback: it could never be read again."""
    world.hold(late_every=200, late_by_ms=120_000)
    window = minutes(1, 2)
    world.backfill(minutes(0, 10))
    world.backfill(minutes(0, 10), lookback=5 * MINUTE)
    world.backfill(window, select="late", lookback=5 * MINUTE)
    with_late = len(world.values())
    before = world.journal.pinned(FakeSource("numbers").key, "reader", window)
    if earlier:
        world.read(window, replan=True, dry_run=True)
    for _ in range(2):
        with pytest.raises(RowCountDecreased, match="late rows"):
            world.read(window, replan=True)
    assert world.journal.pinned(FakeSource("numbers").key, "reader", window) == before
    assert world.states(window) == ["covered"]
    world.read(window)
    world.backfill(window, select="all")
    assert len(world.values()) == with_late


def test_a_refused_plan_that_another_run_reads_stays(world):
    world.read(minutes(0, 1), on_loss="record")
    world.hold(head=30)
    world.read(minutes(0, 1), on_loss="record", replan=True, dry_run=True)
    key = FakeSource("numbers").key
    plan = world.journal.replan(key, world.shown)
    landing = world.journal.landing(key, "reader").id
    task = TaskInstanceKey("d", "r", "t", 1)
    started = world.journal.start_run(
        key, plan, task, landing_id=landing, replace_overlaps=False, allow_fewer_rows=True
    )
    world.journal.restore_previous_plans(key, "reader", landing, minutes(0, 1))
    assert world.journal.pinned(key, "reader", minutes(0, 1)) == plan
    world.journal.fail_run(started.run, "RowCountDecreased", "", untouched=True)
    assert world.journal.pinned(key, "reader", minutes(0, 1)) != plan


@pytest.mark.slow_except("False-error0", "True-error0")
@pytest.mark.parametrize("error", [SinkError("lake", "no such codec"), InvalidRequest("no quarantine"), SparkDied()])
@pytest.mark.parametrize("together", [False, True])
def test_a_failed_replan_leaves_a_window_covered_by_the_plan_of_its_rows(world, error, together):
    world.read(minutes(0, 1))
    key = FakeSource("numbers").key
    before = world.journal.pinned(key, "reader", minutes(0, 1))

    def fail(_spec):
        raise error

    world.hold(events=7200, head=30)
    world.before = fail
    with pytest.raises(type(error)) if not together or isinstance(error, StreamsError) else nullcontext():
        if together:
            world.backfill(minutes(0, 2), select="all", replan=True, allow_fewer_rows=True, on_loss="record")
        else:
            world.read(minutes(0, 1), replan=True, allow_fewer_rows=True, on_loss="record")
    assert world.states(minutes(0, 1)) == ["covered"]
    assert world.journal.pinned(key, "reader", minutes(0, 1)) == before
    assert len(world.values()) == MINUTE_OF_ROWS


def test_a_replan_that_fails_in_its_commit_leaves_its_window_to_be_read_again(world, monkeypatch):
    """It is not proven whether the rows are the old or the new ones."""
    world.read(minutes(0, 1))

    def fail(*_args, **_how):
        raise OSError("away")

    with monkeypatch.context() as failing:
        failing.setattr(ParquetTable, "put", fail)
        with pytest.raises(SinkError, match="away"):
            world.read(minutes(0, 1), replan=True)
    assert world.states(minutes(0, 1)) == ["failed"]
    world.read(minutes(0, 1))
    assert (len(world.values()), world.states(minutes(0, 1))) == (MINUTE_OF_ROWS, ["covered"])


@pytest.mark.parametrize("end", ["killed", "the journal was away"])
def test_a_refused_plan_by_which_another_run_may_have_landed_stays(world, monkeypatch, end):
    """A run that died after its commit: the table holds what its plan read."""
    world.read(minutes(0, 1))
    world.hold(head=30)

    def away(*_args, **_how):
        raise OSError("away")

    with monkeypatch.context() as dying:
        dying.setattr(RunStart, "finish", away)
        if end == "killed":
            dying.setattr(Journal, "fail_run", lambda *_args, **_how: None)
        with pytest.raises(OSError, match="away"):
            world.read(minutes(0, 1), replan=True, allow_fewer_rows=True, on_loss="record")
    assert len(world.values()) == 60
    with pytest.raises(RowCountDecreased):
        world.read(minutes(0, 1), on_loss="record")
    assert world.states(minutes(0, 1)) != ["covered"], "the present rows of the table are not proven"
    world.read(minutes(0, 1), on_loss="record", allow_fewer_rows=True)
    assert (len(world.values()), world.states(minutes(0, 1))) == (60, ["covered"])


# Another window schedule


def test_what_failed_before_there_was_a_grid_is_read_by_the_schedule(world):
    def die(_spec):
        raise OSError("died")

    world.before = die
    with pytest.raises(OSError, match="died"):
        world.read(minutes(3, 7))
    world.before = lambda _spec: None
    assert world.states(minutes(3, 7)) == ["failed"]
    world.read(minutes(3, 6), window_schedule="3m")
    world.backfill(minutes(0, 12), length=None)
    assert world.windows() == [minutes(start, start + 3) for start in (0, 3, 6, 9)]
    assert (len(world.values()), once(world.values())) == (12 * MINUTE_OF_ROWS, True)


@pytest.mark.parametrize("act", [{}, {"full_refresh": True, "columns": ("value",)}])
def test_a_backfill_without_a_whole_window_makes_no_schedule(world, act):
    for _ in range(2):
        with pytest.raises(InvalidWindow, match=r"no whole window of 36m \+29m is in .*, the first one is"):
            world.backfill(minutes(5, 20), length="36m", **act)
        world.backfill(minutes(0, 20), length="10m")
        assert world.windows() == [minutes(0, 10), minutes(10, 20)]
    _, outcome = world.backfill(minutes(10, 15), length="10m")
    assert (outcome.covered, outcome.failures) == ((), {}), "it is the reader's own"


@pytest.mark.slow_except("backfill-1m-5m", "run-5m-1m")
@pytest.mark.parametrize(("first", "then"), [("1m", "5m"), ("5m", "1m"), ("2m", "3m")])
@pytest.mark.parametrize("act", ["backfill", "run"])
def test_landed_again_on_another_schedule_all_windows_are_of_it(world, first, then, act):
    """What was landed by the first one is no window any more."""
    span, window_schedule = minutes(0, 30), parse_schedule(then)
    world.backfill(span, length=first)
    if act == "run":
        world.read(window_schedule.cell(span.start), window_schedule=then, full_refresh=True)
        world.backfill(span, length=None)
    else:
        world.backfill(span, length=then, full_refresh=True)
    assert sorted(table_state(world.sink()).windows) == list(window_schedule.cells(span.start, span.end))
    assert (len(world.values()), once(world.values())) == (30 * MINUTE_OF_ROWS, True)
    assert set(world.states(span)) == {"covered"}
    world.read(window_schedule.cell(span.end), window_schedule=then)


def test_a_plan_is_not_read_in_another_life_of_its_source(world):
    world.read(minutes(0, 1), dry_run=True)
    world.hold(life=2)
    with pytest.raises(SourceReplaced, match="life 1"):
        world.read(minutes(0, 1))
    assert world.windows() == []
    _, outcome = world.backfill(minutes(0, 2))
    assert outcome.covered == (minutes(1, 2),)
    assert "SourceReplaced" in outcome.by_window()[str(minutes(0, 1))]
    world.read(minutes(0, 1), replan=True)
    assert world.states(minutes(0, 2)) == ["covered", "covered"]


# What was accepted before


def test_losses_accepted_before_are_not_accepted_silently(world):
    world.hold(head=30)
    world.read(minutes(0, 1), on_loss="record", dry_run=True)
    with pytest.raises(PlanOptionsChanged, match="losses accepted by on_loss='record'"):
        world.read(minutes(0, 1))
    assert world.windows() == []
    landed = world.read(minutes(0, 1), on_loss="record")
    assert landed.receipt.verdict == "loss recorded"


def test_a_pin_is_not_read_between_other_cuts(world):
    def cuts(end):
        return Cuts("earliest", str(end))

    first = world.read(minutes(0, 1), basis=cuts(20))
    assert world.read(minutes(0, 1), basis=cuts(20)).receipt.rows == first.receipt.rows == 40
    with pytest.raises(PlanOptionsChanged, match="other cuts than"):
        world.read(minutes(0, 1), basis=cuts(30))
    assert len(world.values()) == 40
    assert world.read(minutes(0, 1), basis=cuts(30), replan=True).receipt.rows == 60


def test_another_slack_under_a_pin_is_told(world, caplog):
    world.hold(late_every=10, late_by_ms=30_000)
    first = world.read(minutes(1, 2), slack=timedelta(0))
    again = world.read(minutes(1, 2), slack=5 * MINUTE)
    assert again.receipt.rows == first.receipt.rows
    assert "planned with slack 0:00:00 instead of 0:05:00" in caplog.text


def test_what_was_asked_of_a_reader_last_is_told_by_basis(world):
    def told(basis):
        terms = world.journal.last_terms(FakeSource("numbers").key, "reader", basis)
        return terms and terms.lengths

    assert told("publish") is None
    for minute, slack in ((3, 5), (1, 7)):
        world.read(minutes(minute, minute + 1), slack=slack * MINUTE)
    world.read(minutes(2, 3), basis=Cuts("120", "180"))
    assert (told("publish"), told("cuts"), told("event")) == ({"slack": 7 * MINUTE}, {}, None)
    world.read(minutes(3, 4), slack=9 * MINUTE)
    assert told("publish") == {"slack": 7 * MINUTE}, "a pinned window is read as it was planned"
    world.read(minutes(3, 4), slack=9 * MINUTE, replan=True)
    assert told("publish") == {"slack": 9 * MINUTE}


def test_what_only_was_tried_does_not_tell_what_is_asked_of_a_reader(world):
    heard = []

    def told():
        terms = world.journal.last_terms(FakeSource("numbers").key, "reader", "publish")
        return terms and terms.lengths["slack"] // MINUTE

    def die(_spec):
        heard.append(told())
        raise RuntimeError

    def fail(minute, slack, **acts):
        world.before = die
        with pytest.raises(RuntimeError):
            world.read(minutes(minute, minute + 1), slack=slack * MINUTE, **acts)
        world.before = lambda _spec: None

    world.read(minutes(0, 1), slack=3 * MINUTE, dry_run=True)
    assert told() is None, "it was not read"
    fail(1, 5)
    assert (heard, told()) == ([5], 5), "it is all that is known"
    fail(2, 6)
    assert (heard, told()) == ([5, 6], 6)
    world.read(minutes(1, 2), slack=8 * MINUTE)
    assert told() == 5, "the one that stands was planned so"
    world.read(minutes(4, 5), slack=7 * MINUTE, dry_run=True)
    fail(5, 9)
    fail(1, 9, replan=True)
    assert (heard, told()) == ([5, 6, 5, 5], 5), "nor do those in flight, as long as another one stands"
    world.read(minutes(4, 5))
    assert told() == 7, "a dry run's plan that was read since counts as any other"


def test_late_rows_stay_counted_until_they_are_read(world):
    world.hold(late_every=100, late_by_ms=120_000)
    world.backfill(minutes(0, 10))
    world.backfill(minutes(0, 10), lookback=5 * MINUTE)
    span, key = minutes(0, 10), FakeSource("numbers").key
    late = world.journal.coverage(key, "reader", span.start, span.end).totals["late_rows"]
    assert late > 0
    world.read(minutes(0, 1), window_schedule=None)  # cleared and read again
    assert world.journal.coverage(key, "reader", span.start, span.end).totals["late_rows"] == late
    with pytest.raises(InvalidRequest, match="lookback"):
        world.backfill(minutes(0, 10), select="late")
    world.backfill(minutes(0, 10), select="late", lookback=5 * MINUTE)
    assert world.journal.coverage(key, "reader", span.start, span.end).totals["late_rows"] == 0
    assert once(world.values())


def with_late_rows(world):
    """Events 199 of both shards, of the second minute; its first ten seconds are no longer held."""
    world.hold(late_every=200, late_by_ms=120_000)
    world.backfill(minutes(0, 10))
    world.backfill(minutes(0, 10), lookback=5 * MINUTE)
    world.hold(head=70)
    return {"select": "late", "lookback": 5 * MINUTE}


def test_late_rows_of_a_window_whose_start_is_gone_are_refused(world):
    late, window = with_late_rows(world), minutes(1, 2)
    _, outcome = world.backfill(window, **late)
    assert "StartTrimmed" in outcome.by_window()[str(window)]
    _, outcome = world.backfill(window, **late, on_loss="record")
    assert "RowCountDecreased" in outcome.by_window()[str(window)], "what is in the table goes by another act"
    assert world.states(window) == ["covered"], "nothing was planned again"


def test_late_rows_of_a_window_whose_start_is_gone_land_where_that_is_accepted(world):
    late, window = with_late_rows(world), minutes(1, 2)
    _, outcome = world.backfill(window, **late, on_loss="record", allow_fewer_rows=True)
    ((_, plan, landed),) = outcome.landed
    assert (landed.receipt.rows, landed.receipt.verdict) == (2 * 50 + 2, "loss recorded")
    assert ([one.end.parts[0] for one in plan.losses], plan.terms.on_loss) == ([70, 70], "record")


def test_a_loss_that_was_accepted_before_is_one_loss_with_late_rows(world):
    world.hold(late_every=200, late_by_ms=120_000, head=70)
    window, record = minutes(1, 2), {"on_loss": "record"}
    world.backfill(window, **record)
    _, outcome = world.backfill(window, select="late", lookback=5 * MINUTE, **record)
    ((_, plan, landed),) = outcome.landed
    assert (landed.receipt.rows, [one.end.parts[0] for one in plan.losses]) == (2 * 50 + 2, [70, 70])


def test_late_rows_are_counted_in_what_is_held_where_loss_is_accepted(world):
    world.hold(late_every=200, late_by_ms=120_000)
    world.backfill(minutes(0, 10))
    world.hold(head=150)
    window = minutes(1, 2)
    for on_loss, late in (("fail", 0), ("record", 2)):
        world.backfill(window, lookback=5 * MINUTE, on_loss=on_loss)
        coverage = world.journal.coverage(FakeSource("numbers").key, "reader", window.start, window.end)
        assert coverage.totals["late_rows"] == late


# Chains


def chained(world, start, end, events, **how):
    world.hold(events=events)
    return world.read(minutes(start, end), basis="chained", **how)


def test_a_chain_waits_for_the_window_before(world):
    chained(world, 0, 1, 60)
    world.before = die
    with pytest.raises(SparkDied):
        chained(world, 1, 2, 120)
    world.before = lambda _spec: None
    with pytest.raises(WindowNotReady, match="read in order"):
        chained(world, 2, 3, 180)
    chained(world, 1, 2, 180)
    chained(world, 2, 3, 180)
    assert (len(world.values()), once(world.values())) == (360, True)
    assert world.states(minutes(0, 3)) == ["covered"] * 3


def test_two_runs_of_a_chain_at_once_do_not_read_the_same(world):
    chained(world, 0, 1, 60)
    refused = []

    def the_next_run(_spec):
        world.before = lambda _: None
        with pytest.raises(WindowNotReady):
            chained(world, 2, 3, 240)
        refused.append(True)

    world.hold(events=180)
    world.before = the_next_run
    world.read(minutes(1, 2), basis="chained")
    chained(world, 2, 3, 240)
    assert refused
    assert (len(world.values()), once(world.values())) == (480, True)


def test_a_later_window_may_take_the_place_of_those_that_never_come(world):
    chained(world, 0, 1, 60)
    world.before = die
    with pytest.raises(SparkDied):
        chained(world, 1, 2, 120)
    world.before = lambda _spec: None
    chained(world, 2, 3, 180, replan=True)
    assert (len(world.values()), once(world.values())) == (360, True)
    with pytest.raises(ChainOutOfOrder, match="has gone on to"):
        chained(world, 1, 2, 180)
    assert len(world.values()) == 360


def test_a_covered_window_of_a_chain_reads_the_same_again_and_is_not_planned_again(world):
    chained(world, 0, 1, 60)
    chained(world, 1, 2, 120)
    chained(world, 0, 1, 120)
    assert (len(world.values()), once(world.values())) == (240, True)
    with pytest.raises(ChainOutOfOrder):
        chained(world, 0, 1, 120, replan=True)


def test_time_that_a_chain_read_with_a_later_window_is_not_gone_from_the_table(world):
    world.read(minutes(0, 1), basis="chained", sink=MOUNTED)
    world.read(minutes(2, 3), basis="chained", sink=MOUNTED)
    coverage, table = _seen(world)
    assert (table.gone, coverage.is_complete) == ((), True)
    shutil.rmtree(Path(world.sink(MOUNTED).path) / "window_start=20261120T100200Z")
    coverage, table = _seen(world)
    assert (table.gone, coverage.covered) == ((minutes(2, 3),), (minutes(0, 1),)), "gone with what it was read with"
    shutil.rmtree(world.sink(MOUNTED).path)
    key, between = FakeSource("numbers").key, minutes(1, 2)
    coverage, _ = compare(
        world.journal, key, "reader", world.journal.coverage(key, "reader", between.start, between.end)
    )
    assert coverage.covered == ()
