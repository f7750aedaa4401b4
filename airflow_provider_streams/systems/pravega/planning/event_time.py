"""Basis `event`: the places around a window's events, and the rows between them that are the window's.

Events carry no time that could be looked up. Their writers' watermarks tell where a time is, or cuts that were recorded
on a clock. The read between them holds more than the window; a decoded field tells which rows are the window's.

Events without a time belong to the window in which they were stored: between two edges, at the window's start and its
end. If a neighbor window is pinned, its edge is this window's edge, however it was found. So each event is in one
window, even if the stream's writers began to note times in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest, RecordedBounds
from airflow_provider_streams.model.plan.plan_summary import IN_NO_WINDOW
from airflow_provider_streams.model.plan.row_filter import FieldFilter, Stored
from airflow_provider_streams.model.schema import event_time_field
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.tail_observation import Incarnation
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps
from airflow_provider_streams.systems.pravega.metadata import incarnation as origin
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning import cuts, watermarks
from airflow_provider_streams.systems.pravega.planning.segment_ranges import pieces_between
from airflow_provider_streams.systems.pravega.source import PravegaSource, check_event_basis, pravega_source

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pravega.client.stream_client import Client

_PLACE = "offset"
"""The column with the place of an event in its segment."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request with the cuts around its window."""

    request: PlanRequest
    edges: tuple[Cut, Cut] | None
    """Events without a time between these are the window's; None: that is not known."""
    remarks: tuple[str, ...] = ()
    recorded: tuple[Cut | None, Cut | None] = (None, None)
    """Recorded cuts at the window's edges. They are its edges if no watermark before them is held."""
    blind: str = ""
    """The first watermark or recorded cut, if it is after the window's start; empty: it is before."""


def resolve(request: PlanRequest, client: Client) -> Resolved:
    """The cuts around a window. Given cuts stay; recorded cuts serve a stream without watermarks.

    Raises:
        InvalidRequest: the request names no field for an event's time, and does not accept a superset.
        WindowNotReady: the writers, or the recorder, have not come so far.
        StartTrimmed: the window's beginning cannot be proven to be held, and loss is not accepted.
    """
    source = pravega_source(request.source)
    event_time_field.check_request(request, source.value)
    check_event_basis(request.event, source)
    if request.start_cut is not None and request.end_cut is not None:
        return Resolved(request, None)
    found = watermarks.found(request, source, client)
    if found.newest_lower is None and request.around is not None and request.end_cut is None:
        resolved = _by_recorded(request, request.around, source, client)
    else:
        resolved = _by_marks(request, source, client, found)
    return client.run(_met(resolved, source.stream))


def _by_marks(request: PlanRequest, source: PravegaSource, client: Client, found: watermarks.Around) -> Resolved:
    resolved = Resolved(*watermarks.between(request, source, client, found))
    window, around = request.window, request.around
    back = [watermarks.reaches_back(found, source, edge) for edge in (window.start, window.end)]
    cuts_there = (around.since, around.until) if around else (None, None)
    recorded = (None if back[0] else cuts_there[0], None if back[1] else cuts_there[1])
    return replace(resolved, recorded=recorded, blind="" if back[0] else "the first watermark that is held")


def _by_recorded(request: PlanRequest, around: RecordedBounds, source: PravegaSource, client: Client) -> Resolved:
    if not around.end:
        # the stream was made after everything of the window that is not late was stored: it holds none of it
        head = client.run(cuts.head(source.stream)).to_model()
        return Resolved(replace(request, start_cut=head, end_cut=head), (head, head))
    remark = "the stream has no watermarks: it is read between recorded cuts around the window"
    asked = replace(
        request,
        start_cut=request.start_cut or around.start,
        end_cut=around.end,
        start_incarnation=around.start_incarnation,
        end_incarnation=around.end_incarnation,
    )
    blind = "the first recorded cut" if around.start is None else ""
    return Resolved(asked, (around.since, around.until), (remark,), blind=blind)


