"""Lengths of time, as people write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

_UNITS: Final = (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("m", timedelta(minutes=1)))


def length_text(length: timedelta) -> str:
    """`7d 1m`, `2h`, `0.5s`; `-1h 30m` for a negative length."""
    if length < timedelta(0):
        return f"-{length_text(-length)}"
    parts = []
    for unit, size in _UNITS:
        count, length = divmod(length, size)
        if count:
            parts.append(f"{count}{unit}")
    if length or not parts:
        parts.append(f"{length.total_seconds():g}s")
    return " ".join(parts)
