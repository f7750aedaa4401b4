"""Plans that were pinned for another landing: their windows get the columns that the reader lands now."""

from datetime import timedelta

import pytest

from airflow_provider_streams.errors import DecodeError, InvalidRequest, LandingMismatch
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH, FakeSource

MINUTE = timedelta(minutes=1)
NARROW, WIDE, OTHER = Json("n long"), Json("n long, shard string"), Json("n double")


def minute(number):
    return Window(EPOCH + number * MINUTE, EPOCH + (number + 1) * MINUTE)


@pytest.fixture
def world(world):
    world.hold(events=600, records=1)
    return world


def pinned(world, number, reader="reader"):
    return world.journal.pinned(FakeSource("numbers").key, reader, minute(number))


def rows(world, name="lake"):
    import pyarrow.dataset as ds

    return ds.dataset(world.sink(name).path, partitioning="hive", exclude_invalid_files=True).to_table().to_pylist()


def test_landed_again_with_more_columns_earlier_windows_have_them_too(world):
    for number in (0, 1):
        world.read(minute(number), value=NARROW)
    world.read(minute(2), value=WIDE, full_refresh=True)
    before = pinned(world, 0)
    for number in (0, 1):
        world.read(minute(number), value=WIDE)
    found = rows(world)
    assert len(found) == 3 * 120
    assert None not in {row["shard"] for row in found}
    assert pinned(world, 0).splits == before.splits, "the positions stay"


def test_landed_again_with_other_types_the_first_window_has_them(world):
    world.read(minute(0), value=NARROW)
    world.read(minute(0), value=OTHER, full_refresh=True)
    world.read(minute(1), value=OTHER)
    assert {type(row["n"]) for row in rows(world)} == {float}


def test_once_read_so_the_pin_stays(world):
    world.read(minute(0), value=NARROW)
    world.read(minute(0), value=WIDE, full_refresh=True)
    plan = pinned(world, 0)
    world.read(minute(0), value=WIDE)
    assert pinned(world, 0) == plan
    with pytest.raises(LandingMismatch):
        world.read(minute(0), value=OTHER)
    assert pinned(world, 0) == plan


def test_a_mistake_that_nothing_was_landed_under_is_mended_without_an_act(world):
    for _ in range(2):
        with pytest.raises(DecodeError):
            world.read(minute(0), value=Json("n int, shard int"), undecodable=DecodeErrorPolicy())
    landed = world.read(minute(0), value=WIDE, undecodable=DecodeErrorPolicy())
    assert landed.receipt.rows == 120


def test_bytes_become_columns_and_columns_bytes(world):
    world.read(minute(0))
    assert world.read(minute(0), value=WIDE, full_refresh=True).receipt.rows == 120
    assert {"n", "shard"} <= set(rows(world)[0])
    world.read(minute(0), full_refresh=True)
    assert isinstance(rows(world)[0]["value"], bytes)


def test_a_backfill_reads_what_another_landing_left_with_the_present_columns(world):
    for number in range(3):
        world.read(minute(number), value=NARROW)
    world.read(minute(3), value=WIDE, full_refresh=True)
    world.backfill(Window(EPOCH, minute(3).end), value=WIDE)
    assert len(rows(world)) == 4 * 120
    assert None not in {row["shard"] for row in rows(world)}


def test_a_chain_keeps_its_positions(world):
    for number in range(3):
        world.read(minute(number), value=NARROW, basis="chained")
    before = [pinned(world, number) for number in range(3)]
    for number in range(3):
        world.read(minute(number), value=WIDE, basis="chained", full_refresh=number == 0)
    assert [pinned(world, number).end_cut for number in range(3)] == [plan.end_cut for plan in before]
    found = rows(world)
    assert (len(found), len({(row["shard"], row["n"]) for row in found})) == (sum_of(before), sum_of(before))


def sum_of(plans):
    return sum(split.entries for plan in plans for split in plan.splits)


def test_by_another_time_windows_are_planned_again(world):
    """A pinned plan by the former time would give events to two windows, or to none."""
    first, second = (EventTime(MINUTE, event_time="n", unit=unit) for unit in ("s", "ms"))
    world.read(minute(0), value=NARROW, basis=first)
    world.read(minute(1), value=NARROW, basis=second, full_refresh=True)
    world.read(minute(0), value=NARROW, basis=second)
    assert pinned(world, 0).terms.unit == "ms"
    assert pinned(world, 0).terms.changes(pinned(world, 1).terms) == []


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("field", ["_shard", "_SHARD"])
def test_a_field_with_the_name_of_a_metadata_column_is_refused_before_a_plan_is_pinned(world, field, dry_run):
    with pytest.raises(InvalidRequest, match=f"field '{field}', which is also the name of a metadata column"):
        world.read(minute(0), value=Json(f"n long, {field} long"), dry_run=dry_run)
    assert pinned(world, 0) is None
    world.read(minute(0), value=NARROW)
