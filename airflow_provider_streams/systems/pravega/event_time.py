"""Basis `event`: between which places a window's events lie, and which rows of what lies there are the window's.

Events carry no time that could be looked up. Their writers' watermarks tell where a time lies, or cuts that were
recorded on a clock. What is read between is more than the window; a decoded field says which of it is the window's.

Events without a time are of the window in which they were stored: between two edges, at the window's start and its end.
Where a window beside this one is pinned, its edge is this one's, however it was found: so each event is in one window,
also if the stream's writers began to note times in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model import event_field
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Plan, PlanRequest
from airflow_provider_streams.model.row_filter import FieldFilter, Stored
from airflow_provider_streams.model.sighting import Identity
from airflow_provider_streams.systems.pravega import cuts, event_basis, origin, watermarks
from airflow_provider_streams.systems.pravega.client import Client
from airflow_provider_streams.systems.pravega.pieces import pieces_between
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.steps import Steps
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_PLACE = "offset"
"""The column of where an event lies in its segment."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request with the cuts around its window."""

    request: PlanRequest
    edges: tuple[Cut, Cut] | None
    """Between which events without a time are the window's; None: that is not known."""
    remarks: tuple[str, ...] = ()
    recorded: tuple[Cut | None, Cut | None] = (None, None)
    """Recorded cuts at the window's edges, where no watermark is held of before them: these are its edges then."""
    blind: str = ""
    """What nothing is known before: the first watermark, or recorded cut; empty: that lies before the window."""


def resolve(request: PlanRequest, client: Client) -> Resolved:
    """The cuts around a window. Those that are given stay; recorded ones serve a stream without watermarks.

    Raises:
        InvalidRequest: nobody says which field is an event's time, nor that all that lies around is wanted.
        WindowNotReady: the writers, or the recorder, have not come so far.
        StartTrimmed: the window's beginning cannot be proven to be held, and loss is not accepted.
    """
    source = request.source
    if not isinstance(source, PravegaSource):
        raise InvalidRequest(f"{source} is no Pravega stream")
    event_field.check_request(request, source.value)
    event_basis.check(request.event, source)
    if request.start_cut is not None and request.end_cut is not None:
        return Resolved(request, None)
    found = watermarks.found(request, source, client)
    if found.newest_lower is None and request.around is not None and request.end_cut is None:
        resolved = _by_recorded(request, source, client)
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


def _by_recorded(request: PlanRequest, source: PravegaSource, client: Client) -> Resolved:
    around = request.around
    if around is None:
        return Resolved(request, None)
    if not around.end:
        # the stream was made when everything of the window, that is not late, was stored: it holds none of it
        head = client.run(cuts.head(source.stream)).to_model()
        return Resolved(replace(request, start_cut=head, end_cut=head), (head, head))
    remark = "the stream has no watermarks: it is read between recorded cuts around the window"
    asked = replace(
        request,
        start_cut=request.start_cut or around.start,
        end_cut=around.end,
        start_identity=around.start_identity,
        end_identity=around.end_identity,
    )
    blind = "the first recorded cut" if around.start is None else ""
    return Resolved(asked, (around.since, around.until), (remark,), blind=blind)


def _met(resolved: Resolved, stream: str) -> Steps[Resolved]:
    """With the edges of the windows that are pinned beside this one, which reads as far as these lie."""
    if resolved.edges is None or resolved.request.event.event_time is None:
        return resolved
    asked, beside, remarks = resolved.request, resolved.request.beside, resolved.remarks
    head = yield from cuts.head(stream)
    own_start, own_end = (cut or head.to_model() for cut in resolved.edges)
    of_recorder = asked.around.end_identity if asked.around else ()
    start = yield from _edge(own_start, resolved.recorded[0], of_recorder)
    if start == own_start and resolved.blind and not beside.start:
        field = resolved.request.event.event_time
        remarks = (*remarks, f"events without {field} that were stored before {resolved.blind} are in no window")
    start = yield from _edge(start, beside.start, beside.start_identity)
    end = yield from _edge(own_end, resolved.recorded[1], of_recorder)
    end = yield from _edge(end, beside.end, beside.end_identity)
    if (start, end) != (own_start, own_end) and not (yield from _is_ordered(head, start, end)):
        # of two pinned ones the window before keeps what it has
        is_end_pinned, is_start_pinned = end == beside.end, start == beside.start
        start, end = (end, end) if is_end_pinned and not is_start_pinned else (start, start)
    if start != own_start:
        asked = replace(asked, start_cut=(yield from _outer(head, asked.start_cut, start, is_start=True)))
    if end != own_end:
        asked = replace(asked, end_cut=(yield from _outer(head, asked.end_cut, end, is_start=False)))
    return replace(resolved, request=asked, edges=(start, end), remarks=remarks)


def _edge(own: Cut, beside: Cut | None, identity: Identity) -> Steps[Cut]:
    """That of the window beside this one; its own where there is none, or only one of another life of the stream."""
    if not beside or beside == own:
        return own
    return own if (yield from origin.contradiction(identity)) is not None else beside


def _outer(head: StreamCut, cut: Cut | None, edge: Cut, *, is_start: bool) -> Steps[Cut | None]:
    """The cut of a window so far out that an edge lies inside; None: the head."""
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
    """The plan with its filter, and what a person should know of it."""
    event, window, remarks = resolved.request.event, plan.window, resolved.remarks
    if event.event_time is None:
        return replace(plan, remarks=(*plan.remarks, *remarks))
    stored = None
    if resolved.edges is not None:
        (stream,) = plan.source.names
        spans = client.run(_spans(stream, *resolved.edges)) if plan.splits else {}
        stored = Stored(_PLACE, spans, resolved.edges)
    else:
        told = f"events without {event.event_time} are in no window: its cuts do not say where the window before ends"
        remarks = (*remarks, told)
    rows = FieldFilter(event.event_time, window.start_us, window.end_us, event.unit, stored)
    return replace(plan, filter=rows, remarks=(*plan.remarks, *remarks))


def _spans(stream: str, start: Cut, end: Cut) -> Steps[dict[str, tuple[int, int]]]:
    head = yield from cuts.head(stream)
    pieces = yield from pieces_between(StreamCut.from_model(stream, start), StreamCut.from_model(stream, end), head)
    filled = [piece.range for piece in pieces if piece.range.bytes]
    return {one.shard: (one.start.parts[0], one.end.parts[0]) for one in filled}
