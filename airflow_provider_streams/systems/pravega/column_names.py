"""The names of what a Pravega read gives, in order; data, so that a DAG's columns are checked without Arrow."""

from __future__ import annotations

COLUMN_NAMES = ("event", "scope", "stream", "segment_id", "offset", "event_pointer", "segment", "next_offset")

DEFAULT_COLUMN_NAMES = COLUMN_NAMES[:5]
"""Those of a read that names none."""

SHARD_COLUMN_NAMES = frozenset({"scope", "stream", "segment_id", "segment"})
"""Those that are alike in all rows of a segment."""
