"""Basis `event`: watermarks, which Pravega writes beside a stream while its writers note times, narrow what is read.

A mark says: the writers have noted times between `lower` and `upper`, and have not written behind its cut. So all
events noted before `lower` lie before the cut, and none that a writer noted after `upper` need lie before the mark
*before* it. A window of marks is a superset of the window of times: rows are filtered by a time in the payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Self

from airflow_provider_streams.errors import StartTrimmed, WindowNotReady
from airflow_provider_streams.model.plan import PlanRequest, Split
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.source import PravegaSource
from airflow_provider_streams.systems.pravega import cuts
from airflow_provider_streams.systems.pravega.client import Client
from airflow_provider_streams.systems.pravega.compact import Reader
from airflow_provider_streams.systems.pravega.names import Segment, mark_stream
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_PREFIX = bytes.fromhex("00000100")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        return cls(lower, upper, StreamCut(stream, offsets))


def marks(client: Client, stream: str) -> list[Mark]:
    """Every watermark of a stream that is still held, oldest first; blocks.

    Raises:
        SourceNotFound: no such stream.
        NotAuthorized: we may not read `_MARK<stream>`, which needs a permission of its own.
    """
    from airflow_provider_streams.systems.pravega.reader import PravegaSplitReader  # noqa: PLC0415 - loads Arrow

    beside = mark_stream(stream)
    start, end = client.run(cuts.head(beside)), client.run(cuts.tail(beside))
    found: list[Mark] = []
    for key, stop in end.offsets.items():
        first, last = Position.of(start.offsets.get(key, 0)), Position.of(stop)
        if first == last:
            continue
        split = Split(0, Segment(beside, key).name, first, last, stop - first.parts[0])
        with closing(PravegaSplitReader(client, split, ["event"])) as reader:
            events = (bytes(event.as_py()) for batch in reader for event in batch.column("event"))
            found += [Mark.parse(stream, event) for event in events]
    return found


def noted(moment: datetime, unit: timedelta) -> int:
    """A time as writers note it: the first whole unit at or after it since 1970."""
    return -((_EPOCH - moment) // unit)


def newest_lower(found: Sequence[Mark]) -> int | None:
    """Up to which time the stream's events are complete, by its writers; None: no mark."""
    return found[-1].lower if found else None


def resolve(request: PlanRequest, source: PravegaSource, client: Client) -> PlanRequest:
    """The request with the cuts of the marks around its window; cuts that are given stay.

    Raises:
        WindowNotReady: no watermark has reached the window's end.
        StartTrimmed: the window's beginning cannot be proven to be held, and loss is not accepted.
    """
    if request.start_cut is not None and request.end_cut is not None:
        return request
    found = marks(client, source.stream)
    end = end_mark(found, noted(request.window.end, source.unit))
    if end is None:
        last = newest_lower(found)
        reason = (
            f"its writers have noted times up to {last} ({source.event_time_unit} since 1970)"
            if last is not None
            else "the stream has no watermark: its writers note no times (Java: noteTime, or automaticallyNoteTime)"
        )
        raise WindowNotReady(request.source, request.window, reason)
    start = start_mark(found, (request.window.start - _EPOCH) // source.unit)
    first = start.cut if start is not None else _beginning(request, client, source.stream, found)
    return replace(
        request,
        start_cut=request.start_cut or first.to_model(),
        end_cut=request.end_cut or end.cut.to_model(),
    )


def end_mark(found: Sequence[Mark], until: int) -> Mark | None:
    """The first mark before whose cut everything noted before `until` lies."""
    return next((mark for mark in found if mark.lower >= until), None)


def start_mark(found: Sequence[Mark], since: int) -> Mark | None:
    """The last mark behind whose cut everything noted at or after `since` lies: one before the last that may be it."""
    older = [mark for mark in found if mark.upper <= since]
    return older[-2] if len(older) > 1 else None


def _beginning(request: PlanRequest, client: Client, stream: str, found: Sequence[Mark]) -> StreamCut:
    """The head, where no mark is early enough: right if nothing was ever truncated."""
    head = client.run(cuts.head(stream))
    whole = all(key >> 32 == 0 and offset == 0 for key, offset in head.offsets.items())
    if not whole and request.on_loss == "fail":
        raise StartTrimmed(
            stream,
            request.window.start.isoformat(),
            head,
            f"the stream was truncated, and no watermark before the window is held (of {len(found)})",
        )
    return head
