"""The names of what a fake read gives."""

from __future__ import annotations

COLUMN_NAMES = ("value", "publish_time", "shard", "number", "key", "properties")
