"""Basis `event`: watermarks, which Pravega writes next to a stream while its writers note times, narrow what is read.

A mark says that the writers have noted times between `lower` and `upper`, and that all they wrote is before its cut. So
all events that they noted before `lower` are before the cut. Events that they noted after `upper` may be after the cut
of the mark *before* it. A window of marks is a superset of the window of times: a decoded field or a transform filters
its rows.

The controller does not wait for a writer that is silent for longer than the stream's timestamp aggregation timeout (by
default from one mark to the next), nor for a writer that is later than a mark. Marks never go back. The events of such
a writer are late: they are after the end of their window.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, StartTrimmed, WindowNotReady
from airflow_provider_streams.model.plan.plan import PlanRequest, Split
from airflow_provider_streams.model.plan.plan_summary import IN_NO_WINDOW
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.client.varint import Reader
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment, mark_stream
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning import cuts, start_verification
from airflow_provider_streams.systems.pravega.source import PravegaSource

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pravega.client.stream_client import Client

_PREFIX = bytes.fromhex("00000100")
_TIMES = struct.Struct(">4siqq")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AHEAD = 10
"""A time this many times as far from 1970 as today is in a smaller unit: the next one gives a thousand times."""
_TOLD_AHEAD = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Mark:
    """What the writers of a stream had noted at one moment, in their own unit."""

    lower: int
    """The least time noted; everything noted before it is before the cut."""
    upper: int
    """The greatest time noted."""
    cut: StreamCut
    """A bound after everything that the writers had written."""

    @classmethod
    def parse(cls, stream: str, data: bytes) -> Self:
        """From an event of the mark segment; `ProtocolError` for other bytes."""
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
    """Everything noted at or after the span's start is after its cut; None: no mark is early enough."""
    end: bytes | None = None
    """Everything noted before the span's end is before its cut; None: no mark has come so far."""
    first: bytes | None = None
    """The first mark whose lower bound has reached the window's own start."""
    last: bytes | None = None
    """The first mark whose lower bound has reached the window's own end."""
    settled: bytes | None = None
    """The `end` of the window before this one."""
    oldest_lower: int | None = None
    """Of the first mark that is held; None: there is no mark."""
    newest_lower: int | None = None
    """The time that the writers have reached; None: there is no mark."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a window, in the writers' unit."""

    since: int
    """Its events may have been stored from then on."""
    first: int
    """Its own start."""
    settled: int
    """The events of the window before this one may have been stored until then."""
    last: int
    """Its own end."""
    until: int
    """Its events may have been stored until then."""


