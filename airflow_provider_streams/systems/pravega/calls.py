"""Every call to the controller as data: what to send, and how its answer becomes a value.

The blocking and the asynchronous edge (`controller.py`) send these; neither knows one call from another.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from airflow_provider_streams.errors import (
    InvalidName,
    InvalidRequest,
    ProtocolError,
    SourceNotFound,
    StreamsError,
)
from airflow_provider_streams.systems.pravega import controller_pb2 as pb

if TYPE_CHECKING:
    from google.protobuf.message import Message

T = TypeVar("T")

Failure = Callable[[], StreamsError]


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


class Access(enum.IntEnum):
    """What a delegation token is for."""

    READ = pb.ACCESS_READ
    READ_WRITE = pb.ACCESS_READ_WRITE


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


class Page(NamedTuple):
    """Some names and where the next ones start; an empty page is the last one."""

    names: tuple[str, ...]
    token: str


class TransactionState(enum.IntEnum):
    """Where a transaction stands."""

    UNKNOWN = 0
    OPEN = 1
    COMMITTING = 2
    COMMITTED = 3
    ABORTING = 4
    ABORTED = 5


class Transaction(NamedTuple):
    """A transaction made, and the segments its events go to."""

    high: int
    low: int
    segments: tuple[KeyedSegment, ...]


class Group(NamedTuple):
    """A reader group that holds retention; no reader joins it."""

    scope: str
    name: str
    group_id: str
    generation: int

    @property
    def subscriber(self) -> str:
        """Its name among a stream's subscribers."""
        return f"{self.scope}/{self.name}"


# Names and existence


def scope_exists(scope: str) -> Call[bool]:
    """Whether a scope exists."""
    return Call("checkScopeExists", scope, pb.ScopeKey(scope=scope), pb.BoolAnswer, _value)


def stream_exists(stream: str) -> Call[bool]:
    """Whether a stream exists: the one test that can say no."""
    return Call("checkStreamExists", stream, _name(stream), pb.BoolAnswer, _value)


def list_scopes(token: str = "") -> Call[Page]:
    """One page of scopes, `_system` among them, in any order; needs a permission of its own."""
    message = pb.ScopeQuery(page=pb.PageToken(token=token))
    return Call("listScopes", "/", message, pb.ScopePage, lambda a: Page(tuple(a.scopes), a.page.token))


def list_streams(scope: str, token: str = "", *, tag: str = "") -> Call[Page]:
    """One page of `scope/stream`, those that Pravega makes for itself among them.

    Raises:
        SourceNotFound: the scope does not exist.
    """
    key, page = pb.ScopeKey(scope=scope), pb.PageToken(token=token)
    if tag:
        message: Message = pb.TaggedStreamQuery(scope=key, tag=tag, page=page)
    else:
        message = pb.StreamQuery(scope=key, page=page)

    def parse(answer: pb.StreamPage) -> Page:
        _check("list streams", answer.status, {2: lambda: SourceNotFound(f"scope {scope}")}, scope)
        return Page(tuple(f"{s.scope}/{s.stream}" for s in answer.streams), answer.page.token)

    return Call("listStreamsInScopeForTag" if tag else "listStreamsInScope", scope, message, pb.StreamPage, parse)


# Places


def head(stream: str) -> Call[dict[int, int]]:
    """The first position held of each segment at the stream's head."""
    message = pb.HeadQuery(stream=_name(stream, pb.ACCESS_NONE))
    return Call("getSegments", stream, message, pb.HeadAnswer, _offsets)


def current_segments(stream: str) -> Call[tuple[KeyedSegment, ...]]:
    """The segments that are written to now; none: the stream is sealed."""
    return Call("getCurrentSegments", stream, _name(stream, pb.ACCESS_NONE), pb.OwnedRanges, _keyed)


