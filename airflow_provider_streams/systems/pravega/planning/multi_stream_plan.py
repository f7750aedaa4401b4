"""The plan of several streams: each is planned as if it were alone, and the plans are joined. Pure.

Streams come and go between two windows. The events of a new stream belong to the window in which it appears, from its
first event on. A stream that vanishes takes unread events with it: a loss of the window in which it vanished, and of no
other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from airflow_provider_streams.errors import InvalidRequest, NotAuthorized, SourceNotFound, StartTrimmed
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.plan.plan import Estimate, Loss, NeighborCuts, Plan, PlanRequest, Range, SourceRef
from airflow_provider_streams.model.plan.plan_summary import by_relevance
from airflow_provider_streams.model.plan.row_filter import joined
from airflow_provider_streams.model.stream.cut import Cut, union
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.tail_observation import TailObservation
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import by_stream
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.removal_evidence import Fate, Witness, retention_proof
from airflow_provider_streams.systems.topic_parts import (
    part_of_around,
    part_of_cut,
    part_of_incarnation,
    part_of_tail_observation,
)

MOST_REMARKS = 20
_FIRST = Position.of(0)
_NONE = Cut({})
_VANISHED = "the stream no longer exists, or is none of the source's any more"
_HIDDEN = "the user may not read the stream any more"


@dataclass(frozen=True, slots=True)
class DeletedStream:
    """A stream that belongs to the window, and that does not exist any more."""

    stream: str
    start: Cut
    """Where the window starts in it; empty: the window begins with it."""
    end: Cut
    """Where the window ends in it; empty: it vanished before the window's end."""
    is_start_given: bool = True
    """Else the start is where a tail observation saw the stream."""
    cause: str = _VANISHED

    def ranges(self) -> Iterator[Range]:
        """Its segments, each at its last known place."""
        for shard, at in {**self.start, **self.end}.items():
            yield Range(shard, at, at, bytes=0, entries=0, verdict=f"lost: {self.cause}")

    def losses(self) -> Iterator[Loss]:
        """What is lost up to the last known place of each segment; how much came after it is not known."""
        for shard, at in {**self.start, **self.end}.items():
            yield Loss(shard, min(self.start.get(shard, _FIRST), at), at, self.cause)


def refuse_hidden(where: str, hidden: Iterable[str], way_on: str) -> None:
    """Refuse streams that the user may not read: the controller lists them no more than streams that do not exist.

    Raises:
        NotAuthorized: there is such a stream.
    """
    for stream in sorted(hidden):
        known_by = "an earlier plan, tail observation or recorded cut names it, and it is not known to be deleted"
        raise NotAuthorized(where, f"read {stream}", f"{known_by}; {way_on}")


def listed_as(source: PravegaSource, username: str, listed: Sequence[str]) -> str:
    """A remark on the streams that the controller listed; empty: the source names its streams itself."""
    if source.streams:
        return ""
    more = f" and {len(listed) - MOST_REMARKS} more" if len(listed) > MOST_REMARKS else ""
    shown = (
        f"listed in {source.chosen_scope}: {counted(len(listed), 'stream')}: {', '.join(listed[:MOST_REMARKS])}{more}"
    )
    return f"{shown}; Pravega lists only streams that the user{f' {username}' if username else ''} may read"


def _edges(request: PlanRequest) -> tuple[Cut | None, Cut | None]:
    """The known cuts at a window's edges; with basis `event` the recorded ones around it."""
    start, end, around = request.start_cut, request.end_cut, request.around
    return (start or around.start, end or around.end) if around else (start, end)


def _named(request: PlanRequest) -> set[str]:
    return {stream for cut in _edges(request) for stream in by_stream(cut or _NONE)}


def was_there(request: PlanRequest) -> set[str]:
    """The streams that existed once: cuts or tail observations name them."""
    return _named(request) | {stream for one in request.tail_observations for stream in by_stream(one.tail)}


def at_end(request: PlanRequest) -> tuple[str, ...]:
    """The streams that a recorded end cut names; empty: there is none.

    These were the source's streams then, whatever it chooses now. A stream that the cut does not name was made later:
    all of it belongs to later windows.
    """
    return tuple(by_stream(request.end_cut)) if request.end_cut and request.basis != "cuts" else ()


