"""Windows of a folder, whatever else writes there while they are put in place."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.dataset as ds
import pytest

from airflow_provider_streams import ParquetSink
from airflow_provider_streams.errors import WindowsOverlap
from airflow_provider_streams.lake.data_files import FileTarget, WindowFiles
from airflow_provider_streams.lake.parquet.mark_file import Marked, read_mark, write_mark
from airflow_provider_streams.lake.parquet.table import ParquetTable
from tests.integration.lake.landing import TERMS, Attempt, hour, land, rows_of


@pytest.fixture
def sink(tmp_path):
    return ParquetSink(str(tmp_path / "orders"))


def held(sink):
    return sorted(ds.dataset(ParquetTable(sink.path).folder_of(hour(0))).to_table()["id"].to_pylist())


@pytest.mark.parametrize("begun", ["before", "within"])
@pytest.mark.parametrize("count", [0, 4])
def test_a_task_that_was_taken_for_lost_adds_nothing_to_the_window(sink, monkeypatch, begun, count):
    """Its executor lives on, and it ends as the window is put in place."""
    land(sink, hour(0), rows_of(90, 1))
    attempt = Attempt(sink, hour(0), rows_of(0, count)).write()
    late = WindowFiles(FileTarget.from_json(attempt.target.to_json()))
    (rows,) = rows_of(0, 4).to_batches()
    late.write(rows)
    if begun == "before":
        late._write_ahead()
    put, ended = ParquetTable.put, []

    def meanwhile(self, *given, **more):
        ended.append(late.finish())
        put(self, *given, **more)

    monkeypatch.setattr(ParquetTable, "put", meanwhile)
    attempt.commit()
    assert [one.rows for one in ended[0]] == [4]
    assert held(sink) == list(range(count))
    assert not list(ParquetTable(sink.path).staging.iterdir())


@pytest.mark.parametrize("noted", [True, False])
def test_a_longer_window_that_came_back_is_in_the_way_of_those_within_it(sink, noted):
    """A user moves a day back that a full refresh had set aside, and hours have landed since."""
    day, mark = hour(0, 24), replace(TERMS.mark, id="b" * 32)
    land(sink, day, rows_of(0, 3))
    for window in (hour(30), hour(3)):
        land(sink, window, rows_of(3, 1), mark=mark, set_aside=True)
    table = ParquetTable(sink.path)
    table.folder_of(day).mkdir(parents=True)
    for aside in list(table.set_aside.rglob("*.parquet.aside")):
        aside.rename(table.folder_of(day) / aside.stem)
    if not noted:
        write_mark(table.root, Marked(mark, None))
    with pytest.raises(WindowsOverlap, match=str(day)):
        land(sink, hour(5), rows_of(4, 1), mark=mark)
    land(sink, hour(5), rows_of(4, 1), mark=mark, replace_overlaps=True)
    assert set(table.windows()) == {hour(3), hour(5), hour(30)}
    assert read_mark(table.root).longest == day.end - day.start
