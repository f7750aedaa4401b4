"""One call as data, and what all calls share: the names of streams and segments, and the meaning of a status."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from airflow_provider_streams.errors import ProtocolError, StreamsError, UnknownServerError
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb

if TYPE_CHECKING:
    from google.protobuf.message import Message

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """One controller call."""

    method: str
    about: str
    """Its scope or `scope/stream`, for errors."""
    message: Message
    answer: type[Message]
    parse: Callable[[Any], T]
    repeatable: bool = True
    """Whether sending it twice does no harm."""

    def __iter__(self) -> Generator[Call[T], T, T]:
        """A step of a rule: `answer = yield from call`."""
        answer = yield self
        return answer


class KeyedSegment(NamedTuple):
    """A segment and the share of the key space that it owns."""

    segment_id: int
    low: float
    high: float


def stream_name(stream: str, access: pb.Access = pb.ACCESS_UNSPECIFIED) -> pb.StreamName:
    """A stream as messages name it: scope and name apart."""
    scope, _, name = stream.partition("/")
    return pb.StreamName(scope=scope, stream=name, access=access)


def segment_key(segment: pb.SegmentKey) -> int:
    """The id of a segment in an answer; `ProtocolError` if no segment can have it."""
    key = segment.segment_id
    if key < 0 or key & (1 << 31):
        raise ProtocolError(f"the controller names a segment of {segment.stream.stream[:80]!r} with the id {key}")
    return key


def keyed_segment(owned: pb.OwnedRange) -> KeyedSegment:
    """A segment of an answer."""
    return KeyedSegment(segment_key(owned.segment), owned.low, owned.high)


_FAILURE = 1
"""The status of every call that failed, whatever the cause."""


def check(action: str, status: int, refused: Mapping[int, StreamsError], about: str) -> None:
    """Raise the error of a status other than 0: the one in `refused`, or one of an unexplained or unknown failure."""
    if status == 0:
        return
    if status in refused:
        raise refused[status]
    if status == _FAILURE:
        raise UnknownServerError("Pravega's controller", f"it could not {action} ({about}), and does not say why")
    raise ProtocolError(f"{about}: the controller could not {action} (status {status})")


def change(
    method: str,
    action: str,
    about: str,
    message: Message,
    refused: Mapping[int, StreamsError] | None = None,
    *,
    unchanged: tuple[int, ...] = (),
) -> Call[bool]:
    """A call that is answered by a status alone: True, or False for a status in `unchanged`."""

    def parse(answer: pb.StatusAnswer) -> bool:
        if answer.status in unchanged:
            return False
        check(action, answer.status, refused or {}, about)
        return True

    return Call(method, about, message, pb.StatusAnswer, parse)