def check_named(request: PlanRequest, streams: Sequence[str]) -> None:
    """Refuse cuts of a user that leave out a stream, with `InvalidRequest`."""
    for name, cut in (("start", request.start_cut), ("end", request.end_cut)) if request.basis == "cuts" else ():
        if missing := sorted(set(streams) - by_stream(cut).keys()) if cut else []:
            raise InvalidRequest(f"the {name} cut does not name {missing[0]}: give one with segments of every stream")


def of_stream(request: PlanRequest, source: PravegaSource, stream: str) -> PlanRequest:
    """The part of a request that is about one stream. A stream that a recorded start lacks begins at its head."""
    single, around, neighbors = source.only(stream), request.around, request.neighbors
    return replace(
        request,
        source=single,
        start_cut=None if request.start_cut is None else part_of_cut(request.start_cut, single),
        end_cut=None if request.end_cut is None else part_of_cut(request.end_cut, single),
        start_incarnation=part_of_incarnation(request.start_incarnation, single),
        end_incarnation=part_of_incarnation(request.end_incarnation, single),
        first_seen=part_of_tail_observation(request.first_seen, single) if request.first_seen else None,
        seen_later=tuple(part_of_tail_observation(one, single) for one in request.seen_later),
        around=part_of_around(around, single) if around else None,
        neighbors=NeighborCuts(
            part_of_cut(neighbors.start or _NONE, single) or None,
            part_of_cut(neighbors.end or _NONE, single) or None,
            part_of_incarnation(neighbors.start_incarnation, single),
            part_of_incarnation(neighbors.end_incarnation, single),
        ),
    )


def gone(
    request: PlanRequest,
    source: PravegaSource,
    present: Collection[str],
    listed: Collection[str] = (),
    hidden: Collection[str] = (),
) -> tuple[DeletedStream, ...]:
    """The streams that existed at the window's start, or in it, and that do not exist any more.

    These are not in `present` (they are planned) or `listed` (they belong to later windows). The user may not read
    `hidden` ones any more, which was accepted.

    Raises:
        InvalidRequest: a cut names a stream that the source cannot have.
        StartTrimmed: a stream is gone, and loss is not accepted.
    """
    found = tuple(_gone(request, source, set(present), set(listed)))
    for one in found:
        if not source.may_have(one.stream):
            raise InvalidRequest(f"{source}: a cut names {one.stream}, which is none of its streams")
        if request.on_loss == "fail":
            shard, position = next(iter(one.start.items() or one.end.items()))
            raise StartTrimmed(shard, position if one.start else _FIRST, "nothing", _VANISHED)
    return tuple(replace(one, cause=_HIDDEN) if one.stream in hidden else one for one in found)


def _gone(request: PlanRequest, source: PravegaSource, present: set[str], listed: set[str]) -> Iterator[DeletedStream]:
    first, last = _edges(request)
    ends, before = by_stream(last or _NONE), by_stream(first or _NONE)
    seen = _seen_within(request, is_start_given=first is not None)
    seen_before = seen if first is None else {}
    for stream in sorted((before.keys() | ends.keys()) - present):
        start = before.get(stream) or seen_before.get(stream, _NONE)
        end = ends.get(stream, _NONE)
        if start != end:  # else nothing of it is the window's
            yield DeletedStream(stream, start, end, first is not None)
    if last is None:
        # an end cut does not name a stream that was made later
        seen = {**_seen_after(request, source), **seen}
    for stream in sorted(seen.keys() - before.keys() - ends.keys() - present - listed):
        yield DeletedStream(stream, seen[stream], _NONE, is_start_given=False)


def _seen_within(request: PlanRequest, *, is_start_given: bool) -> dict[str, Cut]:
    """Where streams first ended in tail observations of the window, or also of its start if no start cut is given."""
    found: dict[str, Cut] = {}
    for seen in request.tail_observations if request.basis != "cuts" or not is_start_given else ():
        is_before = is_start_given and seen.at <= request.seen_before
        if not is_before and seen.at < request.seen_until:
            found = {**by_stream(seen.tail), **found}
    return found


