"""A split of database changes becomes change rows, and the receipt counts every message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import DecodeError
from airflow_provider_streams.formats.arrow.arrays import listed
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.schema.change_payload import Debezium
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.datasource.split_reading import open_split
from airflow_provider_streams.systems.change_sampling import sampled_splits, with_changes
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.registry import declaration_of
from tests.unit.formats.change_data.debezium_messages import change, key_of, raw
from tests.unit.formats.change_data.test_mysql_json import CANAL, CANAL_COLUMNS

PLAN = Plan.from_json(
    json.loads((Path(__file__).parents[2] / "model" / "plan" / "plan_by_publish_time.json").read_text())
)
PLAN = replace(PLAN, filter=None)
SPLIT = PLAN.splits[0]

MESSAGES = [
    change("c", {"id": 1, "name": "a"}), b"", {"ts_ms": 1}, change("t"), {"op": "?"},
    change("u", {"id": 1, "name": "b"}),
    {"status": "END", "id": "7", "event_count": 2, "ts_ms": 1, "data_collections": []},
]  # fmt: skip


class Prepared:
    """A system of one batch, and its reader."""

    def __init__(self, name: str, columns: dict[str, pa.Array[Any]]) -> None:
        self.name, self._columns = name, columns
        self._count = len(next(iter(columns.values())))
        self.asked: tuple[str, ...] = ()

    def schema(self, columns: tuple[str, ...]) -> pa.Schema:
        return pa.schema([pa.field(name, self._columns[name].type) for name in columns])

    def read(self, _plan: Any, _split: Any, columns: tuple[str, ...], **_: str) -> Prepared:
        self.asked = columns
        return self

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({name: self._columns[name] for name in self.asked})

    @property
    def receipt(self) -> SplitReceipt:
        return SplitReceipt(0, rows=self._count, bytes=1000, entries=self._count)

    def close(self) -> None:
        pass


def pulsar(values: list[Any]) -> Prepared:
    count = len(values)
    numbers = {name: pa.array(range(count), pa.int64()) for name in ("entry", "batch_index")}
    columns = {
        "value": listed([raw(one) for one in values]), "key_bytes": listed([key_of(id=1)] * count),
        "ledger": pa.array([5] * count, pa.int64()), **numbers,
    }  # fmt: skip
    return Prepared("pulsar", columns)


def pravega(values: list[Any]) -> Prepared:
    count = len(values)
    segments = pa.array([1 << 32] * count, pa.int64())
    columns = {
        "event": listed([raw(one) for one in values]), "segment_id": segments,
        "offset": pa.array(range(0, 100 * count, 100), pa.int64()),
    }  # fmt: skip
    return Prepared("pravega", columns)


def read(system: Prepared, columns: str, **others: Any) -> tuple[list[dict[str, Any]], SplitReceipt]:
    change_format = ChangeFormat(parse_columns(columns), **others)
    plan = replace(PLAN, decoding=Decoding(change_format.type, changes=change_format))
    names = tuple(one.name for one in change_format.type.fields)
    options = SplitReadOptions(names, undecodable=DecodeErrorPolicy("drop"))
    reader = open_split(system, plan, SPLIT, options)  # type: ignore[arg-type]  # as much of a system as is needed
    rows = [row for batch in reader for row in batch.to_pylist()]
    return rows, reader.receipt


@pytest.mark.parametrize("make", [pulsar, pravega])
def test_rows_are_changes_and_the_receipt_counts_the_rest(make: Any) -> None:
    rows, receipt = read(make(MESSAGES), "id long, name string")
    assert [(one["_op"], one["id"]) for one in rows] == [("c", 1), ("t", None), ("u", 1)]
    positions = [one["_position"] for one in rows]
    assert positions == sorted(set(positions))
    assert (receipt.rows, receipt.dropped) == (3, 1)
    assert receipt.kinds == {"tombstone": 1, "heartbeat": 1, "transaction": 1, "truncate": 1}
    assert SplitReceipt.from_json(receipt.to_json()) == receipt


def test_an_epoch_of_pravega_comes_before_the_next_one() -> None:
    rows, _ = read(pravega([change("c", {"id": 1})]), "id long")
    assert rows[0]["_position"] == f"{1 << 32:020d}.{0:020d}"


def test_a_message_of_several_rows_counts_all_of_them() -> None:
    wrong = CANAL | {"data": [{"id": "x"}, {"id": "y"}]}
    rows, receipt = read(pulsar([CANAL, wrong, CANAL]), CANAL_COLUMNS, envelope="canal")
    assert [one["id"] for one in rows] == [111, 112, 111, 112]
    assert (receipt.rows, receipt.dropped) == (4, 1)


def test_a_message_that_cannot_be_decoded_fails_the_read_by_default() -> None:
    system = pulsar(MESSAGES)
    change_format = ChangeFormat(parse_columns("id long, name string"))
    plan = replace(PLAN, decoding=Decoding(change_format.type, changes=change_format))
    reader = open_split(system, plan, SPLIT, SplitReadOptions(("id",)))  # type: ignore[arg-type]  # as above
    with pytest.raises(DecodeError, match="op that Debezium"):
        list(reader)


def test_columns_that_decoding_needs_are_asked_for() -> None:
    assert declaration_of("pulsar").payload_columns is not None
    system = pulsar(MESSAGES)
    read(system, "id long, name string")
    assert {"value", "key_bytes", "ledger", "entry", "batch_index"} <= set(system.asked)


def test_a_plan_learns_the_columns_of_changes_from_its_messages() -> None:
    system = pulsar([{"ts_ms": 1}, change("c", {"id": 1, "name": "a"}), b""])
    request = PlanRequest(PulsarSource("orders", value=Debezium()), PLAN.window, "reader")
    planned = with_changes(system, PLAN, request)  # type: ignore[arg-type]  # as above
    assert planned.decoding is not None
    assert planned.decoding.changes is not None
    assert planned.decoding.changes.row == parse_columns("id long, name string")
    assert planned.decoding.changes.keys == ("id",)
    assert Plan.from_json(json.loads(json.dumps(planned.to_json()))) == planned
    assert planned.fingerprint != PLAN.fingerprint


def test_a_shards_first_split_and_its_last_message_are_looked_at() -> None:
    found = sampled_splits(PLAN, declaration_of("pulsar"))
    assert found[0] == PLAN.splits[0]
    assert all(one.spans[-1].entries >= 1 and one.start < one.end for one in found)
    assert {one.shard for one in found} == {one.shard for one in PLAN.splits}
