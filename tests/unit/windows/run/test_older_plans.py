"""Plans from before the table got more columns: their windows land as they did; a mistake never lands."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from airflow_provider_streams.errors import LandingMismatch
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from tests.unit.windows.plan.test_payload_decoding import minute, pinned, rows

NARROW, WIDE, OTHER = Json("n long"), Json("n long, shard string"), Json("n long, other string")
WIDER = Json("n long, shard string, other string")
OF_FILES = {"_publish_time", "_shard", "_number"}


@pytest.fixture
def world(world):
    world.hold(events=600, records=1)
    return world


def fail(world, number, value, **acts):
    """A run that ends when its plan is pinned: killed, or refused for columns that the table cannot take."""

    def end(_spec):
        raise SystemExit

    world.before = end
    with pytest.raises((SystemExit, LandingMismatch)):
        world.read(minute(number), value=value, **acts)
    world.before = lambda _spec: None


def of(world, number):
    """The rows of a window, as its files have them."""
    import pyarrow.parquet as pq

    files = sorted(ParquetTable(world.sink().path).folder_of(minute(number)).glob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def test_a_window_lands_again_as_it_did_whatever_the_table_got_since(world):
    world.read(minute(0), value=NARROW)
    before, plan = of(world, 0), pinned(world, 0)
    world.read(minute(1), value=WIDE, replan=True)
    for _ in range(2):
        assert world.read(minute(0), value=WIDE).receipt.rows == 120
        assert (of(world, 0), pinned(world, 0)) == (before, plan)
    world.read(minute(0), value=WIDE, replan=True)
    assert None not in {row["shard"] for row in rows(world)}, "which is how it gets them"


def test_the_log_says_what_is_null(world, caplog):
    world.read(minute(0), value=NARROW)
    world.read(minute(1), value=WIDE, replan=True)
    assert "null in its rows" not in caplog.text
    world.read(minute(0), value=WIDE)
    assert "was planned before the table got shard: null in its rows, until replan=True" in caplog.text


def test_what_was_planned_before_and_never_landed_lands_as_it_would_have(world):
    world.read(minute(0), value=NARROW)
    fail(world, 1, NARROW)
    world.read(minute(2), value=WIDE, replan=True)
    world.read(minute(1), value=WIDE)
    assert set(of(world, 1)[0]) == {"n", *OF_FILES}


def test_a_backfill_lands_older_plans_next_to_fresh_ones(world):
    world.read(minute(1), value=NARROW)
    fail(world, 2, NARROW)
    world.read(minute(3), value=WIDE, replan=True)
    _, outcome = world.backfill(Window(EPOCH, minute(4).end), value=WIDE, select="all")
    assert not outcome.failures
    assert ["shard" in of(world, number)[0] for number in range(5)] == [True, False, False, True, True]


def test_structs_grow_as_tables_do(world, caplog):
    narrow, wide = Json("n long, to struct<a: long>"), Json("n long, to struct<b: string, a: long>")
    world.read(minute(1), value=narrow)
    fail(world, 2, narrow)
    world.read(minute(3), value=wide, replan=True)
    _, outcome = world.backfill(Window(EPOCH, minute(4).end), value=wide, select="all")
    assert not outcome.failures
    kept = dict(world.journal.landing(FakeSource("numbers").key, "reader").columns)
    assert kept["to"] == "struct<a:bigint,b:string>"
    world.read(minute(2), value=wide)
    assert "before the table got to.b: null in its rows" in caplog.text
    world.read(minute(2), value=wide, replan=True)
    with pytest.raises(LandingMismatch, match=r"to\.b is missing, it was string"):
        world.read(minute(2), value=narrow, replan=True)


def test_a_mistake_leaves_no_plan(world):
    world.read(minute(0), value=WIDE)
    with pytest.raises(LandingMismatch, match=r"instead of json.*plan the window again with replan=True"):
        world.read(minute(1), value=NARROW)
    for _ in range(2):
        with pytest.raises(LandingMismatch, match=r"shard is missing.*its window was not planned"):
            world.read(minute(1), value=NARROW, replan=True)
        assert pinned(world, 1) is None
    world.read(minute(1), value=WIDE)
    assert None not in {row["shard"] for row in rows(world)}


@pytest.mark.parametrize(
    ("value", "said"), [(OTHER, "shard is missing"), (Json("n long, shard int"), "shard is int instead of string")]
)
def test_an_older_plan_with_columns_of_other_names_or_types_is_refused(world, value, said):
    world.read(minute(0), value=NARROW)
    fail(world, 1, value, replan=True)
    world.read(minute(2), value=WIDE, replan=True)
    with pytest.raises(LandingMismatch, match=said):
        world.read(minute(1), value=WIDE)


def test_a_window_of_a_chain_lands_again_as_it_did(world):
    world.read(minute(0), value=NARROW, basis="chained")
    before = of(world, 0)
    world.read(minute(1), value=WIDE, replan=True, basis="chained")
    world.read(minute(0), value=WIDE, basis="chained")
    assert (of(world, 0), pinned(world, 1).start_cut) == (before, pinned(world, 0).end_cut)


def test_landed_again_an_older_plan_gets_what_the_table_has(world):
    """It was pinned for another landing, into whose table no run lands any more."""
    world.read(minute(0), value=NARROW)
    fail(world, 1, NARROW)
    world.read(minute(2), value=WIDE, full_refresh=True)
    for number in (0, 1):
        world.read(minute(number), value=WIDE)
    assert None not in {row["shard"] for row in rows(world)}


def test_planning_again_is_not_advised_where_it_does_not_help(world):
    world.read(minute(0), value=NARROW)
    for asked in ({"columns": ("n",)}, {"sink": "other"}, {"transform": "shop:clean"}):
        with pytest.raises(LandingMismatch) as caught:
            world.read(minute(1), value=WIDE, **asked)
        assert "replan" not in str(caught.value)


@pytest.mark.slow_except("0")
@pytest.mark.parametrize("seed", range(6))
def test_whatever_comes_between_a_landed_window_lands_again_and_loses_nothing(world, seed):
    dice, windows = random.Random(seed), range(4)  # noqa: S311
    table: set[str] = set()
    kept, landed = NARROW, {}
    for _ in range(25):
        number, value = dice.choice(windows), dice.choice((NARROW, WIDE, OTHER, WIDER))
        match dice.randrange(4):
            case 0:
                fail(world, number, value, replan=True)
                landed.pop(number, None)
            case 1:
                with suppress(LandingMismatch):
                    landed.pop(number, None)
                    world.read(minute(number), value=value, replan=True)
                    kept, landed[number] = value, of(world, number)
                    assert table <= set(landed[number][0]), "a fresh plan lacks nothing"
            case _:
                again = number in landed
                try:
                    world.read(minute(number), value=kept if landed else value)
                except LandingMismatch:
                    assert not again
                    continue
                kept = kept if landed else value
                assert not again or of(world, number) == landed[number]
                landed[number] = of(world, number)
                plan = pinned(world, number)
                assert {field.name for field in plan.decoding.value.fields} <= set(landed[number][0])
        table |= {name for found in landed.values() for name in found[0]}
    kept_columns = world.journal.landing(FakeSource("numbers").key, "reader").columns or ()
    assert table <= {name for name, _ in kept_columns}
