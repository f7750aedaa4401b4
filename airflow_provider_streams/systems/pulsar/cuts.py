"""How a time, a given cut, or the stream's own bounds become positions: one function per rule. Pure.

Publish times are the producers' clocks. A time is looked up `slack` earlier for a start and `slack` later for an end,
the messages beside the answer prove it (`edges`), and rows are filtered exactly: an event is late, and in no window,
only if it was stored more than `slack` out of order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.admin.answers import EntryId, InternalStats
from airflow_provider_streams.systems.pulsar.edges import Edge
from airflow_provider_streams.systems.pulsar.layout import Layout, after_message

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Shard:
    """What was asked of one shard to resolve a window."""

    name: str
    stats: InternalStats | None
    """None: a partition that nothing was ever written to."""
    last: Position | None = None
    """The last readable message, as only the binary protocol tells it; None: there is none."""

    @property
    def layout(self) -> Layout:
        """Its ledgers."""
        return Layout.of(self.stats)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a window wants of one shard: `[start, end)`, before asking whether it is all still there."""

    start: Position
    end: Position


def lookup_ms(moment: datetime, slack: timedelta) -> int:
    """The first whole millisecond at or after `moment + slack` since 1970; a start takes its slack negative."""
    epoch = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    return -(-(moment - epoch + slack) // _MILLISECOND)


def milliseconds(slack: timedelta) -> int:
    """A span in whole milliseconds, rounded up."""
    return -(-slack // _MILLISECOND)


def head(shard: Shard) -> Position:
    """The cut `earliest`: at the first entry still stored."""
    return shard.layout.head


def tail(shard: Shard) -> Position:
    """The cut `latest`: after the last readable message.

    What is stored behind it (transaction markers, aborted or still open transactions) belongs to the next window. The
    last message may be gone already, hence never before the head.
    """
    layout = shard.layout
    return layout.head if shard.last is None else max(after_message(shard.last), layout.head)


def publish(shard: Shard, start: Edge, end: Edge) -> Bounds:
    """Basis `publish`: between the window's edges, the end no further than the tail."""
    return Bounds(start.position, max(start.position, min(end.position, tail(shard))))


def given(shard: Shard, start: Position | None, end: Position | None) -> Bounds:
    """Bases `chained`, `cuts` and `append`: as given; a start not given is the head, an end not given the tail.

    Raises:
        InvalidRequest: the end lies before the start, or an open range starts beyond what was ever written.
    """
    begin = head(shard) if start is None else start
    if end is None:
        return Bounds(_checked(shard, begin), max(begin, tail(shard)))
    if end < begin:
        raise InvalidRequest(f"{shard.name}: the end {end} lies before the start {begin}")
    return Bounds(begin, end)


def _checked(shard: Shard, start: Position) -> Position:
    stored = shard.layout.end
    if start > stored:
        raise InvalidRequest(
            f"{shard.name}: the window starts at {start}, but only {stored} is reached. Positions are valid on one "
            "cluster, and for one life of a topic: was it moved, or restored from a backup?"
        )
    return start


def waiting_entry(shard: Shard, end: Position) -> EntryId | None:
    """The stored entry that decides whether a window's end is final; None: nothing stands between tail and end.

    Open transactions hold back everything behind their first entry, so the last entry before the end tells it for
    all of them.
    """
    spans = shard.layout.spans(tail(shard), end)
    return EntryId(spans[-1].run, spans[-1].end - 1) if spans else None


def is_beyond_tail(shard: Shard, end: Position) -> bool:
    """Whether an end has not been written up to yet."""
    return end > shard.layout.end


def check_shards(known: Mapping[str, object], *cuts: Mapping[str, object] | None) -> None:
    """Every given cut names exactly the source's shards.

    Raises:
        InvalidRequest: one is missing or unknown.
    """
    for cut in cuts:
        if cut is not None and cut.keys() != known.keys():
            missing, extra = sorted(known.keys() - cut.keys()), sorted(cut.keys() - known.keys())
            raise InvalidRequest(
                "a cut must name every shard of its source once"
                + (f"; missing: {', '.join(missing)}" if missing else "")
                + (f"; not in the source: {', '.join(extra)}" if extra else "")
            )
