"""Numbers that became wider, at any depth: every reader finds older windows and newer ones as one table."""

from __future__ import annotations

import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from airflow_provider_streams import ParquetSink
from airflow_provider_streams.errors import SinkError, TableUnavailable
from airflow_provider_streams.lake.delta.table_version import DeltaVersion
from airflow_provider_streams.lake.parquet import table as parquet_table
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.parquet.type_widening import NEXT, Columns
from tests.integration.lake.engines import by_duckdb, by_its_library
from tests.integration.lake.kept_tables import KeptTable, table_in
from tests.integration.lake.landing import Attempt, hour, land

pytestmark = pytest.mark.lake


def columns(whole: pa.DataType, broken: pa.DataType, digits: int) -> pa.Schema:
    """The same numbers as columns, and in structs, lists and maps."""
    amount = pa.decimal128(digits, 2)
    inner = pa.struct([("whole", whole), ("name", pa.string()), ("amount", amount)])
    return pa.schema(
        [
            *(("id", pa.int32()), ("whole", whole), ("broken", broken), ("amount", amount), ("to", inner)),
            *(("list", pa.list_(whole)), ("rows", pa.list_(inner)), ("by_name", pa.map_(pa.string(), broken))),
            ("deep", pa.map_(pa.string(), pa.struct([("a", pa.list_(inner))]))),
        ]
    )


NARROW = columns(pa.int32(), pa.float32(), 9)
WIDE = columns(pa.int64(), pa.float64(), 12)


def row(number: int, whole: int, broken: float, amount: str) -> dict[str, Any]:
    inner = {"whole": whole, "name": "n", "amount": Decimal(amount)}
    return {
        "id": number,
        "whole": whole,
        "broken": broken,
        "amount": Decimal(amount),
        "to": inner,
        "list": [whole, None],
        "rows": [inner, None],
        "by_name": [("k", broken)],
        "deep": [("k", {"a": [inner]})],
    }


OLD, ALSO_OLD, NEW = row(0, -7, 0.5, "1.25"), row(1, 2**31 - 1, -2.0, "-9.75"), row(2, 2**40, 0.1, "1234567890.25")


def narrow(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), NARROW)


def wide(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), WIDE)


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def table(request, tmp_path):
    options = {} if request.param == "parquet" else {"widen": True}
    with table_in(request.param, tmp_path, **options) as table:
        yield table


def check(sink: Any, *expected: dict[str, Any]) -> None:
    for read in (by_duckdb, by_its_library):
        found = sorted(read(sink), key=lambda one: one["id"])
        told = [{name: _plain(one.get(name)) for name in WIDE.names} for one in found]
        assert told == [{name: _plain(one[name]) for name in WIDE.names} for one in expected], read.__name__


def _plain(value: Any) -> Any:
    """DuckDB's maps are dictionaries."""
    return dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


def file_types(table: KeptTable) -> set[str]:
    """What the numbers of a folder's files are: engines that take the first file's for all of them go by these."""
    files = [file for file in Path(table.sink.path).rglob("*.parquet") if "_staging" not in file.parts]
    return {str(pq.read_schema(file).field("whole").type) for file in files}


def test_numbers_become_wider_and_windows_of_both_types_are_one_table(table):
    for number, rows in enumerate([narrow(OLD), narrow(ALSO_OLD), wide(NEW), narrow()]):
        land(table.sink, hour(number), rows)
    check(table.sink, OLD, ALSO_OLD, NEW)
    land(table.sink, hour(1), narrow(ALSO_OLD))  # as its older plan has it
    land(table.sink, hour(0), wide(OLD))
    land(table.sink, hour(2), wide(NEW))
    check(table.sink, OLD, ALSO_OLD, NEW)
    assert {hour(0), hour(1), hour(2)} <= table.windows()


@pytest.mark.parametrize("table", ["delta"], indirect=True)
def test_deltas_log_and_ours_say_that_the_older_files_were_written_again(table, caplog):
    land(table.sink, hour(0), narrow(OLD))
    land(table.sink, hour(1), wide(NEW))
    assert "all files are rewritten" in caplog.text
    newest, before, *_ = DeltaTable(table.sink.path).history()
    assert newest["streams.rewritten"].split(", ")[:3] == ["whole", "broken", "amount"]
    assert "streams.rewritten" not in before


