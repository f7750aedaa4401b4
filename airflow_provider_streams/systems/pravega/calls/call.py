"""A call as data, and what its kinds share: how messages name things, and what a status means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, SourceNotFound, StreamsError, UnclearAnswer
from airflow_provider_streams.systems.pravega import controller_pb2 as pb

if TYPE_CHECKING:
    from google.protobuf.message import Message

T = TypeVar("T")

Failure = Callable[[], StreamsError]
"""Makes the error that a status means."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """One controller call."""

    method: str
    about: str
    """The scope or `scope/stream` it speaks of, for errors."""
    message: Message
    answer: type[Message]
    parse: Callable[[Any], T]
    repeatable: bool = True
    """Whether sending it twice does no harm."""


class KeyedSegment(NamedTuple):
    """A segment and the share of the key space it owns."""

    segment_id: int
    low: float
    high: float


def stream_name(stream: str, access: pb.Access = pb.ACCESS_UNSPECIFIED) -> pb.StreamName:
    """A stream as messages name it, `scope/stream` taken apart."""
    scope, _, name = stream.partition("/")
    return pb.StreamName(scope=scope, stream=name, access=access)


def value(answer: pb.BoolAnswer) -> bool:
    """What a yes-or-no answer says."""
    return bool(answer.value)


def segment_key(segment: pb.SegmentKey) -> int:
    """The id of a segment in an answer.

    Raises:
        ProtocolError: no segment can have it.
    """
    key = segment.segment_id
    if key < 0 or key & (1 << 31):
        raise ProtocolError(f"the controller names a segment of {segment.stream.stream[:80]!r} with the id {key}")
    return key


def keyed_segment(owned: pb.OwnedRange) -> KeyedSegment:
    """A segment of an answer."""
    return KeyedSegment(segment_key(owned.segment), owned.low, owned.high)


def missing(stream: str, *codes: int) -> dict[int, Failure]:
    """Status codes that mean: there is no such stream."""
    return dict.fromkeys(codes, lambda: SourceNotFound(stream))


def sealed(stream: str, code: int) -> dict[int, Failure]:
    """The status code that means: the stream has ended."""
    return {code: lambda: InvalidRequest(f"{stream} is sealed: it can only be read or deleted")}


_FAILURE = 1
"""The status by which every call says that it failed, whatever the cause."""


def check(action: str, status: int, refused: Mapping[int, Failure], about: str) -> None:
    """Complain about a status other than 0.

    Raises:
        StreamsError: the failure of this status.
        UnclearAnswer: it failed, and the status does not say why.
        ProtocolError: a status that the call does not know.
    """
    if status == 0:
        return
    failure = refused.get(status)
    if failure is not None:
        raise failure()
    if status == _FAILURE:
        raise UnclearAnswer("Pravega's controller", f"it could not {action} ({about}), and does not say why")
    raise ProtocolError(f"{about}: the controller could not {action} (status {status})")


def done(action: str, status: int, refused: Mapping[int, Failure], about: str, *, already: int | None = None) -> bool:
    """True, or False where the status says that it was so already; else as `check`."""
    if already is not None and status == already:
        return False
    check(action, status, refused, about)
    return True
