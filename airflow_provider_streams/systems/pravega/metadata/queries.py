"""Rules that ask about streams and change nothing, for hooks, sensors and operators.

Each of them raises `SourceNotFound` if there is no such stream or scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, SourceNotFound
from airflow_provider_streams.systems.pravega.client.controller import segment_calls, stream_calls
from airflow_provider_streams.systems.pravega.client.controller.call import Call, KeyedSegment
from airflow_provider_streams.systems.pravega.client.controller.stream_calls import Page
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps, chosen, infos
from airflow_provider_streams.systems.pravega.client.stored_bytes import newest_event
from airflow_provider_streams.systems.pravega.client.stream_configuration import Settings
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment, is_internal, mark_stream
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.planning.segment_ranges import pieces_between
from airflow_provider_streams.systems.pravega.planning.watermarks import Mark
from airflow_provider_streams.systems.pravega.source import PravegaSource

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
    """The open ones, with the keys that they own; none: the stream is sealed."""

    @property
    def is_sealed(self) -> bool:
        """Whether it has ended."""
        return not self.segments


@dataclass(frozen=True, slots=True)
class Unread:
    """What a stream holds between a cut and the tail, in stored bytes: each event has 8 more than its payload."""

    bytes: int
    lost_bytes: int
    """After the cut, but no longer held; segments that are gone as a whole are not counted."""
    tail: StreamCut


@dataclass(frozen=True, slots=True)
class SegmentEnds:
    """Which of some segments have ended, and where."""

    still_open: tuple[str, ...]
    ends: dict[str, int]
    """Sealed segments: name to length in bytes. Those that retention has dropped are left out."""


def scopes() -> Steps[tuple[str, ...]]:
    """Every scope that the user may see, except Pravega's own, sorted; needs a permission of its own."""
    found = yield from _pages(stream_calls.list_scopes)
    return tuple(sorted(name for name in found if not is_internal(name)))


def streams(scope: str, tag: str = "") -> Steps[tuple[str, ...]]:
    """Every `scope/stream` of a scope (with a tag) that the user may see, except Pravega's own; sorted."""
    found = yield from _pages(lambda token: stream_calls.list_streams(scope, token, tag=tag))
    return tuple(sorted(name for name in found if not is_internal(name.partition("/")[2])))


def _pages(call: Callable[[str], Call[Page]]) -> Steps[set[str]]:
    """The names of all pages. A page without visible names may be empty; the last one repeats the token."""
    found: set[str] = set()
    token = ""
    for _ in range(_MOST_PAGES):
        page = yield from call(token)
        if not page.names and page.token == token:
            return found
        found.update(page.names)
        token = page.token
    raise ProtocolError(f"the controller lists names on more than {_MOST_PAGES:,} pages")


def streams_of(source: PravegaSource) -> Steps[tuple[str, ...]]:
    """The streams of a source, sorted; named ones need not exist, but `SourceNotFound` if no other is chosen."""
    if source.streams:
        return tuple(sorted(source.streams))
    first, *others = source.tags or ("",)
    found = yield from streams(source.chosen_scope, first)
    for tag in others:
        tagged = yield from streams(source.chosen_scope, tag)
        found = tuple(name for name in found if name in tagged)
    found = tuple(name for name in found if not source.pattern or re.fullmatch(source.pattern, name))
    if not found:
        raise SourceNotFound(f"a stream of {source}")
    return found


def describe(stream: str) -> Steps[StreamState]:
    """A stream's settings and extent."""
    settings = yield from stream_calls.stream_settings(stream)
    segments = yield from segment_calls.current_segments(stream)
    head = yield from cuts.head(stream)
    return StreamState(stream, settings, head, (yield from cuts.tail(stream)), segments)


def unread(stream: str, start: StreamCut | None = None) -> Steps[Unread]:
    """What the stream holds between a cut (None: the head) and the tail; `InvalidRequest` for another stream's cut."""
    head = yield from cuts.head(stream)
    tail = yield from cuts.tail(stream)
    pieces = yield from pieces_between(start or head, tail, head)
    lost = sum(piece.loss.end.parts[0] - piece.loss.start.parts[0] for piece in pieces if piece.loss)
    return Unread(sum(piece.range.bytes for piece in pieces), lost, tail)


def stream_end(stream: str) -> Steps[StreamCut | None]:
    """The end of a stream; None: it goes on."""
    return (yield from cuts.sealed_end(stream)) if (yield from cuts.is_sealed(stream)) else None


def segment_ends(stream: str, segments: Sequence[Segment]) -> Steps[SegmentEnds]:
    """Which segments have ended.

    A segment ends when it is split or merged, when its stream is sealed, and when a transaction that began before a
    scaling is committed after it.

    Raises:
        InvalidRequest: the stream never had such a segment.
    """
    still_open = yield from chosen(segments, lambda one: segment_calls.segment_open(stream, one.id))
    ended = [segment.id for segment in segments if segment not in still_open]
    found = yield from infos(stream, ended)
    yield from _check_dropped(stream, [key for key in ended if key not in found])
    ends = {Segment(stream, key).name: info.write_offset for key, info in found.items()}
    return SegmentEnds(tuple(segment.name for segment in still_open), ends)


def _check_dropped(stream: str, missing: Sequence[int]) -> Steps[None]:
    """Refuse segments that the stream never had, of those that the stores do not know."""
    if not missing:
        return
    if not (yield from stream_calls.stream_exists(stream)):
        raise SourceNotFound(stream)
    past = yield from cuts.before((yield from cuts.head(stream)))
    for key in missing:
        if key not in past:
            raise InvalidRequest(f"{stream} has no segment {Segment(stream, key).name}, and never had one")


@dataclass(frozen=True, slots=True)
class MarksSeen:
    """The newest watermark of a stream so far, and where the marks after it will be."""

    newest: Mark | None = None
    offset: int = 0


def newest_mark(stream: str, seen: MarksSeen | None = None) -> Steps[MarksSeen]:
    """The newest watermark of a stream; reads only marks after those seen before.

    Reading `_MARK<stream>` needs a permission of its own.
    """
    seen = seen or MarksSeen()
    marks = mark_stream(stream)
    start = yield from cuts.head(marks)
    for key, end in (yield from cuts.tail(marks)).offsets.items():
        first = max(start.offsets.get(key, 0), seen.offset)
        event = yield from newest_event(Segment(marks, key), first, end)
        if event is not None:
            seen = MarksSeen(Mark.parse(stream, event), end)
    return seen


def segments_named(stream: str, names: Sequence[str]) -> tuple[Segment, ...]:
    """Segments of a stream by their qualified names, or in short: `5.#epoch.2`.

    Raises:
        InvalidName: not a segment's name.
        InvalidRequest: of another stream, or none at all.
    """
    if not names:
        raise InvalidRequest("name at least one segment, like '5.#epoch.2'")
    found = tuple(Segment.parse(name if "/" in name else f"{stream}/{name}") for name in names)
    for name, segment in zip(names, found, strict=True):
        if segment.stream != stream:
            raise InvalidRequest(f"{name} is a segment of another stream than {stream}")
    return found
