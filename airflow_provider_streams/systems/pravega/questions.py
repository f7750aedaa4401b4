"""Rules that ask about streams and change nothing: what hooks, sensors and operators share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, SourceNotFound
from airflow_provider_streams.systems.pravega import calls, cuts
from airflow_provider_streams.systems.pravega.calls import Call, KeyedSegment, Page, Settings
from airflow_provider_streams.systems.pravega.names import Segment, is_internal, mark_stream
from airflow_provider_streams.systems.pravega.pieces import pieces_between
from airflow_provider_streams.systems.pravega.read_bytes import newest_event
from airflow_provider_streams.systems.pravega.steps import Steps, ask, infos
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.watermarks import Mark

_MOST_PAGES = 10_000


@dataclass(frozen=True, slots=True)
class StreamState:
    """A stream as it is now."""

    stream: str
    settings: Settings
    head: StreamCut
    tail: StreamCut
    """Of a sealed stream: its end."""
    segments: tuple[KeyedSegment, ...]
    """Those that are written to, with the keys they own; none: the stream is sealed."""

    @property
    def is_sealed(self) -> bool:
        """Whether it has ended."""
        return not self.segments


@dataclass(frozen=True, slots=True)
class Unread:
    """What lies between a cut and the tail, in stored bytes: each event has 8 more than its payload."""

    bytes: int
    lost_bytes: int
    """Behind the cut, but no longer held; segments that are gone as a whole are not counted."""
    tail: StreamCut


@dataclass(frozen=True, slots=True)
class SegmentEnds:
    """Which of some segments have ended, and where."""

    still_open: tuple[str, ...]
    ends: dict[str, int]
    """Sealed segments: name to length in bytes. Those that retention has dropped are left out."""


def scopes() -> Steps[tuple[str, ...]]:
    """Every scope that we may see but Pravega's own, sorted; needs a permission of its own."""
    found = yield from _pages(calls.list_scopes)
    return tuple(sorted(name for name in found if not is_internal(name)))


def streams(scope: str, tag: str = "") -> Steps[tuple[str, ...]]:
    """Every `scope/stream` of a scope (with a tag) that we may see, but those that Pravega makes for itself; sorted.

    Raises:
        SourceNotFound: no such scope.
    """
    found = yield from _pages(lambda token: calls.list_streams(scope, token, tag=tag))
    return tuple(sorted(name for name in found if not is_internal(name.partition("/")[2])))


def _pages(call: Callable[[str], Call[Page]]) -> Steps[set[str]]:
    """The names of all pages. A page may be empty as we may see none of it; the last one repeats the token."""
    found: set[str] = set()
    token = ""
    for _ in range(_MOST_PAGES):
        page = yield from ask(call(token))
        if not page.names and page.token == token:
            return found
        found.update(page.names)
        token = page.token
    raise ProtocolError(f"the controller lists names on more than {_MOST_PAGES:,} pages")


def describe(stream: str) -> Steps[StreamState]:
    """A stream's settings and extent.

    Raises:
        SourceNotFound: no such stream or scope.
    """
    settings = yield from ask(calls.stream_settings(stream))
    segments = yield from ask(calls.current_segments(stream))
    head = yield from cuts.head(stream)
    return StreamState(stream, settings, head, (yield from cuts.tail(stream)), segments)


def unread(stream: str, start: StreamCut | None = None) -> Steps[Unread]:
    """What lies between a cut (None: the head) and the tail.

    Raises:
        InvalidRequest: the cut is not one of this stream.
        SourceNotFound: no such stream or scope.
    """
    head = yield from cuts.head(stream)
    tail = yield from cuts.tail(stream)
    pieces = yield from pieces_between(start or head, tail, head)
    lost = sum(piece.loss.end.parts[0] - piece.loss.start.parts[0] for piece in pieces if piece.loss)
    return Unread(sum(piece.range.bytes for piece in pieces), lost, tail)


def stream_end(stream: str) -> Steps[StreamCut | None]:
    """The end of a stream; None: it goes on.

    Raises:
        SourceNotFound: no such stream or scope.
    """
    return (yield from cuts.sealed_end(stream)) if (yield from cuts.is_sealed(stream)) else None


def segment_ends(stream: str, segments: Sequence[Segment]) -> Steps[SegmentEnds]:
    """Which segments have ended.

    A segment ends when it is split or merged, or its stream is sealed; and when a transaction that began before a
    scaling is committed after it.

    Raises:
        SourceNotFound: no such stream or scope.
        InvalidRequest: the stream never had such a segment.
    """
    still_open = []
    for segment in segments:
        if (yield from ask(calls.segment_open(stream, segment.id))):
            still_open.append(segment.name)  # noqa: PERF401 - a rule's questions cannot be asked in a comprehension
    ended = [segment.id for segment in segments if segment.name not in still_open]
    found = yield from infos(stream, ended)
    yield from _check_dropped(stream, [key for key in ended if key not in found])
    return SegmentEnds(tuple(still_open), {Segment(stream, key).name: info.write_offset for key, info in found.items()})


def _check_dropped(stream: str, missing: Sequence[int]) -> Steps[None]:
    """Whether segments that the stores do not know were the stream's once."""
    if not missing:
        return
    if not (yield from ask(calls.stream_exists(stream))):
        raise SourceNotFound(stream)
    head = yield from cuts.head(stream)
    past = yield from ask(calls.segments_between(stream, {}, head.offsets))
    for key in missing:
        if key not in past:
            raise InvalidRequest(f"{stream} has no segment {Segment(stream, key).name}, and never had one")


@dataclass(frozen=True, slots=True)
class MarksSeen:
    """The newest watermark of a stream so far, and where the marks after it will be."""

    newest: Mark | None = None
    offset: int = 0


def newest_mark(stream: str, seen: MarksSeen | None = None) -> Steps[MarksSeen]:
    """The newest watermark of a stream; only marks behind those seen before are read.

    Raises:
        SourceNotFound: no such stream or scope.
        NotAuthorized: we may not read `_MARK<stream>`, which needs a permission of its own.
    """
    seen = seen or MarksSeen()
    beside = mark_stream(stream)
    start = yield from cuts.head(beside)
    for key, end in (yield from cuts.tail(beside)).offsets.items():
        first = max(start.offsets.get(key, 0), seen.offset)
        event = yield from newest_event(Segment(beside, key), first, end)
        if event is not None:
            seen = MarksSeen(Mark.parse(stream, event), end)
    return seen


def segments_named(stream: str, names: Sequence[str]) -> tuple[Segment, ...]:
    """Segments of a stream by their qualified names, or in short: `5.#epoch.2`.

    Raises:
        InvalidName: not a segment's name.
        InvalidRequest: of another stream, or none at all.
    """
    found = tuple(_named(stream, names))
    if not found:
        raise InvalidRequest("name at least one segment, like '5.#epoch.2'")
    return found


def _named(stream: str, names: Sequence[str]) -> Iterator[Segment]:
    for name in names:
        segment = Segment.parse(name if "/" in name else f"{stream}/{name}")
        if segment.stream != stream:
            raise InvalidRequest(f"{name} is a segment of another stream than {stream}")
        yield segment
