"""How a time, a given cut, or the stream's own bounds become positions: one function per rule. Pure.

Publish times come from the producers' clocks. The lookup is `slack` earlier for a start and `slack` later for an end.
The messages near the answer prove it (`boundary_search`), and a filter keeps exactly the window's rows. So an event is
late, and in no window, only if it was stored more than `slack` out of order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import EPOCH
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, InternalStats
from airflow_provider_streams.systems.pulsar.metadata.ledgers import Layout, at
from airflow_provider_streams.systems.pulsar.planning.boundary_search import Edge

FILTERED = {"publish": "publish_time", "event": "event_time"}
"""Bases that look a time up, and the column whose values then decide each entry."""

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Shard:
    """What the cluster says of one shard."""

    name: str
    stats: InternalStats | None
    """None: a partition that was never created."""
    last: Position | None = None
    """The last readable message, which only the binary protocol knows; None: there is none."""

    @property
    def layout(self) -> Layout:
        """Its ledgers."""
        return Layout.of(self.stats)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The part `[start, end)` of one shard that a window needs, whether it is still stored or not."""

    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class Found:
    """Where a window is in one shard."""

    shard: Shard
    bounds: Bounds
    edges: tuple[Edge, Edge] | None = None
    """Of a window of time: the proofs of its start and end."""

    @property
    def remark(self) -> str:
        """How far its edges are from the answers of the lookup by time."""
        if self.edges is None:
            return ""
        ways = zip(("start", "end"), ("earlier", "later"), self.edges, strict=True)
        told = [f"its {name} is {counted(edge.walked, 'entry')} {way}" for name, way, edge in ways if edge.walked]
        disorder = timedelta(milliseconds=self.edges[0].disorder_ms)
        cause = f"messages are {disorder} out of order" if disorder else "other clocks lie between"
        return f"{' and '.join(told)} than the lookup by time says: {cause}" if told else ""


def lookup_ms(moment: datetime, slack: timedelta = timedelta(0)) -> int:
    """The first whole millisecond since 1970 at or after `moment + slack`; for a start, the slack is negative."""
    return milliseconds(moment - EPOCH + slack)


def milliseconds(span: timedelta) -> int:
    """A span in whole milliseconds, rounded up."""
    return -(-span // _MILLISECOND)


def head(shard: Shard) -> Position:
    """The cut `earliest`: at the first entry still stored."""
    return shard.layout.head


def tail(shard: Shard) -> Position:
    """The cut `latest`: after the last readable message.

    Entries after it (transaction markers, aborted or open transactions) belong to the next window. The last message may
    be removed already, so the tail is never before the head.
    """
    layout = shard.layout
    if shard.last is None:
        return layout.head
    ledger, entry, _ = shard.last.parts
    return max(at(ledger, entry + 1), layout.head)


def publish(shard: Shard, start: Edge, end: Edge) -> Bounds:
    """Basis `publish`: between the window's edges, the end no further than the tail."""
    return Bounds(start.position, max(start.position, min(end.position, tail(shard))))


def given(shard: Shard, start: Position | None, end: Position | None) -> Bounds:
    """Bases `chained`, `cuts` and `append`: as given; a start not given is the head, an end not given the tail.

    Raises:
        InvalidRequest: the end is before the start, or an open range starts beyond what was ever written.
    """
    begin, stored = head(shard) if start is None else start, shard.layout.end
    if end is None and begin > stored:
        raise InvalidRequest(
            f"{shard.name}: the window starts at {begin}, but only {stored} is reached. Positions are valid on one "
            "cluster, and for one incarnation of a topic: was it moved, or restored from a backup?"
        )
    if end is None:
        return Bounds(begin, max(begin, tail(shard)))
    if end < begin:
        raise InvalidRequest(f"{shard.name}: the end {end} is before the start {begin}")
    return Bounds(begin, end)


def waiting_entry(shard: Shard, end: Position) -> EntryId | None:
    """The stored entry that decides whether a window's end is final; None: nothing stands between tail and end.

    An open transaction holds back everything after its first entry, so the last entry before the end decides for all.
    """
    spans = shard.layout.spans(tail(shard), end)
    return EntryId(spans[-1].run, spans[-1].end - 1) if spans else None


def is_beyond_tail(shard: Shard, end: Position) -> bool:
    """Whether the shard does not reach an end yet."""
    return end > shard.layout.end


def check_shards(known: Mapping[str, object], *cuts: Mapping[str, object] | None) -> None:
    """Raise `InvalidRequest` for a cut that does not name exactly the source's shards."""
    for cut in cuts:
        if cut is not None and cut.keys() != known.keys():
            missing, extra = sorted(known.keys() - cut.keys()), sorted(cut.keys() - known.keys())
            raise InvalidRequest(
                "a cut must name every shard of its source once"
                + (f"; missing: {', '.join(missing)}" if missing else "")
                + (f"; not in the source: {', '.join(extra)}" if extra else "")
            )
