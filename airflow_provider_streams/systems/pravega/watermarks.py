"""Basis `event`: watermarks, which Pravega writes beside a stream while its writers note times, narrow what is read.

A mark says: the writers that were waited for have noted times between `lower` and `upper`, and have not written
behind its cut. So all that they noted before `lower` lies before the cut, and what they noted after `upper` need not
lie before the mark *before* it. A window of marks is a superset of the window of times: rows are filtered by a decoded
field, or in a transform.

The controller does not wait for a writer that is silent for longer than the stream's timestamp aggregation timeout (0
unless it is set: from one mark to the next), nor for one that lags behind a mark; and marks never go back. What such a
writer notes is late: it lies behind the end of its window.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Self

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, StartTrimmed, WindowNotReady
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import PlanRequest, Split
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pravega import beginning, calls, cuts
from airflow_provider_streams.systems.pravega.client import Client
from airflow_provider_streams.systems.pravega.compact import Reader
from airflow_provider_streams.systems.pravega.names import Segment, mark_stream
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_PREFIX = bytes.fromhex("00000100")
_TIMES = struct.Struct(">4siqq")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AHEAD = 10
"""Times as far from 1970 as this many times today are of another unit: the next smaller one gives a thousand times."""
_TOLD_AHEAD = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Mark:
    """What the writers of a stream had noted at one moment, in their own unit."""

    lower: int
    """The least time noted; everything noted before it lies before the cut."""
    upper: int
    """The greatest time noted."""
    cut: StreamCut
    """A bound behind what the writers had written."""

    @classmethod
    def parse(cls, stream: str, data: bytes) -> Self:
        """From an event of the mark segment.

        Raises:
            ProtocolError: other bytes.
        """
        content = Reader(data).record(_PREFIX)
        lower, upper, count = content.fixed("q"), content.fixed("q"), content.compact_int()
        offsets: dict[int, int] = {}
        for _ in range(count):
            segment = content.record(_PREFIX).fixed("q")
            offsets[segment] = content.fixed("q")
        try:
            return cls(lower, upper, StreamCut(stream, offsets))
        except InvalidRequest as error:
            raise ProtocolError(f"{stream}: a watermark holds no place: {error}") from error


@dataclass(frozen=True, slots=True)
class Around:
    """The marks around a span of times, as they are stored."""

    start: bytes | None = None
    """Everything noted at or after the span's start lies behind its cut; None: no mark is early enough."""
    end: bytes | None = None
    """Everything noted before the span's end lies before its cut; None: no mark has come so far."""
    first: bytes | None = None
    """The first mark whose lower bound has reached the window's own start."""
    last: bytes | None = None
    """The first one whose lower bound has reached its own end."""
    settled: bytes | None = None
    """As `end`, of the window before: where that one ends."""
    oldest_lower: int | None = None
    """Of the first mark that is held; None: there is no mark."""
    newest_lower: int | None = None
    """Up to which time the writers have come; None: there is no mark."""


@dataclass(frozen=True, slots=True)
class Times:
    """Of a window, in the writers' unit."""

    since: int
    """From when on its events may have been stored."""
    first: int
    """Its own start."""
    settled: int
    """Until when those of the window before may have been stored."""
    last: int
    """Its own end."""
    until: int
    """Until when its events may have been stored."""


def around(stored: Iterable[bytes], times: Times) -> Around:
    """The marks around a window, from all that are held, oldest first.

    The start is one mark before the last that may be it, and no mark up to that one has an `upper` after `since`: a
    writer far ahead may have written before a mark that does not count it any more.

    Raises:
        ProtocolError: these are no marks.
    """
    before: list[bytes] = []
    reached: dict[int, bytes] = {}
    early, oldest, newest = True, None, None
    for data in stored:
        newest, upper = _times(data)
        oldest = newest if oldest is None else oldest
        early = early and upper <= times.since
        if early:
            before = [*before[-1:], data]
        for moment in (times.first, times.settled, times.last, times.until):
            if newest >= moment:
                reached.setdefault(moment, data)
    first, settled, last, end = (
        reached.get(moment) for moment in (times.first, times.settled, times.last, times.until)
    )
    return Around(before[0] if len(before) > 1 else None, end, first, last, settled, oldest, newest)


def _times(data: bytes) -> tuple[int, int]:
    if len(data) < _TIMES.size or not data.startswith(_PREFIX):
        raise ProtocolError(f"{len(data)} bytes that begin with {data[:8].hex()} are no watermark")
    _, _, lower, upper = _TIMES.unpack_from(data)
    return lower, upper


def stored_marks(client: Client, stream: str) -> Iterator[bytes]:
    """Every watermark of a stream that is still held, oldest first; blocks.

    Raises:
        SourceNotFound: no such stream.
        NotAuthorized: we may not read `_MARK<stream>`, which needs a permission of its own.
    """
    from airflow_provider_streams.systems.pravega.reader import PravegaSplitReader  # noqa: PLC0415 - loads Arrow

    beside = mark_stream(stream)
    start, end = client.run(cuts.head(beside)), client.run(cuts.tail(beside))
    for key, stop in end.offsets.items():
        first, last = Position.of(start.offsets.get(key, 0)), Position.of(stop)
        if first == last:
            continue
        split = Split(0, Segment(beside, key).name, first, last, stop - first.parts[0])
        with closing(PravegaSplitReader(client, split, ["event"])) as reader:
            for batch in reader:
                yield from (bytes(event.as_py()) for event in batch.column("event"))