def epoch_segments(stream: str, epoch: int) -> Call[tuple[KeyedSegment, ...]]:
    """The segments of an epoch; needs write permission."""
    message = pb.EpochQuery(stream=_name(stream), epoch=epoch)
    return Call("getEpochSegments", stream, message, pb.OwnedRanges, _keyed)


def segments_between(stream: str, start: Mapping[int, int], end: Mapping[int, int]) -> Call[tuple[int, ...]]:
    """Every segment between two cuts, ascending: predecessors come before successors. No end: the stream's end.

    The controller checks little: unknown, partial and truncated cuts are answered as if they were right, and
    reversed ones with an error that says nothing.
    """
    message = pb.CutPair(stream=_name(stream), start=start, end=end)
    return Call("getSegmentsBetween", stream, message, pb.SegmentKeys, _ids)


def successors(stream: str, segment_id: int) -> Call[tuple[int, ...]]:
    """The segments that follow one; none: it is open, or the stream was sealed there."""
    return Call(
        "getSegmentsImmediatelyFollowing",
        stream,
        _segment(stream, segment_id),
        pb.Successors,
        lambda a: tuple(sorted(entry.segment.segment.segment_id for entry in a.entries)),
    )


def segment_open(stream: str, segment_id: int) -> Call[bool]:
    """Whether a segment is still written to; an unknown one is not."""
    return Call("isSegmentValid", stream, _segment(stream, segment_id), pb.BoolAnswer, _value)


def cut_covers(stream: str, offsets: Mapping[int, int]) -> Call[bool]:
    """Whether a cut's segments own the whole key space, once; says nothing about its offsets."""
    message = pb.CutMessage(stream=_name(stream), offsets=offsets)
    return Call("isStreamCutValid", stream, message, pb.BoolAnswer, _value)


def store_of(stream: str, segment_id: int) -> Call[tuple[str, int]]:
    """Host and port of the store that serves a segment; answers for segments that do not exist, too."""
    return Call("getURI", stream, _segment(stream, segment_id), pb.Node, lambda a: (a.host, a.port))


def delegation_token(stream: str, access: Access = Access.READ) -> Call[str]:
    """What segment stores want to see; empty when authorization is off."""
    message = _name(stream, pb.ACCESS_READ if access is Access.READ else pb.ACCESS_READ_WRITE)
    return Call("getDelegationToken", stream, message, pb.TokenAnswer, lambda a: a.token)


# Administration


def create_scope(scope: str) -> Call[bool]:
    """Make a scope; False: it was there."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {3: lambda: InvalidName(scope, "a scope has letters, digits, '.' and '-'")}
        return _done("create the scope", answer.status, refused, scope, already=2)

    return Call("createScope", scope, pb.ScopeKey(scope=scope), pb.StatusAnswer, parse)


def delete_scope(scope: str) -> Call[bool]:
    """Remove an empty scope; False: it was not there."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {3: lambda: InvalidRequest(f"scope {scope} still has streams")}
        return _done("delete the scope", answer.status, refused, scope, already=2)

    return Call("deleteScope", scope, pb.ScopeKey(scope=scope), pb.StatusAnswer, parse)


def create_stream(stream: str, settings: Settings | None = None) -> Call[bool]:
    """Make a stream; False: it was there, and keeps its settings."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {
            3: lambda: SourceNotFound(f"scope {stream.partition('/')[0]}"),
            4: lambda: InvalidName(stream, "a stream has letters, digits, '.' and '-'"),
        }
        return _done("create the stream", answer.status, refused, stream, already=2)

    return Call("createStream", stream, _settings(stream, settings or Settings()), pb.StatusAnswer, parse)


def stream_settings(stream: str) -> Call[Settings]:
    """A stream's whole configuration."""
    return Call("getStreamConfiguration", stream, _name(stream), pb.StreamSettings, _settings_value)