def test_without_leave_nothing_becomes_wider(table):
    if isinstance(table.sink, ParquetSink):
        return  # the reader's landing says so before, see `test_landing`
    sink = replace(table.sink, widen=False)
    land(sink, hour(0), narrow(OLD))
    with pytest.raises(SinkError, match=r"whole.*widen=True"):
        land(sink, hour(1), wide(NEW))
    check(sink, OLD)
    land(table.sink, hour(1), wide(NEW))
    land(sink, hour(0), narrow(OLD))  # narrower ones may go in as ever
    check(sink, OLD, NEW)


@pytest.mark.parametrize(
    ("before", "after"),
    [(pa.int64(), pa.float64()), (pa.decimal128(9, 2), pa.decimal128(12, 3)), (pa.int32(), pa.string())],
)
def test_what_is_no_promotion_is_refused(table, before, after):
    if isinstance(table.sink, ParquetSink):
        return
    land(table.sink, hour(0), pa.table({"x": pa.nulls(1, before)}))
    with pytest.raises(SinkError, match="x"):
        land(table.sink, hour(1), pa.table({"x": pa.nulls(1, after)}))


def test_what_was_written_with_narrower_numbers_lands_after_they_became_wider(table):
    land(table.sink, hour(0), narrow(OLD))
    late = Attempt(table.sink, hour(1), narrow(ALSO_OLD)).write()
    land(table.sink, hour(2), wide(NEW))
    try:
        late.commit()
    except TableUnavailable:  # and is written once more
        late.writer.discard()
        land(table.sink, hour(1), narrow(ALSO_OLD))
    check(table.sink, OLD, ALSO_OLD, NEW)
    if isinstance(table.sink, ParquetSink):
        assert file_types(table) == {"int64"}


@pytest.mark.parametrize("table", ["delta"], indirect=True)
def test_a_window_that_lands_while_files_are_rewritten_is_also_rewritten(table, monkeypatch):
    land(table.sink, hour(0), narrow(OLD))
    commit = DeltaVersion.replace

    def second(self, *arguments):
        monkeypatch.undo()
        land(table.sink, hour(1), narrow(ALSO_OLD))
        return commit(self, *arguments)

    monkeypatch.setattr(DeltaVersion, "replace", second)
    land(table.sink, hour(2), wide(NEW))
    check(table.sink, OLD, ALSO_OLD, NEW)
    # what is not in the log any more is in earlier versions, but for what was rewritten before the other one landed
    assert len(DeltaTable(table.sink.path).file_uris()) == 3
    assert len(table.files()) == 6 - 1


class Killed(BaseException):
    pass


@pytest.mark.parametrize("table", ["parquet"], indirect=True)
@pytest.mark.parametrize("ends", ["by the same window", "by another one"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_kill_while_files_are_rewritten_is_ended_by_whatever_lands_next(table, monkeypatch, after, ends):
    land(table.sink, hour(0), narrow(OLD))
    land(table.sink, hour(1), narrow(ALSO_OLD))
    done = []
    replace_folder = parquet_table.replace_folder

    def exchange(ready, folder):
        if len(done) == after:
            raise Killed
        done.append(folder)
        replace_folder(ready, folder)

    monkeypatch.setattr(parquet_table, "replace_folder", exchange)
    attempt = Attempt(table.sink, hour(2), wide(NEW)).write()
    with pytest.raises(Killed):
        attempt.commit()
    monkeypatch.undo()
    check(table.sink, OLD, ALSO_OLD)
    assert (Path(table.sink.path) / NEXT).exists() == (after < 2)
    land(table.sink, hour(2), wide(NEW) if ends == "by the same window" else narrow(replace_id(OLD, 2)))
    check(table.sink, OLD, ALSO_OLD, NEW if ends == "by the same window" else replace_id(OLD, 2))
    assert file_types(table) == {"int64"}
    assert not (Path(table.sink.path) / NEXT).exists()


def replace_id(one: dict[str, Any], number: int) -> dict[str, Any]:
    return {**one, "id": number}


@pytest.mark.parametrize("table", ["parquet"], indirect=True)
def test_an_older_folder_has_its_columns_noted_by_its_files(table):
    land(table.sink, hour(0), narrow(OLD))
    (Path(table.sink.path) / "_columns").unlink()
    land(table.sink, hour(1), wide(NEW))
    check(table.sink, OLD, NEW)
    assert file_types(table) == {"int64"}
    assert Columns(ParquetTable(table.sink.path)).read().field("whole").type == pa.int64()
    shutil.rmtree(ParquetTable(table.sink.path).folder_of(hour(1)))
    check(table.sink, OLD)
