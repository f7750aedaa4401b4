"""What a read leaves in the folder of a Parquet table, and what it leaves alone there."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_streams import ParquetSink, Window
from airflow_provider_streams.errors import EventsLost, SinkError
from airflow_provider_streams.lake.parquet import table as parquet_table
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.parquet.writer import ParquetWriter
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.testing.fake import EPOCH
from tests.unit.windows.conftest import MINUTE

WINDOW = Window(EPOCH, EPOCH + MINUTE)
TERMS = TableTerms(TableMark("a" * 32, "fake:fake_default:numbers", "reader"))


def lose(_spec):
    raise EventsLost("numbers-0", 1, 2, "1 entry", "a user removed it")


def entries(folder):
    return sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*"))


@pytest.mark.parametrize("is_there", [True, False], ids=["a folder", "no folder"])
def test_a_read_that_fails_before_the_table_is_claimed_leaves_nothing(world, is_there):
    lake = world.path / "lake"
    if is_there:
        lake.mkdir()
    with pytest.raises(SinkError, match="window_start"):
        world.read(WINDOW, value=Json("n long, window_start string"))
    assert lake.exists() == is_there
    world.before = lose
    with pytest.raises(EventsLost):
        world.read(WINDOW, value=Json("n long"))
    assert lake.exists() == is_there
    assert not is_there or entries(lake) == []


def test_what_another_attempt_stages_stays(world):
    writers = [ParquetWriter(ParquetSink(str(world.path / "lake")), WINDOW, TERMS) for _ in range(2)]
    for writer in writers:
        writer.open_quarantine()
    writers[0].discard()
    assert writers[1].quarantine.is_dir()
    writers[1].discard()


def test_an_attempt_begins_again_if_another_one_removes_its_folders_meanwhile(world, monkeypatch):
    sink = ParquetSink(str(world.path / "lake"))
    first, second = (ParquetWriter(sink, WINDOW, TERMS) for _ in range(2))
    first.open_quarantine()
    monkeypatch.setattr(second._lock, "begin", after(first.discard, second._lock.begin))
    assert second.open_quarantine().is_dir()
    second.discard()
    first.open_quarantine()
    monkeypatch.setattr(parquet_table, "open_lock", after(first.discard, parquet_table.open_lock))
    ParquetTable(sink.path).claim(TERMS)
    assert ParquetTable(sink.path).state().mark == TERMS.mark


def after(other, act):
    """The act, before which another process does something once."""
    left = [other]

    def acting(*arguments):
        if left:
            left.pop()()
        return act(*arguments)

    return acting


@pytest.mark.parametrize(
    "odd",
    [
        "window_start=monday/window_end=20261120T100100Z",
        "window_start=20261120T100000Z/window_end=later",
        "window_start=20261120T100000Z/window_end=20261120T100000Z",
        "window_start=20261120T100000Z/window_end=20261120T095900Z",
    ],
)
def test_folders_whose_edges_are_no_window_are_of_no_window(world, odd):
    world.read(WINDOW)
    lake = world.path / "lake"
    others = [lake / odd / "part-0.parquet", lake / "day=1" / "part-0.parquet"]
    for other in others:
        other.parent.mkdir(parents=True)
        pq.write_table(pa.table({"value": [b"theirs"]}), other)
    assert world.windows() == [WINDOW]
    assert world.states(WINDOW) == ["covered"]
    world.read(WINDOW, replan=True)
    assert all(other.exists() for other in others)
    world.read(WINDOW, columns=("value",), full_refresh=True)
    assert [other.exists() for other in others] == [False, True]
    assert len(list(lake.glob(f"_set_aside/*.aside/{odd}/part-0.parquet.aside"))) == 1
    assert world.windows() == [WINDOW]
