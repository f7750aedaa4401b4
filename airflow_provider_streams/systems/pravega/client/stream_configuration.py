"""A stream's configuration, free of its messages."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class ScalingKind(enum.IntEnum):
    """How a stream scales by itself."""

    FIXED = 0
    BYTES_RATE = 1
    EVENTS_RATE = 2


class RetentionKind(enum.IntEnum):
    """How a stream is truncated by itself."""

    NONE = 0
    TIME = 1
    SIZE = 2


@dataclass(frozen=True, slots=True)
class Scaling:
    """A stream's scaling policy; rates are KB or events per second and segment."""

    kind: ScalingKind = ScalingKind.FIXED
    target_rate: int = 0
    factor: int = 0
    min_segments: int = 1


NO_LIMIT = (1 << 63) - 1
"""The maximum of a policy that has none, as Pravega's own clients write it."""


@dataclass(frozen=True, slots=True)
class Retention:
    """A stream's retention policy; milliseconds or bytes."""

    kind: RetentionKind = RetentionKind.NONE
    minimum: int = 0
    """Kept in any case."""
    maximum: int = 0
    """Kept for holds, at most; with 0 a policy keeps nothing for them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration of a stream. An update replaces all of it: read it, change it, write it."""

    scaling: Scaling = Scaling()
    retention: Retention = Retention()
    tags: tuple[str, ...] = ()
    timestamp_aggregation_ms: int = 0
    rollover_bytes: int = 0
