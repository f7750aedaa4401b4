"""The plan of several streams: each is planned as if it were alone, and the plans are joined. Pure.

Streams come and go between two windows. The events of one that is made meanwhile belong to the window in which it
appears, from its first one on. One that vanishes takes with it what nobody has read: a loss of the window in which it
vanished, and of no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed
from airflow_provider_streams.model.cut import Cut, union
from airflow_provider_streams.model.plan import (
    Beside,
    Estimate,
    Loss,
    Plan,
    PlanRequest,
    Range,
    RecordedAround,
    SourceRef,
    Split,
)
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.row_filter import joined
from airflow_provider_streams.systems.pravega.shards import (
    by_stream,
    part_of_cut,
    part_of_life,
    part_of_sighting,
)
from airflow_provider_streams.systems.pravega.source import PravegaSource

MOST_REMARKS = 20
_FIRST = Position.of(0)
_VANISHED = "the stream no longer exists, or is none of the source's any more"


@dataclass(frozen=True, slots=True)
class Gone:
    """A stream that the window knows, and that is not there."""

    stream: str
    start: Cut
    """Where the window starts in it; empty: the window begins with it."""
    end: Cut
    """Where the window ends in it; empty: it vanished before the window's end."""
    is_start_given: bool = True
    """Else it is where the stream was seen."""

    @property
    def shards(self) -> dict[str, Position]:
        """Its segments, each with the last place that is known."""
        return {**self.start, **self.end}


def named(request: PlanRequest) -> set[str]:
    """The streams that the cuts of a window name: they were there."""
    return {stream for cut in _edges(request) for stream in by_stream(cut or Cut({}))}


def _edges(request: PlanRequest) -> tuple[Cut | None, Cut | None]:
    """The cuts between which a window lies, as far as they are known; of event time those around it."""
    start, end, around = request.start_cut, request.end_cut, request.around
    return (start or around.start, end or around.end) if around else (start, end)


def at_end(request: PlanRequest) -> tuple[str, ...]:
    """The streams that a recorded end cut names; empty: there is none.

    Whatever the source chooses now, these were its streams then. One that it does not name was made later: all of it
    belongs to later windows.
    """
    return tuple(by_stream(request.end_cut)) if request.end_cut and request.basis != "cuts" else ()


def check_named(request: PlanRequest, streams: Sequence[str]) -> None:
    """Whether cuts that a user gave name every stream.

    Raises:
        InvalidRequest: one is left out.
    """
    for name, cut in (("start", request.start_cut), ("end", request.end_cut)) if request.basis == "cuts" else ():
        if missing := sorted(set(streams) - by_stream(cut).keys()) if cut else []:
            raise InvalidRequest(f"the {name} cut does not name {missing[0]}: give one with segments of every stream")


def of_stream(request: PlanRequest, source: PravegaSource, stream: str) -> PlanRequest:
    """What is asked of one stream. A chain, and recorded cuts, begin a stream that is new to them at its head."""

    def part(cut: Cut | None) -> Cut | None:
        return None if cut is None else by_stream(cut).get(stream, Cut({}))

    return replace(
        request,
        source=source.only(stream),
        start_cut=part(request.start_cut),
        end_cut=part(request.end_cut),
        start_identity=part_of_life(request.start_identity, stream),
        end_identity=part_of_life(request.end_identity, stream),
        first_seen=part_of_sighting(request.first_seen, stream),
        around=_around(request.around, stream),
        beside=_beside(request.beside, stream),
    )


def _around(around: RecordedAround | None, stream: str) -> RecordedAround | None:
    """Of one stream; one that was made since a cut was recorded has no place in it."""
    if around is None:
        return None
    start = None if around.start is None else part_of_cut(around.start, stream)
    since, until, end = (part_of_cut(cut, stream) for cut in (around.since, around.until, around.end))
    start_life, end_life = (part_of_life(life, stream) for life in (around.start_identity, around.end_identity))
    return RecordedAround(start, since, until, end, start_life, end_life)


def _beside(beside: Beside, stream: str) -> Beside:
    start, end = (part_of_cut(cut or Cut({}), stream) or None for cut in (beside.start, beside.end))
    start_life, end_life = (part_of_life(life, stream) for life in (beside.start_identity, beside.end_identity))
    return Beside(start, end, start_life, end_life)