def _seen_after(request: PlanRequest, source: PravegaSource) -> dict[str, Cut]:
    """Where streams ended in tail observations after the window that saw events which may be the window's."""
    found: dict[str, list[Witness[TailObservation]]] = {}
    for seen in request.tail_observations:
        for stream in by_stream(seen.tail) if seen.at >= request.seen_until else ():
            part = part_of_tail_observation(seen, source.only(stream))
            found.setdefault(stream, []).append(witness_of_ended(part))
    start, end = request.seen_before, request.seen_until
    told = {stream: retention_proof(some, start, end, request.slack).lost_older for stream, some in found.items()}
    return {stream: seen.tail for stream, seen in told.items() if seen is not None}


def witness_of_ended(seen: TailObservation) -> Witness[TailObservation]:
    """A tail observation of a stream that is gone or was made again. Its first segments are as old as the stream."""
    saw_events = any(position > _FIRST for position in seen.tail.values())
    is_first = all(Segment.parse(shard).epoch == 0 for shard in seen.tail)
    made = min((datetime.fromisoformat(at) for _, at in seen.incarnation), default=None) if is_first else None
    return Witness(seen, Fate.GONE if saw_events else Fate.UNCLEAR, made, seen.incarnation)


def join(
    request: PlanRequest,
    source: PravegaSource,
    plans: Mapping[str, Plan],
    listed: Collection[str] = (),
    hidden: Collection[str] = (),
    *,
    cluster: str,
    now: datetime,
) -> Plan:
    """One plan of all streams, with what is lost of those that are gone.

    Raises:
        InvalidRequest, StartTrimmed: see `gone`.
        SourceNotFound: a named stream does not exist, and the request does not say what became of it.
    """
    lost = gone(request, source, plans, listed, hidden)
    _check_lacking(request, source, {*plans, *(one.stream for one in lost)})
    parts = list(plans.values())
    splits = [split for part in parts for split in part.splits]
    return Plan(
        reader=request.reader,
        source=SourceRef(
            "pravega",
            cluster,
            # hidden streams were accepted once: later plans do not look for them
            tuple(sorted((*plans, *(one.stream for one in lost if one.cause != _HIDDEN)))) or source.streams,
            tuple(fact for part in parts for fact in part.source.incarnation),
        ),
        window=request.window,
        basis=request.basis,
        filter=joined(part.filter for part in parts),
        start_cut=union((*(part.start_cut for part in parts), *(one.start for one in lost if one.is_start_given))),
        end_cut=union((*(part.end_cut for part in parts), *(one.end for one in lost))),
        ranges=(*(one for part in parts for one in part.ranges), *(one for each in lost for one in each.ranges())),
        splits=tuple(replace(split, index=index) for index, split in enumerate(splits)),
        estimate=Estimate(sum(part.estimate.bytes for part in parts)),
        # events that were stored after the last observation are after the tail of each stream
        observed_at=max((part.observed_at for part in parts), default=now),
        head=union(part.head for part in parts),
        losses=(*(one for part in parts for one in part.losses), *(one for each in lost for one in each.losses())),
        tail=union(part.tail for part in parts),
        remarks=_remarks(request, plans),
        selection=source.selection,
    )


def _check_lacking(request: PlanRequest, source: PravegaSource, explained: set[str]) -> None:
    explained = explained | _named(request)
    lacking = [stream for stream in source.streams if stream not in explained]
    # a stream that a recorded end cut does not name belongs to later windows
    if lacking and not at_end(request):
        raise SourceNotFound(lacking[0])
    if not explained:
        raise SourceNotFound(f"a stream of {source}")


def _remarks(request: PlanRequest, plans: Mapping[str, Plan]) -> tuple[str, ...]:
    before = by_stream(request.start_cut or _NONE)
    new = [stream for stream in plans if before and stream not in before]
    told = [f"{stream}: new since the window's start, so read from the first event that it holds" for stream in new]
    told += [f"{stream}: {remark}" for stream, part in plans.items() for remark in part.remarks]
    told = by_relevance(told)
    more = len(told) - MOST_REMARKS
    return (*told[:MOST_REMARKS], *([f"{counted(more, 'more remark')} on other streams"] if more > 0 else []))
