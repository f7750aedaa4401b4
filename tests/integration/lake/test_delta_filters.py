"""Readers that pass over files by what the log says of them find every row that they look for."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, isnan, nan

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from deltalake import DeltaTable, QueryBuilder

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.lake.delta.writer import storage_of
from tests.integration.lake import duck
from tests.integration.lake.delta_reading import adds
from tests.integration.lake.landing import hour, land

DAY = datetime(2026, 11, 20, tzinfo=UTC)
LAST = datetime.fromisoformat("9999-12-31T23:59:59.999999")
TICK = timedelta(microseconds=1001)

BOUND = {
    "id": (pa.int64(), lambda n: n),
    "price": (pa.decimal128(9, 2), lambda n: Decimal(n) / 4),
    "small": (pa.decimal128(15, 14), lambda n: Decimal(n - 5).scaleb(-3)),
    "fine": (pa.decimal128(15, 0), lambda n: Decimal(10**15 - 1 - n)),
    "wide": (pa.int64(), lambda n: 2**63 - 1 - n if n % 2 else n - 2**63),
    "odd": (pa.string(), lambda n: "\U0010ffff" * (n + 53) if n % 2 else "\uffff" + "\x01" * n),
    "past": (pa.timestamp("us", "UTC"), lambda n: datetime(1700, 1, 1, tzinfo=UTC) + n * TICK),
    "paid": (pa.bool_(), lambda n: n % 2 == 0),
    "raw": (pa.binary(), lambda n: b"%d" % n),
    "text": (pa.string(), lambda n: "abcdefghijkl"[n] * (1 if n % 3 else 90)),
    "at": (pa.timestamp("us", "UTC"), lambda n: DAY + n * TICK),
    "day": (pa.date32(), lambda n: date(2026, 1, n + 1)),
    "seldom": (pa.decimal128(9, 2), lambda n: Decimal(n) if n > 9 else None),
    "never": (pa.float64(), lambda _: None),
    "often": (pa.int64(), lambda n: n if n % 5 else None),
    "tags": (pa.list_(pa.string()), lambda n: ["t"] * n),
}
UNBOUND = {
    "tiny": (pa.decimal128(15, 14), lambda n: Decimal(n - 5).scaleb(-14)),
    "large": (pa.decimal128(38, 1), lambda n: n * Decimal(10**20) + Decimal("0.1")),
    "rate": (pa.float64(), lambda n: {3: nan, 4: inf, 5: -inf}.get(n, n / 4)),
    "narrow": (pa.float32(), lambda n: n / 4),
    "local": (pa.timestamp("us"), lambda n: LAST if n == 7 else DAY.replace(tzinfo=None) + n * TICK),
}
"""One of them, and the log has no bounds of a file."""
SHOP = {
    "a.b": (pa.int64(), lambda n: n),
    "a": (pa.struct([("b", pa.int64())]), lambda n: {"b": 1000 + n} if n % 5 else None),
}
TABLES = {"with bounds": BOUND, "without": {**BOUND, **UNBOUND}, "with a struct": {**BOUND, **SHOP}}
CASES = [(kind, name) for kind, columns in TABLES.items() for name in columns if name not in {"a", "tags"}]


def rows_of(columns, numbers) -> pa.Table:
    schema = pa.schema([(name, type_) for name, (type_, _) in columns.items()])
    rows = [
        {name: value(n) if n < 12 or name == "id" else None for name, (_, value) in columns.items()} for n in numbers
    ]
    return pa.Table.from_pylist(rows, schema)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Of each kind one with four windows, the last of one row without values."""
    sinks = {}
    for kind, columns in TABLES.items():
        sink = sinks[kind] = DeltaSink(str(tmp_path_factory.mktemp("filters") / "orders"))
        for number, numbers in enumerate([range(4), range(4, 8), range(8, 12), [99]]):
            land(sink, hour(number), rows_of(columns, numbers))
        has_bounds = ["minValues" in json.loads(one["stats"]) for one in adds(storage_of(sink)).values()]
        assert (
            all(has_bounds) if columns is BOUND else has_bounds.count(True) == (columns is not TABLES["with a struct"])
        )
    return sinks


