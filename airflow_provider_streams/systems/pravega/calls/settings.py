"""A stream's configuration: its values, and the messages that carry them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, ProtocolError
from airflow_provider_streams.systems.pravega import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.calls.call import stream_name


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
    """Kept for nobody."""
    maximum: int = 0
    """Kept for those who hold it, at most; a policy with 0 keeps nothing for them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration of a stream: an update replaces all of it, so read it, change it, write it."""

    scaling: Scaling = Scaling()
    retention: Retention = Retention()
    tags: tuple[str, ...] = ()
    timestamp_aggregation_ms: int = 0
    rollover_bytes: int = 0


def to_message(stream: str, settings: Settings) -> pb.StreamSettings:
    """Settings as they are sent.

    Raises:
        InvalidRequest: a number is too large to send.
    """
    try:
        return _message(stream, settings)
    except ValueError as error:
        raise InvalidRequest(f"{stream}: these settings cannot be sent: {error}") from error


def _message(stream: str, settings: Settings) -> pb.StreamSettings:
    scaling, retention = settings.scaling, settings.retention
    message = pb.StreamSettings(
        stream=stream_name(stream),
        scaling=pb.Scaling(
            kind=scaling.kind,
            target_rate=scaling.target_rate,
            factor=scaling.factor,
            min_segments=scaling.min_segments,
        ),
        timestamp_aggregation_ms=settings.timestamp_aggregation_ms,
        rollover_bytes=settings.rollover_bytes,
        tags=pb.Tags(names=settings.tags),
    )
    if retention.kind is not RetentionKind.NONE:
        message.retention.CopyFrom(
            pb.Retention(kind=retention.kind, minimum=retention.minimum, maximum=retention.maximum)
        )
    return message


def from_message(answer: pb.StreamSettings) -> Settings:
    """Settings as they come.

    Raises:
        ProtocolError: a policy of a kind that is not known.
    """
    scaling, retention = answer.scaling, answer.retention
    try:
        scaling_kind, retention_kind = ScalingKind(scaling.kind), RetentionKind(retention.kind)
    except ValueError as error:
        raise ProtocolError(f"the controller answers with a policy that is not known: {error}") from error
    return Settings(
        Scaling(scaling_kind, scaling.target_rate, scaling.factor, scaling.min_segments),
        Retention(retention_kind, retention.minimum, retention.maximum),
        tuple(sorted(answer.tags.names)),  # servers keep them in no order
        answer.timestamp_aggregation_ms,
        answer.rollover_bytes,
    )