def around(stored: Iterable[bytes], times: Times) -> Around:
    """The marks around a window, from all that are held, oldest first.

    The start is the mark before the last candidate. No mark up to the candidate has an `upper` after `since`, as a
    writer far ahead may have written before a mark that does not count it any more.

    Raises:
        ProtocolError: other bytes.
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
    first, settled, last, end = map(reached.get, (times.first, times.settled, times.last, times.until))
    return Around(before[0] if len(before) > 1 else None, end, first, last, settled, oldest, newest)


def _times(data: bytes) -> tuple[int, int]:
    if len(data) < _TIMES.size or not data.startswith(_PREFIX):
        raise ProtocolError(f"{len(data)} bytes that begin with {data[:8].hex()} are no watermark")
    _, _, lower, upper = _TIMES.unpack_from(data)
    return lower, upper


def stored_marks(client: Client, stream: str) -> Iterator[bytes]:
    """Every held watermark of a stream, oldest first; blocks. Reading `_MARK<stream>` needs a permission of its own."""
    from airflow_provider_streams.systems.pravega.reading.reader import PravegaSplitReader  # noqa: PLC0415 - loads Arrow

    marks = mark_stream(stream)
    start, end = client.run(cuts.head(marks)), client.run(cuts.tail(marks))
    for key, stop in end.offsets.items():
        first, last = Position.of(start.offsets.get(key, 0)), Position.of(stop)
        if first == last:
            continue
        split = Split(0, Segment(marks, key).name, first, last, stop - first.parts[0])
        with closing(PravegaSplitReader(client, split, ["event"])) as reader:
            for batch in reader:
                yield from (bytes(event.as_py()) for event in batch.column("event"))


def noted(moment: datetime, unit: timedelta) -> int:
    """A time as writers note it: the first whole unit at or after it since 1970."""
    return -((_EPOCH - moment) // unit)


def found(request: PlanRequest, source: PravegaSource, client: Client) -> Around:
    """The marks around the time in which a window's events may have been stored, see `stored_marks`; blocks.

    Raises:
        InvalidRequest: the writers note another unit than the source's.
    """
    window, stored = request.window, request.stored
    edges = (window.start, window.start + request.event.allowed_lateness, window.end, stored.end)
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
    """The request with the cuts of the marks around its window, the cuts of its own times, and remarks.

    A given cut stays. Without a start the window begins at the head.

    Raises:
        WindowNotReady: no watermark, or not the clock, has passed the window and its allowed lateness.
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
    waits_ms = client.call(stream_calls.stream_settings(source.stream)).timestamp_aggregation_ms
    told = (*_remarks(request, source, waits_ms, (start, settled, end)), *_ahead(marks, source))
    start_cut = request.start_cut or (start.cut.to_model() if start else None)
    asked = replace(request, start_cut=start_cut, end_cut=request.end_cut or end.cut.to_model())
    first, last = (Mark.parse(source.stream, mark or marks.end).cut.to_model() for mark in (marks.first, marks.last))
    return asked, (first, last), told


def reaches_back(marks: Around, source: PravegaSource, moment: datetime) -> bool:
    """Whether a mark before a time is held. Otherwise the first mark after it does not tell where the time is."""
    return marks.oldest_lower is not None and marks.oldest_lower < noted(moment, source.unit)


def _missing(newest: int | None, source: PravegaSource) -> str:
    if newest is None:
        return (
            "the stream has no watermark: its writers note no times (Java: noteTime, or automaticallyNoteTime); and no "
            "cut was recorded (RecordCutsOperator) since what may belong to the window was stored"
        )
    return f"its writers have noted times up to {newest} ({source.event_time_unit} since 1970)"


def _ahead(marks: Around, source: PravegaSource) -> Iterator[str]:
    """A remark on writers whose times are ahead of the clock: the others' events are late."""
    ahead = (marks.newest_lower or 0) * source.unit - (datetime.now(UTC) - _EPOCH)
    if ahead > _TOLD_AHEAD:
        yield f"watermarks are {ahead} ahead of the clock: what is noted after them is late (a recount counts it)"


def _check_beginning(request: PlanRequest, client: Client, stream: str) -> None:
    """Without an early enough mark a window begins at the head: right if nothing of its time was truncated."""
    head = client.run(cuts.head(stream))
    doubt = client.run(start_verification.doubt(request, head))
    if doubt is not None:
        reason = f"no watermark is held that is early enough for the window, and {doubt.cause}"
        raise StartTrimmed(stream, request.window.start.isoformat(), head.to_model(), reason)


def _remarks(
    request: PlanRequest, source: PravegaSource, waits_ms: int, marks: tuple[Mark | None, Mark, Mark]
) -> tuple[str, ...]:
    start, settled, end = marks
    first = f"the watermark {start.lower} to {start.upper}" if start else "the head"
    span = f"from {first} to the watermark {end.lower} to {end.upper} ({source.event_time_unit} since 1970)"
    noted_late = (
        f"what a writer notes after a watermark, for example after a silence of more than {waits_ms} ms (the stream's "
        "timestamp aggregation timeout)"
    )
    if request.event.event_time is not None:
        return (f"read {span}", f"late events are {IN_NO_WINDOW}, and counted by a recount (lookback): {noted_late}")
    late = (
        f"late events are {IN_NO_WINDOW}, and not counted: {noted_late}. This read meets some of them: its rows from "
        f"before the window at or after {settled.cut.to_model()}"
    )
    return f"a superset of the window, {span}: keep the rows whose own time is the window's", late
