"""Values of a Delta table's properties: how files are compressed, and how long removed ones stay. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

RETENTION: Final = "delta.deletedFileRetentionDuration"
CODEC: Final = "delta.parquet.compression.codec"

_CODECS: Final = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4_raw": "lz4",
    "zstd": "zstd",
}
"""Arrow's names by Delta's. Arrow's `lz4` is the one that Delta calls `lz4_raw`; the older one is no longer written."""

_DEFAULT_CODEC: Final = "zstd"

_PARTS: Final = re.compile(r"(\d+)\s+(week|day|hour|minute|second|millisecond|microsecond)s?")
"""Delta allows no months and years, which have no fixed length."""


def codec_of(properties: Mapping[str, str]) -> str:
    """Arrow's name of the codec for new files; Delta's default for one that Arrow lacks, as its protocol has it."""
    return _CODECS.get(properties.get(CODEC, _DEFAULT_CODEC).strip().lower(), _DEFAULT_CODEC)


def interval_of(text: str) -> timedelta:
    """The length of `interval 7 days`, or of several such parts. `ValueError`: it is none, or an unknown one."""
    found = text.strip().lower().removeprefix("interval").strip()
    parts = _PARTS.findall(found)
    if not parts or _PARTS.sub("", found).strip():
        raise ValueError(text)
    return sum((timedelta(**{f"{unit}s": int(number)}) for number, unit in parts), timedelta(0))
