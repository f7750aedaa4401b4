"""A stream's settings as users give them: the others stay as they are. Loads no client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal, get_args

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.pravega.client.stream_configuration import (
    NO_LIMIT,
    Retention,
    RetentionKind,
    Scaling,
    ScalingKind,
    Settings,
)

IfExists = Literal["keep", "update", "fail"]
"""What happens to a stream that exists already."""


_INTEGERS = ("segments", "events_per_second", "kilobytes_per_second", "scale_factor")
_MOST = {**dict.fromkeys(_INTEGERS, (1 << 31) - 1), "retention_bytes": (1 << 63) - 1}
"""The greatest numbers that can be sent."""


def check_if_exists(choice: str) -> None:
    """Refuse a word that is not in `IfExists`, with `InvalidRequest`."""
    if choice not in get_args(IfExists):
        raise InvalidRequest(f"if_exists must be one of {', '.join(get_args(IfExists))}, got {choice!r}")


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Settings to make or change; None: as it is. Called with a stream's settings, it gives the wanted ones.

    Raises:
        InvalidRequest: two rates, two kinds of retention, or an impossible number.
    """

    segments: int | None = None
    """Their number; with a rate, the least number."""
    events_per_second: int | None = None
    """Scale by this rate of each segment."""
    kilobytes_per_second: int | None = None
    scale_factor: int = 2
    """With a rate: a hot segment is split into so many parts."""
    retention: timedelta | None = None
    retention_bytes: int | None = None
    tags: tuple[str, ...] | None = None
    note_timeout: timedelta | None = None
    """Watermarks wait so long for a writer that notes no time; those of a new stream do not wait."""

    def __post_init__(self) -> None:
        if self.events_per_second is not None and self.kilobytes_per_second is not None:
            raise InvalidRequest("a stream scales by events_per_second or by kilobytes_per_second, not by both")
        if self.retention is not None and self.retention_bytes is not None:
            raise InvalidRequest("a stream retains by time or by size, not by both: give retention or retention_bytes")
        for name, most in _MOST.items():
            number = getattr(self, name)
            if number is not None and not 1 <= number <= most:
                raise InvalidRequest(f"{name} must be positive, and {most:,} at most, got {number}")
        for name in ("retention", "note_timeout"):
            span = getattr(self, name)
            if span is not None and span < timedelta(milliseconds=1):
                raise InvalidRequest(f"{name} must be at least a millisecond, got {span}")
        if self.scale_factor < 2:  # noqa: PLR2004 - the smallest split
            raise InvalidRequest(f"scale_factor must be at least 2, got {self.scale_factor}")

    def __call__(self, current: Settings) -> Settings:
        """The settings that a stream with these ones should have."""
        timeout_ms = current.timestamp_aggregation_ms
        if self.note_timeout is not None:
            timeout_ms = self.note_timeout // timedelta(milliseconds=1)
        return replace(
            current,
            scaling=self._scaling(current.scaling),
            retention=self._retention(current.retention),
            tags=current.tags if self.tags is None else tuple(sorted(set(self.tags))),
            timestamp_aggregation_ms=timeout_ms,
        )

    def _scaling(self, current: Scaling) -> Scaling:
        segments = self.segments or current.min_segments
        if self.events_per_second is not None:
            return Scaling(ScalingKind.EVENTS_RATE, self.events_per_second, self.scale_factor, segments)
        if self.kilobytes_per_second is not None:
            return Scaling(ScalingKind.BYTES_RATE, self.kilobytes_per_second, self.scale_factor, segments)
        return replace(current, min_segments=segments)

    def _retention(self, current: Retention) -> Retention:
        if self.retention is not None:
            wanted = Retention(RetentionKind.TIME, self.retention // timedelta(milliseconds=1), NO_LIMIT)
        elif self.retention_bytes is not None:
            wanted = Retention(RetentionKind.SIZE, self.retention_bytes, NO_LIMIT)
        else:
            return current
        # users do not give the most that holds may keep: it stays, if it still can
        has_maximum = current.kind is wanted.kind and current.maximum >= wanted.minimum
        return replace(wanted, maximum=current.maximum) if has_maximum else wanted
