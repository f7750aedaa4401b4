"""The columns of a Pulsar read: names, Arrow types exactly as Spark wants them, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.pulsar.column_names import DEFAULT_COLUMN_NAMES

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

COLUMNS: Final[dict[str, pa.DataType]] = {
    "value": pa.binary(),
    "key": pa.string(),
    "publish_time": TIMESTAMP,
    "event_time": TIMESTAMP,
    "topic": pa.string(),
    "partition": pa.int32(),
    "ledger": pa.int64(),
    "entry": pa.int64(),
    "batch_index": pa.int32(),
    "properties": pa.map_(pa.string(), pa.string()),
    "ordering_key": pa.binary(),
    "key_bytes": pa.binary(),
    "producer": pa.string(),
    "sequence_id": pa.int64(),
    "schema_version": pa.binary(),
    "broker_time": TIMESTAMP,
    "broker_index": pa.int64(),
    "replicated_from": pa.string(),
    "message_id": pa.binary(),
}
"""Every column that a read can have. All are nullable."""


def arrow_schema(columns: Sequence[str] | None = None) -> pa.Schema:
    """The Arrow schema of these columns, in this order; None: the default ones.

    Raises:
        InvalidRequest: an unknown or repeated column.
    """
    names = DEFAULT_COLUMN_NAMES if columns is None else tuple(columns)
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise InvalidRequest(f"unknown Pulsar columns {unknown}; known: {', '.join(COLUMNS)}")
    if len(set(names)) != len(names):
        raise InvalidRequest(f"a column is asked for twice: {', '.join(names)}")
    return pa.schema([pa.field(name, COLUMNS[name]) for name in names])