def update_stream(stream: str, settings: Settings) -> Call[bool]:
    """Replace a stream's whole configuration.

    A fixed scaling policy is applied at once: segments are merged or split to its count.
    """

    def parse(answer: pb.StatusAnswer) -> bool:
        return _done("update the stream", answer.status, _missing(stream, 2, 3) | _sealed(stream, 4), stream)

    return Call("updateStream", stream, _settings(stream, settings), pb.StatusAnswer, parse)


def truncate_stream(stream: str, offsets: Mapping[int, int]) -> Call[bool]:
    """Drop everything before a cut."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {
            1: lambda: InvalidRequest(f"{stream} cannot be truncated there: the cut is before its head"),
            **_missing(stream, 2, 3),
            **_sealed(stream, 4),
        }
        return _done("truncate the stream", answer.status, refused, stream)

    message = pb.CutMessage(stream=_name(stream), offsets=offsets)
    return Call("truncateStream", stream, message, pb.StatusAnswer, parse)


def seal_stream(stream: str) -> Call[bool]:
    """End a stream: nothing is written to it any more. Sealing twice does no harm."""

    def parse(answer: pb.StatusAnswer) -> bool:
        return _done("seal the stream", answer.status, _missing(stream, 2, 3), stream)

    return Call("sealStream", stream, _name(stream), pb.StatusAnswer, parse)


def delete_stream(stream: str) -> Call[bool]:
    """Remove a sealed stream; False: it was not there."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {3: lambda: InvalidRequest(f"{stream} must be sealed before it is deleted")}
        return _done("delete the stream", answer.status, refused, stream, already=2)

    return Call("deleteStream", stream, _name(stream), pb.StatusAnswer, parse)


def scale(
    stream: str, sealed: Iterable[int], ranges: Iterable[tuple[float, float]], timestamp_ms: int
) -> Call[int | None]:
    """Replace open segments by new ones that own the same key space; the epoch that this ends, for `scale_done`.

    None: some of the segments are sealed already, for example by the same request sent before.
    """
    message = pb.ScaleOrder(
        stream=_name(stream),
        sealed=sealed,
        ranges=[pb.KeyRange(low=low, high=high) for low, high in ranges],
        timestamp=timestamp_ms,
    )

    def parse(answer: pb.ScaleAnswer) -> int | None:
        refused: dict[int, Failure] = {
            1: lambda: InvalidRequest(
                f"{stream} cannot be scaled so: it is missing or sealed, or the new ranges are not those of the old"
            )
        }
        return answer.epoch if _done("scale the stream", answer.status, refused, stream, already=2) else None

    return Call("scale", stream, message, pb.ScaleAnswer, parse, repeatable=False)


def scale_done(stream: str, epoch: int) -> Call[bool]:
    """Whether the scaling that ends this epoch (the answer of `scale`) is over."""

    def parse(answer: pb.StatusAnswer) -> bool:
        if answer.status in (0, 1):
            return bool(answer.status)
        refused: dict[int, Failure] = {2: lambda: InvalidRequest(f"{stream} has no epoch {epoch} yet")}
        return _done("check the scaling", answer.status, refused, stream)

    message = pb.ScaleQuery(stream=_name(stream), epoch=epoch)
    return Call("checkScale", stream, message, pb.StatusAnswer, parse)


# Transactions

NO_TIME = -(1 << 63)
"""A commit that notes no time."""


def begin_transaction(stream: str, lease_ms: int) -> Call[Transaction]:
    """Open a transaction that is aborted when nobody pings it for `lease_ms` (servers allow 600,000 at most)."""
    message = pb.TransactionOrder(stream=_name(stream), lease_ms=lease_ms)

    def parse(answer: pb.TransactionAnswer) -> Transaction:
        return Transaction(answer.id.high, answer.id.low, tuple(map(_keyed_segment, answer.segments)))

    return Call("createTransaction", stream, message, pb.TransactionAnswer, parse, repeatable=False)