def ids_of(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def by_sql(sink: DeltaSink, where: str) -> list[list[int]]:
    """What DataFusion and DuckDB find."""
    builder = QueryBuilder().register("t", DeltaTable(sink.path))
    with duck.connect(storage_of(sink), "delta") as engine:
        engine.execute(f"CREATE VIEW t AS SELECT * FROM delta_scan('{sink.path}')")  # noqa: S608
        found = engine.execute(f"SELECT id FROM t WHERE {where}").fetchall()  # noqa: S608
    return [ids_of(builder.execute(f"SELECT id FROM t WHERE {where}").read_all()), sorted(one for (one,) in found)]  # noqa: S608


@pytest.mark.slow_except(
    "with bounds-id",
    "with bounds-past",
    "with bounds-seldom",
    "without-fine",
    "without-text",
    "without-tiny",
    "with a struct-price",
    "with a struct-paid",
)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_each_value_is_found_by_each_reader(tables, kind, name):
    type_, value_of = TABLES[kind][name]
    for number in (0, 3, 4, 11):
        value = value_of(number)
        if value is None or (isinstance(value, float) and isnan(value)):
            continue
        meant = [n for n in range(12) if value_of(n) == value]
        assert ids_of(DeltaTable(tables[kind].path).to_pyarrow_table(filters=[(name, "=", value)])) == meant
        assert by_sql(tables[kind], f'"{name}" = {_literal(value, type_)}') == [meant, meant]


def _literal(value: object, type_: pa.DataType) -> str:
    match value:
        case bool() | int():
            return str(value)
        case float():
            return f"CAST('{value}' AS {'DOUBLE' if pa.types.is_float64(type_) else 'FLOAT'})"
        case Decimal():
            return f"CAST('{value:f}' AS DECIMAL({type_.precision}, {type_.scale}))"
        case bytes():
            return f"CAST('{value.decode()}' AS BYTEA)"
        case datetime():
            return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP{'TZ' if value.tzinfo else ''})"
    return f"CAST('{value}' AS {'DATE' if isinstance(value, date) else 'VARCHAR'})"


@pytest.mark.slow_except(
    "with bounds-id",
    "with bounds-past",
    "with bounds-seldom",
    "without-fine",
    "without-text",
    "without-tiny",
    "with a struct-price",
    "with a struct-paid",
)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_rows_without_a_value_are_found_by_each_reader(tables, kind, name):
    meant = [n for n in range(12) if TABLES[kind][name][1](n) is None] + ([] if name == "id" else [99])
    assert by_sql(tables[kind], f'"{name}" IS NULL') == [meant, meant]
    dataset = DeltaTable(tables[kind].path).to_pyarrow_dataset()
    assert ids_of(dataset.to_table(filter=pads.field(name).is_null())) == meant


def test_structs_and_their_fields_are_found(tables):
    dataset = DeltaTable(tables["with a struct"].path).to_pyarrow_dataset()
    assert ids_of(dataset.to_table(filter=pads.field("a", "b") == 1007)) == [7]
    assert ids_of(dataset.to_table(filter=pads.field("a").is_null())) == [0, 5, 10, 99]
    assert ids_of(dataset.to_table(filter=pads.field("a").is_valid())) == [n for n in range(12) if n % 5]


@pytest.mark.parametrize("count", [5, 32, 33, 40])
def test_columns_in_another_order_are_found(tmp_path, count):
    sink = DeltaSink(str(tmp_path / "orders"))
    names = [f"c{number}" for number in range(count)]
    row = pa.table({name: [number] for number, name in enumerate(names)})
    land(sink, hour(0), row)
    land(sink, hour(1), row.select(names[::-1]))
    for number, name in enumerate(names):
        found = DeltaTable(sink.path).to_pyarrow_table(filters=[(name, "=", number)])
        assert len(found) == 2, name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.dataSkippingNumIndexedCols", "-1"),
        ("delta.dataSkippingNumIndexedCols", "1"),
        ("delta.dataSkippingStatsColumns", "c0,c39"),
    ],
)
def test_whatever_a_table_says_of_its_bounds(tmp_path, name, value):
    sink = DeltaSink(str(tmp_path / "orders"))
    row = pa.table({f"c{number}": [number] for number in range(40)})
    land(sink, hour(0), row)
    DeltaTable(sink.path).alter.set_table_properties({name: value})
    land(sink, hour(1), row)
    for number in (0, 1, 31, 32, 39):
        assert len(DeltaTable(sink.path).to_pyarrow_table(filters=[(f"c{number}", "=", number)])) == 2


def test_a_column_that_a_window_lacks_is_null_in_it(tmp_path):
    sink = DeltaSink(str(tmp_path / "orders"), widen=True)
    land(sink, hour(0), pa.table({"id": [1, 2], "x": [1, 2]}))
    land(sink, hour(1), pa.table({"id": [4], "n": [8]}))
    dataset = DeltaTable(sink.path).to_pyarrow_dataset()
    assert ids_of(dataset.to_table(filter=pads.field("x").is_null())) == [4]
    assert ids_of(dataset.to_table(filter=pads.field("x").is_valid())) == [1, 2]
