"""The column names of a Pulsar read, in order; data, to check a DAG's columns without Arrow."""

from __future__ import annotations

COLUMN_NAMES = (
    "value",
    "key",
    "publish_time",
    "event_time",
    "topic",
    "partition",
    "ledger",
    "entry",
    "batch_index",
    "properties",
    "ordering_key",
    "key_bytes",
    "producer",
    "sequence_id",
    "schema_version",
    "broker_time",
    "broker_index",
    "replicated_from",
    "message_id",
)

DEFAULT_COLUMN_NAMES = COLUMN_NAMES[:9]
"""The columns of a read that names none; other columns cost more."""
