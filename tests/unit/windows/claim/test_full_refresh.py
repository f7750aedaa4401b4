"""`full_refresh=True` that fails before anything lands: the table is what it was, and any later run goes on with it."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink
from airflow_provider_streams.errors import SinkError, TableOwnedByOther, TableRecreated
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.registry import table_state
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.window.missing_rows import MissingWindows
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.windows.claim.table_coverage import compare
from tests.unit.windows.conftest import MINUTE, World

KEY = FakeSource("numbers").key
OTHER = ("value",)
"""Columns that a table of the default ones may hold, and that are another landing."""


def minute(number):
    return Window(EPOCH + number * MINUTE, EPOCH + (number + 1) * MINUTE)


class SparkDied(Exception):
    pass


def die(_spec):
    raise SparkDied


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def tables(request, world, monkeypatch, tmp_path):
    """The world's tables are of this kind; what the connection of Iceberg's says."""
    warehouse = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    of = {
        "parquet": lambda name="lake": ParquetSink(str(tmp_path / name)),
        "delta": lambda name="lake": DeltaSink(str(tmp_path / name)),
        "iceberg": lambda name="lake": IcebergSink(f"shop.{name}", conn_id="iceberg_test"),
    }
    monkeypatch.setattr(world, "sink", of[request.param])
    with given("iceberg_test", warehouse):
        yield warehouse


def fail(world, number=0, **how):
    world.before = die
    with pytest.raises(SparkDied):
        world.read(minute(number), **how)
    world.before = lambda _spec: None


def held(world, sink="lake"):
    return sorted(table_state(world.sink(sink)).windows)


def status(world):
    coverage = world.journal.coverage(KEY, "reader", minute(0).start, minute(3).end)
    return compare(world.journal, KEY, "reader", coverage)[1].status


def states(world):
    return world.states(Window(minute(0).start, minute(1).end))


@pytest.fixture
def begun(world, tables):
    """Two windows lie in the table, and an attempt to land another thing failed."""
    for number in (0, 1):
        world.read(minute(number))
    fail(world, columns=OTHER, full_refresh=True)
    return world


def test_what_failed_to_land_leaves_the_table_as_it_was(begun):
    assert held(begun) == [minute(0), minute(1)]
    assert (status(begun), states(begun)) == ("earlier", ["failed", "missing"])


@pytest.mark.slow_except("parquet-columns0", "delta-None")
@pytest.mark.parametrize("columns", [OTHER, None])
def test_any_run_goes_on_with_it(begun, columns):
    """Also one that lands what was landed before: all windows are missing, and each is landed once."""
    begun.read(minute(1), columns=columns)
    assert (held(begun), status(begun)) == ([minute(1)], "ours")
    begun.read(minute(0), columns=columns)
    assert (held(begun), states(begun)) == ([minute(0), minute(1)], ["covered", "covered"])


@pytest.mark.slow_except("delta")
def test_a_backfill_goes_on_with_it(begun):
    _, outcome = begun.backfill(Window(minute(0).start, minute(2).end), columns=OTHER)
    assert not outcome.failures
    assert (held(begun), status(begun)) == ([minute(number) for number in range(3)], "ours")


@pytest.mark.slow_except("parquet")
def test_of_several_that_failed_the_last_one_counts(begun):
    fail(begun, columns=("value", "number"), full_refresh=True)
    fail(begun, number=1, columns=("value", "number"))
    assert (held(begun), status(begun)) == ([minute(0), minute(1)], "earlier")
    begun.read(minute(1), columns=("value", "number"))
    assert (held(begun), status(begun)) == ([minute(1)], "ours")


@pytest.mark.slow_except("parquet-overrides0", "delta-overrides1")
@pytest.mark.parametrize("overrides", [{}, {"full_refresh": True}])
def test_a_run_from_before_that_comes_later_is_refused(world, tables, overrides):
    world.read(minute(0))

    def meanwhile(_spec):
        world.before = lambda _spec: None
        world.read(minute(1), columns=OTHER, full_refresh=True)

    world.before = meanwhile
    with pytest.raises(TableOwnedByOther):
        world.read(minute(2), **overrides)
    assert (held(world), status(world)) == ([minute(1)], "ours")


@pytest.mark.slow_except("delta")
def test_a_full_refresh_that_is_still_read_does_not_set_aside_what_a_newer_one_landed(world, tables):
    for number in (0, 1):
        world.read(minute(number))

    def meanwhile(_spec):
        world.before = lambda _spec: None
        world.read(minute(3), columns=("value", "number"), full_refresh=True)

    world.before = meanwhile
    with pytest.raises(TableOwnedByOther):
        world.read(minute(2), columns=OTHER, full_refresh=True)
    assert (held(world), status(world)) == ([minute(3)], "ours")


@pytest.mark.parametrize("tables", ["parquet"], indirect=True)
def test_a_copy_that_was_put_back_is_set_aside_next_to_what_it_is_a_copy_of(world, tables):
    for number in (0, 1):
        world.read(minute(number))
    lake, copy = Path(world.sink().path), world.path / "copy"
    shutil.copytree(lake, copy)
    world.read(minute(0), columns=OTHER, full_refresh=True)
    for part in lake.glob("window_start=*"):
        shutil.rmtree(part)
    for part in [*copy.glob("window_start=*"), copy / "_table.json"]:
        part.rename(lake / part.name)
    with pytest.raises(TableOwnedByOther, match="put back from a copy"):
        world.read(minute(1), columns=OTHER)
    world.read(minute(1), columns=OTHER, full_refresh=True)
    assert (held(world), status(world)) == ([minute(1)], "ours")
    assert len(list(lake.glob("_set_aside/*/window_start=*"))) == 4


@pytest.mark.slow_except("parquet")
def test_a_table_that_is_left_for_another_one_is_not_set_aside_unasked(world, tables):
    for number in (0, 1):
        world.read(minute(number))
    fail(world, sink="other", full_refresh=True)
    with pytest.raises(TableOwnedByOther, match=r"given up by this reader.*full_refresh=True"):
        world.read(minute(0))
    assert held(world) == [minute(0), minute(1)]
    world.read(minute(0), full_refresh=True)
    assert held(world) == [minute(0)]


def test_a_table_that_is_put_back_after_something_landed_is_not_set_aside(world):
    world.read(minute(0))
    shutil.copytree(world.sink().path, world.path / "copy")
    world.read(minute(1), columns=OTHER, full_refresh=True)
    shutil.rmtree(world.sink().path)
    (world.path / "copy").rename(world.sink().path)
    with pytest.raises(TableOwnedByOther):
        world.read(minute(1), columns=OTHER)
    assert (held(world), status(world)) == ([minute(0)], "foreign")


def test_a_table_that_was_only_away_is_not_set_aside(world):
    world.read(minute(0))
    away = Path(world.sink().path).rename(world.path / "away")
    fail(world, number=1)
    shutil.rmtree(world.sink().path, ignore_errors=True)
    away.rename(world.sink().path)
    with pytest.raises(TableOwnedByOther, match="put back"):
        world.read(minute(1))
    assert held(world) == [minute(0)]


def drop(world):
    """As its owner may: the folder goes, or the catalog forgets the table."""
    sink = world.sink()
    if isinstance(sink, IcebergSink):
        catalog_of(sink).drop_table(sink.table)
    else:
        shutil.rmtree(sink.path)


@pytest.mark.slow_except("iceberg")
def test_a_table_that_is_made_again_after_the_landing_was_read_is_the_readers(world, tables, monkeypatch):
    """Two runs find it dropped; the other one makes it again before this one looks at its mark."""
    world.read(minute(0))
    drop(world)
    read = Journal.landing

    def then_the_other_lands(journal, *given):
        found = read(journal, *given)
        monkeypatch.setattr(Journal, "landing", read)
        world.read(minute(1))
        return found

    monkeypatch.setattr(Journal, "landing", then_the_other_lands)
    world.read(minute(2))
    assert (held(world), status(world)) == ([minute(1), minute(2)], "ours")


@pytest.mark.slow_except("delta-False", "iceberg-True")
@pytest.mark.parametrize("fills", [False, True])
def test_a_table_that_is_made_again_during_a_read_may_be_read_for_again(world, tables, fills):
    world.read(minute(0))

    def the_other_lands(_spec):
        world.before = lambda _spec: None
        drop(world)
        world.read(minute(1))

    world.before = the_other_lands
    with pytest.raises(TableRecreated):
        world.backfill(minute(2)) if fills else world.read(minute(2))
    assert [run.error_type for run in world.journal.runs(KEY, "reader", minute(2))] == ["TableRecreated"]
    world.read(minute(2))
    assert (held(world), status(world)) == ([minute(1), minute(2)], "ours")


@pytest.mark.slow_except("parquet-False", "delta-True")
@pytest.mark.parametrize("fills", [False, True])
def test_a_dropped_table_is_reported(world, tables, monkeypatch, fills):
    found, place = Reports(), World.place
    monkeypatch.setattr(World, "place", lambda *given: replace(place(*given), figures=found, on_missing=found.report))
    for number in (0, 1):
        world.read(minute(number))
    assert found.all == []
    drop(world)
    world.backfill(minute(2)) if fills else world.read(minute(2))
    key = FakeSource("numbers")
    lost = MissingWindows(key, "reader", world.sink().asset_uri, (minute(0), minute(1)), is_table_gone=True)
    assert found.all == [2, lost]
    assert "2 covered windows of reader 'reader' from 2026" in str(lost)
    world.read(minute(3))
    assert found.all == [2, lost], "once"


@pytest.mark.parametrize("tables", ["parquet"], indirect=True)
def test_removed_windows_are_reported_and_a_failing_callback_fails_no_run(world, tables, monkeypatch, caplog):
    found, place = Reports(), World.place

    def fail_to_report(missing):
        found.report(missing)
        raise RuntimeError("no pager")

    monkeypatch.setattr(World, "place", lambda *given: replace(place(*given), figures=found, on_missing=fail_to_report))
    for number in (0, 1):
        world.read(minute(number))
    shutil.rmtree(ParquetTable(world.sink().path).folder_of(minute(0)))
    _, outcome = world.backfill(Window(minute(0).start, minute(1).end))
    assert outcome.covered == (minute(0),)
    lost = MissingWindows(FakeSource("numbers"), "reader", world.sink().asset_uri, (minute(0),), is_table_gone=False)
    assert found.all == [1, lost]
    assert "no pager" in caplog.text


class Reports:
    """What is counted, and what is reported."""

    def __init__(self):
        self.all = []

    def report(self, found):
        self.all.append(found)

    def missing(self, _source, _reader, windows):
        self.all.append(windows)

    def covered(self, *_): ...

    def recounted(self, *_): ...


class Killed(BaseException):
    pass


@contextlib.contextmanager
def killed_after(renames):
    """The process ends in the place of the rename after so many; the block is left then."""
    rename, left = Path.rename, [renames]

    def killing(self, target):
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr(Path, "rename", killing)
        yield


@pytest.mark.slow_except("0", "3")
@pytest.mark.parametrize("renames", range(6))
def test_setting_a_folder_aside_may_be_killed_at_any_step(world, renames):
    for number in (0, 1):
        world.read(minute(number))
    with killed_after(renames):
        world.read(minute(2), columns=OTHER, full_refresh=True)
        assert renames > 3
    world.read(minute(2), columns=OTHER)
    assert (held(world), status(world)) == ([minute(2)], "ours")
    assert len(list(Path(world.sink().path).glob("_set_aside/*/window_start=*"))) == 2


@pytest.mark.slow_except("1")
@pytest.mark.parametrize("renames", range(6))
def test_an_old_run_that_lands_after_such_a_kill_is_set_aside_too(world, renames):
    for number in (0, 1):
        world.read(minute(number))

    def meanwhile(_spec):
        world.before = lambda _spec: None
        with killed_after(renames):
            world.read(minute(2), columns=OTHER, full_refresh=True)

    world.before = meanwhile
    with contextlib.suppress(TableOwnedByOther):
        world.read(minute(0), replan=True)
    for number in (2, 0, 1):
        world.read(minute(number), columns=OTHER)
    assert (held(world), status(world)) == ([minute(number) for number in range(3)], "ours")


# A table that keeps its columns

TYPED = {"value": Json("n long"), "undecodable": DecodeErrorPolicy()}


@pytest.mark.slow_except("delta-overrides0", "iceberg-overrides1")
@pytest.mark.parametrize("overrides", [{}, {"full_refresh": True}])
def test_what_a_first_run_that_failed_made_of_the_table_gives_way_to_the_corrected_one(world, tables, told, overrides):
    told("n string, shard int")
    fail(world, **TYPED | {"value": Json("n string")})
    told("n long, shard string")
    world.read(minute(0), **TYPED, **overrides)
    world.read(minute(1), **TYPED)
    assert (held(world), status(world)) == ([minute(0), minute(1)], "ours")


@pytest.mark.parametrize("tables", ["iceberg"], indirect=True)
def test_rows_that_the_table_can_never_take_leave_the_reader_as_it_was(world, tables, told):
    world.read(minute(0), **TYPED)
    before = world.journal.landing(KEY, "reader").id
    told("n double")
    for _ in range(2):
        with pytest.raises(SinkError, match=r"n is long, the rows have double.*another table, or drop this one"):
            world.read(minute(1), **TYPED, full_refresh=True)
    _, outcome = world.backfill(Window(minute(1).start, minute(2).end), value=TYPED["value"], full_refresh=True)
    assert len(outcome.failures) == 2
    assert world.journal.landing(KEY, "reader").id == before
    world.read(minute(0), **TYPED)
    assert (held(world), status(world)) == ([minute(0)], "ours")
    world.read(minute(1), **TYPED, sink="other", full_refresh=True)
    assert held(world, "other") == [minute(1)]


@pytest.mark.parametrize("tables", ["iceberg"], indirect=True)
def test_a_table_of_other_columns_is_made_again_once_it_is_dropped(world, tables, told):
    world.read(minute(0), **TYPED)
    told("n double")
    with load_catalog("iceberg_test", **tables) as catalog:
        catalog.drop_table("shop.lake")
    world.read(minute(1), **TYPED)
    assert (held(world), states(world)) == ([minute(1)], ["missing", "covered"])


@pytest.mark.parametrize("tables", ["iceberg"], indirect=True)
@pytest.mark.parametrize(
    ("value", "said"),
    [("n long, more string", "it lacks more string; widen=True"), ("n double", "n is long, the rows")],
)
def test_another_landing_whose_rows_the_table_cannot_take_leaves_the_reader_as_it_was(world, tables, value, said):
    world.hold(events=600, records=1)
    world.read(minute(0), **TYPED)
    before, other = world.journal.landing(KEY, "reader"), Json(value)
    for overrides in ({}, {"dry_run": True}, {}):
        with pytest.raises(SinkError, match=said):
            world.read(minute(1), **TYPED | {"value": other}, full_refresh=True, **overrides)
    for dry_run in (False, True):
        with pytest.raises(SinkError, match=said):
            world.backfill(Window(minute(1).start, minute(2).end), value=other, full_refresh=True, dry_run=dry_run)
    assert world.journal.landing(KEY, "reader") == before
    assert (held(world), status(world), states(world)) == ([minute(0)], "ours", ["covered", "missing"])
    world.read(minute(1), **TYPED)
    assert held(world) == [minute(0), minute(1)]
    world.read(minute(1), **TYPED | {"value": other}, sink="other", full_refresh=True)
    assert held(world, "other") == [minute(1)]


@pytest.mark.parametrize("tables", ["iceberg"], indirect=True)
def test_columns_that_the_table_may_get_are_landed_again(world, tables, monkeypatch):
    world.hold(events=600, records=1)
    monkeypatch.setattr(
        world, "sink", lambda _name="lake": IcebergSink("shop.lake", conn_id="iceberg_test", widen=True)
    )
    world.read(minute(0), **TYPED)
    world.read(minute(1), **TYPED | {"value": Json("n long, more string")}, full_refresh=True)
    assert (held(world), states(world)) == ([minute(1)], ["missing", "covered"])


@pytest.mark.parametrize("tables", ["iceberg"], indirect=True)
def test_where_columns_are_known_too_late_the_reader_goes_back_to_those_that_fit(world, tables):
    """Those of a transform; in these tests it returns the rows as they are."""
    world.hold(events=600, records=1)
    world.read(minute(0), **TYPED)
    for _ in range(2):
        with pytest.raises(SinkError, match="n is long, the rows have double"):
            world.read(
                minute(1), **TYPED | {"value": Json("n double")}, transform="shop.orders:paid", full_refresh=True
            )
    assert (held(world), status(world)) == ([minute(0)], "earlier")
    world.read(minute(1), **TYPED)
    assert (held(world), status(world)) == ([minute(1)], "ours")


@pytest.mark.slow_except("iceberg")
def test_a_table_of_another_reader_leaves_the_reader_that_asks_for_it_as_it_was(world, tables):
    world.read(minute(0), reader="other")
    world.read(minute(0), sink="own")
    for dry_run in (True, False):
        with pytest.raises(TableOwnedByOther, match="belongs to reader 'other'"):
            world.read(minute(1), full_refresh=True, dry_run=dry_run)
        with pytest.raises(TableOwnedByOther, match="belongs to reader 'other'"):
            world.backfill(Window(minute(0).start, minute(2).end), full_refresh=True, dry_run=dry_run)
    assert world.states(minute(0)) == ["covered"]
    world.read(minute(1), sink="own")
    assert held(world, "own") == [minute(0), minute(1)]


SPAN = Window(minute(0).start, minute(3).end)


def chosen(world, **how):
    """What a dry run shows, and what the backfill then does."""
    shown = world.backfill(SPAN, dry_run=True, **how)[0]
    preview, outcome = world.backfill(SPAN, **how)
    assert outcome.covered == tuple(item.window for item in preview.windows)
    return [item.window for item in shown.windows], list(outcome.covered)


TWO_MINUTES = [Window(minute(0).start, minute(1).end), Window(minute(2).start, minute(3).end)]


@pytest.mark.slow_except("parquet-how0", "iceberg-how1")
@pytest.mark.parametrize("how", [{"length": "2m"}, {"length": "2m", "columns": OTHER}])
def test_a_dry_run_shows_the_windows_that_are_landed_again(world, tables, how):
    world.backfill(SPAN)
    assert chosen(world, full_refresh=True, **how) == (TWO_MINUTES, TWO_MINUTES)


@pytest.mark.slow_except("iceberg")
def test_a_dry_run_shows_the_windows_of_a_schedule_that_is_corrected(world, tables):
    fail(world)
    assert chosen(world, length="2m") == (TWO_MINUTES, TWO_MINUTES)


@pytest.mark.slow_except("delta")
def test_a_dry_run_shows_the_windows_of_the_first_schedule(world, tables):
    world.before = die
    with pytest.raises(SparkDied):
        world.read(Window(minute(1).start, minute(3).end))
    world.before = lambda _spec: None
    assert chosen(world, length="2m") == (TWO_MINUTES, TWO_MINUTES)


@pytest.mark.parametrize("tables", ["parquet"], indirect=True)
def test_a_dry_run_shows_what_is_no_longer_in_the_table(world, tables):
    world.backfill(SPAN)
    shutil.rmtree(sorted(Path(world.sink("lake").path).glob("window_start=*"))[1])
    assert chosen(world) == ([minute(1)], [minute(1)])
    shutil.rmtree(world.sink("lake").path)
    every = [minute(number) for number in range(4)]
    assert chosen(world) == (every, every)


@pytest.mark.parametrize("tables", ["parquet"], indirect=True)
@pytest.mark.parametrize("whole", [False, True])
def test_a_dry_run_shows_the_cells_in_place_of_a_window_misaligned_that_is_gone(world, tables, whole):
    world.read(Window(minute(1).start, minute(3).end))
    world.backfill(Window(minute(4).start, minute(7).end), length="2m")
    lake = Path(world.sink("lake").path)
    shutil.rmtree(lake if whole else min(lake.glob("window_start=*")))
    assert chosen(world, length="2m") == (TWO_MINUTES, TWO_MINUTES)


@pytest.mark.parametrize("tables", ["parquet"], indirect=True)
def test_windows_of_a_table_that_is_gone_have_not_failed(world, tables):
    world.backfill(SPAN)
    shutil.rmtree(world.sink("lake").path)
    assert chosen(world, select="failed") == ([], [])


@pytest.mark.parametrize("tables", ["parquet"], indirect=True)
def test_over_a_copy_that_was_put_back_all_is_landed_again_if_asked_so(world, tables):
    world.backfill(SPAN)
    lake, copy = Path(world.sink("lake").path), world.path / "copy"
    shutil.copytree(lake, copy)
    world.backfill(SPAN, columns=OTHER, full_refresh=True)
    shutil.rmtree(lake)
    copy.rename(lake)
    for dry_run in (True, False):
        with pytest.raises(TableOwnedByOther, match="put back from a copy"):
            world.backfill(SPAN, columns=OTHER, dry_run=dry_run)
    every = [minute(number) for number in range(4)]
    assert chosen(world, columns=OTHER, full_refresh=True) == (every, every)
    assert (held(world), status(world)) == (every, "ours")


@pytest.mark.parametrize("tables", ["parquet"], indirect=True)
@pytest.mark.parametrize("backfills", [False, True])
def test_what_is_refused_for_another_owners_table_takes_no_window_back(world, tables, backfills):
    world.backfill(SPAN, reader="other", sink="sea")
    world.backfill(SPAN)
    lake, own = Path(world.sink("lake").path), world.path / "own"
    lake.rename(own)
    shutil.copytree(world.sink("sea").path, lake)
    with pytest.raises(TableOwnedByOther, match="belongs to"):
        world.backfill(SPAN, select="all", full_refresh=True) if backfills else world.read(minute(0), full_refresh=True)
    shutil.rmtree(lake)
    own.rename(lake)
    assert world.states(SPAN) == ["covered"] * 4
    assert status(world) == "ours"


def left_behind(world):
    """The reader was to land elsewhere, and nothing did."""
    world.backfill(SPAN)
    world.backfill(SPAN, sink="sea", select="failed", full_refresh=True)


def put_back(world):
    """The table was missing when a run began a new landing, and then failed."""
    world.backfill(SPAN)
    lake, away = Path(world.sink("lake").path), world.path / "away"
    lake.rename(away)
    fail(world)
    shutil.rmtree(lake, ignore_errors=True)
    away.rename(lake)


def of_another_journal(world):
    world.backfill(SPAN)
    world.journal.forget_reader(KEY, "reader")


@pytest.mark.slow_except("left_behind-parquet", "put_back-delta")
@pytest.mark.parametrize("tables", ["parquet", "delta"], indirect=True)
@pytest.mark.parametrize("happened", [left_behind, put_back, of_another_journal])
def test_a_dry_run_refuses_a_table_that_the_run_refuses(world, tables, happened):
    happened(world)
    for dry_run in (True, False):
        with pytest.raises(TableOwnedByOther, match="full_refresh=True"):
            world.backfill(SPAN, dry_run=dry_run)
        with pytest.raises(TableOwnedByOther, match="full_refresh=True"):
            world.read(minute(0), dry_run=dry_run)
    assert chosen(world, full_refresh=True)[0] == [minute(number) for number in range(4)]