def noted(moment: datetime, unit: timedelta) -> int:
    """A time as writers note it: the first whole unit at or after it since 1970."""
    return -((_EPOCH - moment) // unit)


def found(request: PlanRequest, source: PravegaSource, client: Client) -> Around:
    """The marks around a window, so much earlier and later as its events may have been stored; blocks.

    Raises:
        SourceNotFound, NotAuthorized: as `stored_marks`.
        InvalidRequest: the writers note another unit than the source's.
    """
    window, stored = request.window, request.stored
    edges = (window.start, window.start + request.event.max_lateness, window.end, stored.end)
    times = Times((stored.start - _EPOCH) // source.unit, *(noted(moment, source.unit) for moment in edges))
    marks = around(stored_marks(client, source.stream), times)
    _check_unit(marks, source)
    return marks


def _check_unit(marks: Around, source: PravegaSource) -> None:
    """A time in a smaller unit looks like one in some thousand years: every window would end at the first mark."""
    now = noted(datetime.now(UTC), source.unit)
    if marks.newest_lower is not None and marks.newest_lower > _AHEAD * now:
        raise InvalidRequest(
            f"{source}: its newest watermark is {marks.newest_lower} ({source.event_time_unit} since 1970), and the "
            f"clock says {now}: its writers note a smaller unit (name it: PravegaSource(.., event_time_unit='us')), or "
            "one of them noted a wrong time, and watermarks never go back: read by recorded cuts (basis='append')"
        )


def between(
    request: PlanRequest, source: PravegaSource, client: Client, marks: Around
) -> tuple[PlanRequest, tuple[Cut, Cut], tuple[str, ...]]:
    """The request with the cuts of the marks around its window, those of its own times, and what to know of it.

    A cut that is given stays. Without a start it begins at the head.

    Raises:
        WindowNotReady: no watermark has come behind all that may be the window's, or the clock has not.
        StartTrimmed: the window's beginning cannot be proven to be held, and loss is not accepted.
    """
    if marks.end is None:
        raise WindowNotReady(source, request.window, _missing(marks.newest_lower, source))
    if datetime.now(UTC) < request.stored.end:
        raise WindowNotReady(source, request.window, f"{request.stored.end.isoformat()} is to come")
    start = None if marks.start is None else Mark.parse(source.stream, marks.start)
    if start is None and request.start_cut is None and request.on_loss == "fail":
        _check_beginning(request, client, source.stream)
    end, settled = Mark.parse(source.stream, marks.end), Mark.parse(source.stream, marks.settled or marks.end)
    told = _remarks(request, source, _timeout(client, source), (start, settled, end))
    told = (*told, *_ahead(marks, source))
    start_cut = request.start_cut or (start.cut.to_model() if start else None)
    asked = replace(request, start_cut=start_cut, end_cut=request.end_cut or end.cut.to_model())
    first, last = (Mark.parse(source.stream, mark or marks.end).cut.to_model() for mark in (marks.first, marks.last))
    return asked, (first, last), told


def reaches_back(marks: Around, source: PravegaSource, moment: datetime) -> bool:
    """Whether a mark is held of before a time: else the first one behind it tells nothing of where that time lies."""
    return marks.oldest_lower is not None and marks.oldest_lower < noted(moment, source.unit)


def _missing(newest: int | None, source: PravegaSource) -> str:
    if newest is None:
        return (
            "the stream has no watermark: its writers note no times (Java: noteTime, or automaticallyNoteTime); and no "
            "cut was recorded (RecordCutsOperator) since what may belong to the window was stored"
        )
    return f"its writers have noted times up to {newest} ({source.event_time_unit} since 1970)"


def _ahead(marks: Around, source: PravegaSource) -> Iterator[str]:
    """What to know of writers whose times are ahead of the clock: the others' events are late."""
    ahead = (marks.newest_lower or 0) * source.unit - (datetime.now(UTC) - _EPOCH)
    if ahead > _TOLD_AHEAD:
        yield f"watermarks are {ahead} ahead of the clock: what is noted behind them is late (a recount counts it)"


def _check_beginning(request: PlanRequest, client: Client, stream: str) -> None:
    """Without a mark that is early enough a window begins at the head: right if nothing of its time was truncated."""
    head = client.run(cuts.head(stream))
    doubt = client.run(beginning.doubt(request, head))
    if doubt is not None:
        reason = f"no watermark is held that is early enough for the window, and {doubt.cause}"
        raise StartTrimmed(stream, request.window.start.isoformat(), head.to_model(), reason)


def _timeout(client: Client, source: PravegaSource) -> int:
    return client.call(calls.stream_settings(source.stream)).timestamp_aggregation_ms


def _remarks(
    request: PlanRequest, source: PravegaSource, waits_ms: int, marks: tuple[Mark | None, Mark, Mark]
) -> tuple[str, ...]:
    start, settled, end = marks
    first = f"the watermark {start.lower} to {start.upper}" if start else "the head"
    span = f"from {first} to the watermark {end.lower} to {end.upper} ({source.event_time_unit} since 1970)"
    noted_late = (
        f"what a writer notes behind a watermark, as one may that was silent for more than {waits_ms} ms (the stream's "
        "timestamp aggregation timeout)"
    )
    if request.event.event_time is not None:
        return (f"read {span}", f"late events are in no window, and counted by a recount (lookback): {noted_late}")
    late = (
        f"late events are in no window, and not counted: {noted_late}. Those that this read meets are its rows of "
        f"before the window that lie at or behind {settled.cut.to_model()}"
    )
    return f"a superset of the window, {span}: keep the rows whose own time is the window's", late