def gone(request: PlanRequest, source: PravegaSource, present: Iterable[str]) -> tuple[Gone, ...]:
    """The streams that were there where the window starts, or in it, and are not any more.

    Raises:
        InvalidRequest: a cut names a stream that can be none of the source's.
        StartTrimmed: one is gone, and loss is not accepted.
    """
    found = tuple(_gone(request, set(present)))
    for one in found:
        if not source.may_have(one.stream):
            raise InvalidRequest(f"{source}: a cut names {one.stream}, which is none of its streams")
        if request.on_loss == "fail":
            shard, position = next(iter(one.start.items() or one.end.items()))
            wanted = position if one.start else _FIRST
            raise StartTrimmed(shard, wanted, "nothing", _VANISHED)
    return found


def _gone(request: PlanRequest, present: set[str]) -> Iterator[Gone]:
    first, last = _edges(request)
    ends = by_stream(last or Cut({}))
    before, is_given = by_stream(first or Cut({})), first is not None
    seen = request.first_seen
    if not is_given and seen is not None and seen.at < request.window.end:
        before = by_stream(seen.tail)
    for stream in sorted((before.keys() | ends.keys()) - present):
        start, end = before.get(stream, Cut({})), ends.get(stream, Cut({}))
        if start != end:  # else nothing of it is the window's
            yield Gone(stream, start, end, is_given)


def join(
    request: PlanRequest,
    source: PravegaSource,
    plans: Mapping[str, Plan],
    lost: Sequence[Gone],
    *,
    cluster: str,
    now: datetime,
) -> Plan:
    """One plan of all streams; what is lost of those that are gone is in it, too."""
    parts = list(plans.values())
    splits = [split for part in parts for split in part.splits]
    return Plan(
        reader=request.reader,
        source=SourceRef(
            "pravega",
            cluster,
            tuple(sorted((*plans, *(one.stream for one in lost)))),
            tuple(fact for part in parts for fact in part.source.identity),
        ),
        window=request.window,
        basis=request.basis,
        filter=joined(part.filter for part in parts),
        start_cut=union((*(part.start_cut for part in parts), *(one.start for one in lost if one.is_start_given))),
        end_cut=union((*(part.end_cut for part in parts), *(one.end for one in lost))),
        ranges=(*(one for part in parts for one in part.ranges), *(one for each in lost for one in _ranges(each))),
        splits=tuple(_numbered(splits)),
        estimate=Estimate(sum(part.estimate.bytes for part in parts)),
        # what was stored after the last look lies behind the tail of each
        observed_at=max((part.observed_at for part in parts), default=now),
        head=union(part.head for part in parts),
        losses=(*(one for part in parts for one in part.losses), *(one for each in lost for one in _losses(each))),
        tail=union(part.tail for part in parts),
        remarks=_remarks(request, plans),
        selection=source.selection,
    )


def _numbered(splits: Iterable[Split]) -> Iterator[Split]:
    for index, split in enumerate(splits):
        yield replace(split, index=index)


def _ranges(one: Gone) -> Iterator[Range]:
    for shard, at in one.shards.items():
        yield Range(shard, at, at, bytes=0, entries=0, verdict=f"lost: {_VANISHED}")


def _losses(one: Gone) -> Iterator[Loss]:
    """How much was written after the last place that is known, nobody can tell."""
    for shard, at in one.shards.items():
        yield Loss(shard, min(one.start.get(shard, _FIRST), at), at, _VANISHED)


def _remarks(request: PlanRequest, plans: Mapping[str, Plan]) -> tuple[str, ...]:
    before = by_stream(request.start_cut or Cut({}))
    new = [stream for stream in plans if before and stream not in before]
    told = [f"{stream}: new since the window's start, so read from the first event that it holds" for stream in new]
    told += [f"{stream}: {remark}" for stream, part in plans.items() for remark in part.remarks]
    more = len(told) - MOST_REMARKS
    return (*told[:MOST_REMARKS], *([f"{more} more remarks on other streams"] if more > 0 else []))
