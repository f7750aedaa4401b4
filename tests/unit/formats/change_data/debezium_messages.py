"""Messages as Debezium's connectors write them, after recordings of Debezium Server 2.7 with Postgres 15."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrays import listed
from airflow_provider_streams.formats.change_data.decoder import ChangeDecoder, Changes, Messages
from airflow_provider_streams.formats.change_data.positions import stream_positions
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.ddl import parse_columns

SOURCE: dict[str, Any] = {
    "version": "2.7.3.Final", "connector": "postgresql", "name": "dbz", "ts_ms": 1_762_900_000_123,
    "snapshot": "false", "db": "postgres", "sequence": '["26680144","26680200"]', "ts_us": 1_762_900_000_123_456,
    "ts_ns": 1_762_900_000_123_456_000, "schema": "public", "table": "orders", "txId": 745, "lsn": 26_680_200,
    "xmin": None,
}  # fmt: skip

MYSQL: dict[str, Any] = {
    "version": "2.7.3.Final", "connector": "mysql", "name": "dbz", "ts_ms": 1_762_900_000_000, "snapshot": "false",
    "db": "shop", "sequence": None, "ts_us": 1_762_900_000_000_000, "ts_ns": 1_762_900_000_000_000_000,
    "table": "orders", "server_id": 223344, "gtid": None, "file": "mysql-bin.000003", "pos": 805, "row": 0,
    "thread": 7, "query": None,
}  # fmt: skip

TRANSACTION = {"id": "745:26680200", "total_order": 3, "data_collection_order": 2}


def change(
    op: str, after: Any = None, before: Any = None, *, source: dict[str, Any] = SOURCE, **others: Any
) -> dict[str, Any]:
    """An envelope."""
    return {
        "before": before, "after": after, "source": source, "transaction": TRANSACTION, "op": op,
        "ts_ms": 1_762_900_000_500, "ts_us": 1_762_900_000_500_111, "ts_ns": 1_762_900_000_500_111_000, **others,
    }  # fmt: skip


_SIMPLE = {"string": "string", "int64": "int64", "int32": "int32", "boolean": "boolean"}


def field(name: str, kind: str, semantic: str = "", **others: Any) -> dict[str, Any]:
    """A field of Kafka Connect's schema, which may be null."""
    named = {"name": semantic, "version": 1} if semantic else {}
    return {"type": kind, "optional": True, **named, **others, "field": name}


def decimal_field(name: str, scale: int, precision: int | None = None) -> dict[str, Any]:
    """A field of exact numbers."""
    parameters = {"scale": str(scale), **({"connect.decimal.precision": str(precision)} if precision else {})}
    return field(name, "bytes", "org.apache.kafka.connect.data.Decimal", parameters=parameters)


def struct(fields: list[dict[str, Any]], name: str = "", **others: Any) -> dict[str, Any]:
    """A struct's schema."""
    return {"type": "struct", "fields": fields, "optional": True, "name": name, **others}


def schema_of(row: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of an envelope around a row."""
    source = [
        field(name, "int64" if type(value) is int or name == "xmin" else "string") for name, value in SOURCE.items()
    ]
    transaction = [field("id", "string"), field("total_order", "int64"), field("data_collection_order", "int64")]
    return struct(
        [
            struct(row, "dbz.public.orders.Value", field="before"),
            struct(row, "dbz.public.orders.Value", field="after"),
            struct(source, "io.debezium.connector.postgresql.Source", field="source"),
            struct(transaction, "event.block", field="transaction"),
            field("op", "string"),
            *(field(name, "int64") for name in ("ts_ms", "ts_us", "ts_ns")),
        ],
        "dbz.public.orders.Envelope",
    )


def with_schema(payload: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """A message as the JSON converter writes it by default."""
    return {"schema": schema, "payload": payload}


def raw(message: Any) -> bytes | None:
    """A message's bytes."""
    return (
        message
        if message is None or isinstance(message, bytes)
        else json.dumps(message, separators=(",", ":")).encode()
    )


def key_of(**values: Any) -> bytes:
    """A key as the JSON converter writes it by default."""
    fields = [field(name, "string" if isinstance(value, str) else "int64") for name, value in values.items()]
    return raw({"schema": struct(fields, "dbz.public.orders.Key"), "payload": values}) or b""


def messages_of(values: list[Any], keys: list[bytes | None] | None = None) -> Messages:
    """A batch of messages, one entry each."""
    count = len(values)
    entries = [pa.array([7] * count, pa.int64()), pa.array(range(count), pa.int64()), pa.array([0] * count, pa.int64())]
    return Messages(
        listed([raw(one) for one in values]), stream_positions(entries), None if keys is None else listed(keys)
    )


def decoded(
    values: list[Any], columns: str, keys: list[bytes | None] | None = None, *, key: tuple[str, ...] = (), **others: Any
) -> Changes:
    """A batch decoded by a plan with these columns, and this key."""
    change_format = ChangeFormat(parse_columns(columns), keys=key, **others)
    return ChangeDecoder(change_format).decode(messages_of(values, keys))


def causes(changes: Changes) -> list[str | None]:
    """Why messages cannot be decoded."""
    found: list[str | None] = changes.causes.to_pylist()
    return found