def _met(resolved: Resolved, stream: str) -> Steps[Resolved]:
    """With the edges of pinned neighbor windows; this window reads up to them."""
    if resolved.edges is None or resolved.request.event.event_time is None:
        return resolved
    asked, neighbors, remarks = resolved.request, resolved.request.neighbors, resolved.remarks
    head = yield from cuts.head(stream)
    own_start, own_end = (cut or head.to_model() for cut in resolved.edges)
    of_recorder = asked.around.end_incarnation if asked.around else ()
    start = yield from _edge(own_start, resolved.recorded[0], of_recorder)
    if start == own_start and resolved.blind and not neighbors.start:
        field = resolved.request.event.event_time
        remarks = (*remarks, f"events without {field} that were stored before {resolved.blind} are {IN_NO_WINDOW}")
    start = yield from _edge(start, neighbors.start, neighbors.start_incarnation)
    end = yield from _edge(own_end, resolved.recorded[1], of_recorder)
    end = yield from _edge(end, neighbors.end, neighbors.end_incarnation)
    if (start, end) != (own_start, own_end) and not (yield from _is_ordered(head, start, end)):
        # of two pinned neighbors the earlier one keeps its events
        is_end_pinned, is_start_pinned = end == neighbors.end, start == neighbors.start
        start, end = (end, end) if is_end_pinned and not is_start_pinned else (start, start)
    if start != own_start:
        asked = replace(asked, start_cut=(yield from _outer(head, asked.start_cut, start, is_start=True)))
    if end != own_end:
        asked = replace(asked, end_cut=(yield from _outer(head, asked.end_cut, end, is_start=False)))
    return replace(resolved, request=asked, edges=(start, end), remarks=remarks)


def _edge(own: Cut, neighbor: Cut | None, incarnation: Incarnation) -> Steps[Cut]:
    """The edge of the neighbor window; its own without one, or if that one is of another incarnation of the stream."""
    if not neighbor or neighbor == own:
        return own
    return own if (yield from origin.contradiction(incarnation)) is not None else neighbor


def _outer(head: StreamCut, cut: Cut | None, edge: Cut, *, is_start: bool) -> Steps[Cut | None]:
    """The cut of a window, moved outwards until an edge is inside; None: the head."""
    if not cut:
        return None
    inner, outer = (cut, edge) if is_start else (edge, cut)
    if (yield from _is_ordered(head, inner, outer)):
        return cut
    if cut.keys() == edge.keys():
        choose = min if is_start else max
        return Cut({shard: choose(position, edge[shard]) for shard, position in cut.items()})
    if (yield from _is_ordered(head, outer, inner)):
        return edge
    return None if is_start else (yield from cuts.tail(head.stream)).to_model()


def _is_ordered(head: StreamCut, earlier: Cut, later: Cut) -> Steps[bool]:
    first, last = (StreamCut.from_model(head.stream, cut) for cut in (earlier, later))
    try:
        yield from pieces_between(first, last, head)
    except InvalidRequest:
        return False
    return True


def finish(resolved: Resolved, plan: Plan, client: Client) -> Plan:
    """The plan with its row filter and remarks."""
    event, window, remarks = resolved.request.event, plan.window, resolved.remarks
    if event.event_time is None:
        return replace(plan, remarks=(*plan.remarks, *remarks))
    stored = None
    if resolved.edges is not None:
        (stream,) = plan.source.names
        spans = client.run(_spans(stream, *resolved.edges)) if plan.splits else {}
        stored = Stored(_PLACE, spans, resolved.edges)
    else:
        told = f"events without {event.event_time} are {IN_NO_WINDOW}: its cuts do not say where the window before ends"
        remarks = (*remarks, told)
    rows = FieldFilter(event.event_time, window.start_us, window.end_us, event.unit, stored)
    return replace(plan, filter=rows, remarks=(*plan.remarks, *remarks))


def _spans(stream: str, start: Cut, end: Cut) -> Steps[dict[str, tuple[int, int]]]:
    head = yield from cuts.head(stream)
    pieces = yield from pieces_between(StreamCut.from_model(stream, start), StreamCut.from_model(stream, end), head)
    filled = [piece.range for piece in pieces if piece.range.bytes]
    return {one.shard: (one.start.parts[0], one.end.parts[0]) for one in filled}