def ping_transaction(stream: str, high: int, low: int, lease_ms: int) -> Call[bool]:
    """Keep a transaction open; False: it is over, whatever its end was."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {1: lambda: InvalidRequest(f"a lease of {lease_ms} ms is too long")}
        if answer.status in _TRANSACTION_OVER:
            return False
        return _done("keep the transaction open", answer.status, refused, stream)

    message = pb.TransactionPing(stream=_name(stream), id=pb.TransactionId(high=high, low=low), lease_ms=lease_ms)
    return Call("pingTransaction", stream, message, pb.StatusAnswer, parse)


def commit_transaction(stream: str, high: int, low: int, writer: str = "", time: int = NO_TIME) -> Call[bool]:
    """Commit; done when the state says so. Committing twice does no harm."""
    return _end_transaction(
        "commitTransaction", "commit the transaction", stream, (high, low), writer=writer, time=time
    )


def abort_transaction(stream: str, high: int, low: int) -> Call[bool]:
    """Abort; refused after a commit."""
    return _end_transaction("abortTransaction", "abort the transaction", stream, (high, low))


def transaction_state(stream: str, high: int, low: int) -> Call[TransactionState]:
    """Where a transaction stands; an unknown one is UNKNOWN."""
    message = pb.TransactionKey(stream=_name(stream), id=pb.TransactionId(high=high, low=low))
    return Call("checkTransactionState", stream, message, pb.StatusAnswer, lambda a: TransactionState(a.status))


# Holds


def create_hold(group: Group, cut: Mapping[int, int], stream: str) -> Call[Group]:
    """Make a reader group without readers whose cut the stream's retention respects; it starts at `cut`."""
    settings = pb.GroupSettings(
        scope=group.scope,
        name=group.name,
        group_id=group.group_id or str(UUID(int=0)),
        generation=group.generation,
        refresh_ms=3000,
        checkpoint_ms=-1,
        outstanding_checkpoints=3,
        retention=1,
        start=[pb.CutMessage(stream=_name(stream), offsets=cut)],
        end=[pb.CutMessage(stream=_name(stream))],
    )
    return Call("createReaderGroup", stream, settings, pb.GroupAnswer, _group("make the hold", group), repeatable=False)


def find_hold(group: Group) -> Call[Group]:
    """A reader group by its scope and name.

    Raises:
        SourceNotFound: there is none.
    """
    message = pb.GroupKey(scope=group.scope, name=group.name)
    return Call("getReaderGroupConfig", group.subscriber, message, pb.GroupAnswer, _group("find the hold", group))


def move_hold(group: Group, stream: str, cut: Mapping[int, int]) -> Call[bool]:
    """Let retention truncate everything before a cut; False: the hold stands behind it already."""
    message = pb.SubscriberCut(
        subscriber=group.subscriber,
        generation=group.generation,
        group_id=group.group_id,
        cut=pb.CutMessage(stream=_name(stream), offsets=cut),
    )

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {
            2: lambda: SourceNotFound(stream),
            3: lambda: SourceNotFound(f"hold {group.subscriber} on {stream}"),
            5: lambda: InvalidRequest(f"hold {group.subscriber} was changed meanwhile: look it up again"),
        }
        return _done("move the hold", answer.status, refused, stream, already=4)

    return Call("updateSubscriberStreamCut", stream, message, pb.StatusAnswer, parse)


def delete_hold(group: Group) -> Call[bool]:
    """Release a hold; False: it was not there."""
    message = pb.GroupKey(scope=group.scope, name=group.name, group_id=group.group_id, generation=group.generation)

    def parse(answer: pb.StatusAnswer) -> bool:
        return _done("release the hold", answer.status, {}, group.subscriber, already=2)

    return Call("deleteReaderGroup", group.subscriber, message, pb.StatusAnswer, parse)


def list_holds(stream: str) -> Call[tuple[str, ...]]:
    """The subscribers (`scope/group`) that a stream's retention respects."""
    return Call("listSubscribers", stream, _name(stream), pb.Subscribers, lambda a: tuple(a.names))


