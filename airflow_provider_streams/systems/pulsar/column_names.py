"""The names of what a Pulsar read gives, in order; data, so that a DAG's columns are checked without Arrow."""

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
"""Those of a read that names none; the others cost more and are given on request."""
