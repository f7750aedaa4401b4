"""Changes in Avro and in Pulsar's pairs: the schemas of a registry tell the semantic types."""

from __future__ import annotations

import io
import json
import struct as binary
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from airflow_provider_streams.formats.arrow.arrays import listed
from airflow_provider_streams.formats.change_data.decoder import ChangeDecoder, Changes, Messages
from airflow_provider_streams.formats.change_data.row_types.avro_meanings import connect_schema
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.payload import Avro
from tests.unit.formats.change_data.debezium_messages import causes, change, decoded, key_of, messages_of, raw

CONNECT = "io.debezium.time."


def named(kind: str, name: str) -> list[Any]:
    return ["null", {"type": kind, "connect.version": 1, "connect.name": name}]


DECIMAL = {
    "type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2, "connect.version": 1,
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "12"},
    "connect.name": "org.apache.kafka.connect.data.Decimal",
}  # fmt: skip
SCALED = {
    "type": "record", "name": "VariableScaleDecimal", "namespace": "io.debezium.data",
    "connect.name": "io.debezium.data.VariableScaleDecimal",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}  # fmt: skip
ROW = {
    "type": "record", "name": "Value", "namespace": "dbz.public.orders", "connect.name": "dbz.public.orders.Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": ["null", DECIMAL]},
        {"name": "at", "type": named("long", CONNECT + "MicroTimestamp")},
        {"name": "zoned", "type": named("string", CONNECT + "ZonedTimestamp")},
        {"name": "day", "type": named("int", CONNECT + "Date")},
        {"name": "any", "type": ["null", SCALED]},
        {"name": "text", "type": ["null", "string"]},
    ],
}  # fmt: skip
SOURCE = {
    "type": "record", "name": "Source", "namespace": "io.debezium.connector.postgresql",
    "fields": [
        {"name": name, "type": ["null", kind]}
        for name, kind in {"connector": "string", "name": "string", "ts_ms": "long", "snapshot": "string",
                           "db": "string", "schema": "string", "table": "string", "txId": "long", "lsn": "long"}.items()
    ],
}  # fmt: skip
ENVELOPE = {
    "type": "record", "name": "Envelope", "namespace": "dbz.public.orders",
    "fields": [
        {"name": "before", "type": ["null", ROW]}, {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": SOURCE}, {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"]},
    ],
}  # fmt: skip
COLUMNS = (
    "id long, amount decimal(12, 2), at timestamp_ntz, zoned timestamp, day date, any string, text string"
)  # fmt: skip
NULLS = dict.fromkeys(("amount", "at", "zoned", "day", "any", "text"))


def written(op: str, after: Any = None, before: Any = None) -> bytes:
    source = {"connector": "postgresql", "name": "dbz", "ts_ms": 7, "snapshot": "false", "db": "postgres",
              "schema": "public", "table": "orders", "txId": 3, "lsn": 99}  # fmt: skip
    out = io.BytesIO()
    record = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 8}
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(ENVELOPE))), record)
    return out.getvalue()


def typed(values: list[bytes | None]) -> Changes:
    schema = json.dumps(connect_schema(json.dumps(ENVELOPE)))
    change_format = ChangeFormat(parse_columns(COLUMNS), keys=("id",), schema=schema)
    found = messages_of(values, [key_of(id=1)] * len(values))
    return ChangeDecoder(change_format, decoding_of(Avro(json.dumps(ENVELOPE)), None, {}), "topic").decode(found)


def test_avro_has_the_same_semantic_types() -> None:
    row = {
        "id": 1, "amount": Decimal("3.00"), "at": 1_762_900_000_123_456, "zoned": "2026-11-03T10:11:12.5Z",
        "day": 20_395, "any": {"scale": 3, "value": (1200).to_bytes(2, "big")}, "text": "x",
    }  # fmt: skip
    found = typed([written("c", row), written("d", None, {"id": 1, **NULLS}), None, b""])
    rows = found.rows.to_pylist()
    assert causes(found) == [None] * 4
    made = rows[0]
    assert (made["amount"], made["any"], made["text"]) == (Decimal("3.00"), "1.200", "x")
    assert made["at"].isoformat() == "2025-11-11T22:26:40.123456"
    assert made["zoned"].isoformat() == "2026-11-03T10:11:12.500000+00:00"
    assert made["day"].isoformat() == "2025-11-03"
    assert (made["_op"], made["_table"], made["_log_position"]) == ("c", "public.orders", f"{99:020d}")
    assert (rows[1]["_op"], rows[1]["id"], rows[1]["text"]) == ("d", 1, None)
    assert found.count("tombstone") == 2


def test_an_unavailable_value_of_avro_is_found() -> None:
    found = typed([written("u", {"id": 1, **NULLS, "text": "__debezium_unavailable_value"})])
    assert found.rows[0].as_py()["_unavailable"] == ["text"]


def test_bytes_that_are_no_avro_are_named() -> None:
    found = typed([written("c", {"id": 1, **NULLS}), b"\xff\xff", written("c", {"id": 2, **NULLS})])
    assert [cause is None for cause in causes(found)] == [True, False, True]
    assert [None if one is None else one["id"] for one in found.rows.to_pylist()] == [1, None, 2]


def test_a_value_that_no_column_holds_is_undecodable_in_avro_as_well() -> None:
    found = typed([written("c", {"id": 1, **NULLS, "at": 2**62})])
    assert "at: holds a time" in str(causes(found)[0])


def pair(key: bytes | None, value: bytes | None) -> bytes:
    return b"".join(binary.pack(">i", -1) if one is None else binary.pack(">i", len(one)) + one for one in (key, value))


def test_inline_pairs_hold_the_key_and_the_value() -> None:
    value = raw(change("c", {"id": 1, "name": "a"}))
    payloads = [pair(key_of(id=1), value), pair(key_of(id=1), None), pair(None, value), b"\0\0"]
    found = decoded(payloads, "id long, name string", key=("id",), has_pairs=True)
    assert causes(found)[:3] == [None, None, "its key is null"]
    assert "no pair" in str(causes(found)[3])
    assert found.rows[0].as_py()["id"] == 1
    assert found.count("tombstone") == 1


@pytest.mark.parametrize(
    "schema", ["[]", '"string"', '{"type": "record", "name": "R", "fields": [{"type": "int"}]}', "{"]
)
def test_a_schema_that_is_no_record_is_refused(schema: str) -> None:
    with pytest.raises(ValueError, match="schema"):
        connect_schema(schema)


def test_messages_keep_their_columns_when_some_are_taken() -> None:
    messages = Messages(listed([b"a", b"b"]), pa.array(["1", "2"]), listed([b"k", None]))
    assert messages.at([1]).key.to_pylist() == [None]  # type: ignore[arg-type, union-attr]