# What the calls share

_TRANSACTION_OVER = (2, 4, 5, 6, 7)


def _name(stream: str, access: pb.Access = pb.ACCESS_UNSPECIFIED) -> pb.StreamName:
    scope, _, name = stream.partition("/")
    return pb.StreamName(scope=scope, stream=name, access=access)


def _segment(stream: str, segment_id: int) -> pb.SegmentKey:
    return pb.SegmentKey(stream=_name(stream), segment_id=segment_id)


def _value(answer: pb.BoolAnswer) -> bool:
    return bool(answer.value)


def _offsets(answer: pb.HeadAnswer) -> dict[int, int]:
    return dict(sorted((p.segment.segment_id, p.offset) for p in answer.positions))


def _ids(answer: pb.SegmentKeys) -> tuple[int, ...]:
    return tuple(sorted(segment.segment_id for segment in answer.segments))


def _keyed_segment(owned: pb.OwnedRange) -> KeyedSegment:
    return KeyedSegment(owned.segment.segment_id, owned.low, owned.high)


def _keyed(answer: pb.OwnedRanges) -> tuple[KeyedSegment, ...]:
    return tuple(sorted(map(_keyed_segment, answer.ranges)))


def _settings(stream: str, settings: Settings) -> pb.StreamSettings:
    scaling, retention = settings.scaling, settings.retention
    message = pb.StreamSettings(
        stream=_name(stream),
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


def _settings_value(answer: pb.StreamSettings) -> Settings:
    scaling, retention = answer.scaling, answer.retention
    return Settings(
        Scaling(ScalingKind(scaling.kind), scaling.target_rate, scaling.factor, scaling.min_segments),
        Retention(RetentionKind(retention.kind), retention.minimum, retention.maximum),
        tuple(sorted(answer.tags.names)),  # servers keep them in no order
        answer.timestamp_aggregation_ms,
        answer.rollover_bytes,
    )


def _end_transaction(
    method: str, action: str, stream: str, key: tuple[int, int], *, writer: str = "", time: int = NO_TIME
) -> Call[bool]:
    message = pb.TransactionKey(
        stream=_name(stream), id=pb.TransactionId(high=key[0], low=key[1]), writer=writer, timestamp=time
    )

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {
            1: lambda: InvalidRequest(f"{stream}: could not {action}: it is unknown, or has ended another way"),
            2: lambda: SourceNotFound(stream),
            3: lambda: InvalidRequest(f"{stream}: could not {action}: it is unknown"),
        }
        return _done(action, answer.status, refused, stream)

    return Call(method, stream, message, pb.StatusAnswer, parse)


def _group(action: str, group: Group) -> Callable[[pb.GroupAnswer], Group]:
    def parse(answer: pb.GroupAnswer) -> Group:
        refused: dict[int, Failure] = {2: lambda: SourceNotFound(f"hold {group.subscriber}")}
        _done(action, answer.status, refused, group.subscriber)
        found = answer.settings  # the answer of a creation leaves the id out
        return Group(group.scope, group.name, found.group_id or group.group_id, found.generation)

    return parse


def _missing(stream: str, *codes: int) -> dict[int, Failure]:
    return dict.fromkeys(codes, lambda: SourceNotFound(stream))


def _sealed(stream: str, code: int) -> dict[int, Failure]:
    return {code: lambda: InvalidRequest(f"{stream} is sealed: it can only be read or deleted")}


def _check(action: str, status: int, refused: Mapping[int, Failure], about: str) -> None:
    if status == 0:
        return
    failure = refused.get(status)
    if failure is not None:
        raise failure()
    raise ProtocolError(f"{about}: the controller could not {action} (status {status})")


def _done(action: str, status: int, refused: Mapping[int, Failure], about: str, *, already: int | None = None) -> bool:
    if already is not None and status == already:
        return False
    _check(action, status, refused, about)
    return True
