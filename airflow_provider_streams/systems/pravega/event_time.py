"""Basis `event`: between which places a window's events lie, and which rows of what lies there are the window's.

Events carry no time that could be looked up. Their writers' watermarks tell where a time lies, or cuts that were
recorded on a clock. What is read between is more than the window; a decoded field says which of it is the window's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model import event_field
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Plan, PlanRequest
from airflow_provider_streams.model.row_filter import FieldFilter, Stored
from airflow_provider_streams.systems.pravega import cuts, event_basis, watermarks
from airflow_provider_streams.systems.pravega.client import Client
from airflow_provider_streams.systems.pravega.pieces import Piece, pieces_between
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.steps import Steps
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_PLACE = "offset"
"""The column of where an event lies in its segment."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request with the cuts around its window."""

    request: PlanRequest
    settled: Cut | None
    """Where the window before this one ends; None: that is not known."""
    remarks: tuple[str, ...] = ()


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
        return _by_recorded(request, source, client)
    between, settled, remarks = watermarks.between(request, source, client, found)
    return Resolved(between, settled, remarks)


def _by_recorded(request: PlanRequest, source: PravegaSource, client: Client) -> Resolved:
    around = request.around
    if around is None:
        return Resolved(request, None)
    if not around.end:
        # the stream was made when everything of the window, that is not late, was stored: it holds none of it
        head = client.run(cuts.head(source.stream)).to_model()
        return Resolved(replace(request, start_cut=head, end_cut=head), head)
    remark = "the stream has no watermarks: it is read between recorded cuts around the window"
    asked = replace(
        request,
        start_cut=request.start_cut or around.start,
        end_cut=around.end,
        start_identity=around.start_identity,
        end_identity=around.end_identity,
    )
    return Resolved(asked, around.settled, (remark,))


def finish(resolved: Resolved, plan: Plan, client: Client) -> Plan:
    """The plan with its filter, and what a person should know of it."""
    event, window, remarks = resolved.request.event, plan.window, resolved.remarks
    if event.event_time is None:
        return replace(plan, remarks=(*plan.remarks, *remarks))
    stored = None
    if resolved.settled is not None and plan.splits:
        stored = Stored(_PLACE, _spans(client.run(_settled(resolved.settled, plan))))
    else:
        told = f"events without {event.event_time} are in no window: its cuts do not say where the window before ends"
        remarks = (*remarks, told)
    rows = FieldFilter(event.event_time, window.start_us, window.end_us, event.unit, stored)
    return replace(plan, filter=rows, remarks=(*plan.remarks, *remarks))


def _settled(settled: Cut, plan: Plan) -> Steps[list[Piece]]:
    """What was stored between the end of the window before, and that of this one."""
    (stream,) = plan.source.names
    head = yield from cuts.head(stream)
    start = StreamCut.from_model(stream, settled) if settled else head
    return (yield from pieces_between(start, StreamCut.from_model(stream, plan.end_cut), head))


def _spans(pieces: Sequence[Piece]) -> dict[str, tuple[int, int]]:
    filled = [piece.range for piece in pieces if piece.range.bytes]
    return {one.shard: (one.start.parts[0], one.end.parts[0]) for one in filled}
