"""The edges of a window of time in one shard: guessed by the broker's lookup, proven by the messages next to them.

The broker's lookup by time is a binary search over all entries. Some entries carry another clock: markers the broker's,
replicated messages another cluster's, and brokers may stamp entries themselves. On a compacted topic, the lookup
searches only what compaction left. So its answer is a guess. Messages next to an edge make it certain:

- a start, if the last messages before it were published before the window, less slack. Everything stored before them is
  older than the window, or was stored more than slack out of order.
- an end, if the first messages after it were published after the window, plus slack, for the same reason.

Otherwise the edge walks on, in growing steps, until such messages are met or the shard ends. Probes skip markers, as
readers are sent none.

A probe takes several messages, to include producers with different clocks. If these are more than slack out of order,
both edges walk on with that disorder as slack, as a late message proves nothing about others. Messages of another
cluster decide only if there are no others, and messages of a broken clock never decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from statistics import median_low
from typing import Final

from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.metadata.ledgers import Layout, at
from airflow_provider_streams.systems.pulsar.planning.entry_probe import EntryHead, EntryProbe, ProbePoint, Walk

MOST_ENTRIES: Final = 16
"""At most so many entries per probe."""
PROBE_BYTES: Final = 128 * 1024
"""At most so many bytes per probe, as entries are sent whole."""
GROWTH: Final = 4
"""The factor of one step to the next."""
MARGIN: Final = 1.25
"""The factor of assumed to seen disorder."""
FAR_MS: Final = 24 * 3600 * 1000
"""A clock that differs so much from the others is broken."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A place, and its proof."""

    position: Position
    is_proven: bool
    """Messages next to it prove it; otherwise it is the head or the end of the shard."""
    walked: int = 0
    """How many entries it is away from the broker's answer, if that was not confirmed."""
    disorder_ms: int = 0
    """How much out of order the messages next to the edges are, if that is more than slack."""
    first_published: datetime | None = None
    """Of a start at the head: when its first message was published; None: there is no message."""
    last: tuple[int, int] | None = None
    """The shard's last readable entry, as a probe told; None: there is none."""


def edges_of(
    shard: str, layout: Layout, guesses: tuple[Position, Position], times: tuple[int, int], slack_ms: int
) -> Walk[tuple[Edge, Edge]]:
    """Both edges of a window, from the broker's answers for its start less slack, and its end plus slack.

    `times` are its start and end in milliseconds; messages up to `slack_ms` out of order are not late.
    """
    stamps = Stamps()
    disorder_ms, (guess, end_guess) = 0, guesses
    while True:
        reach_ms = max(slack_ms, disorder_ms)
        start = yield from start_edge(_Walk(shard, layout, guess, stamps), times[0] - reach_ms)
        end = yield from end_edge(_Walk(shard, layout, end_guess, stamps), times[1] + reach_ms)
        if stamps.disorder_ms <= reach_ms:
            return (
                replace(start, walked=_distance(layout, guesses[0], start), disorder_ms=disorder_ms),
                replace(end, walked=_distance(layout, guesses[1], end), disorder_ms=disorder_ms),
            )
        disorder_ms, guess, end_guess = int(stamps.disorder_ms * MARGIN) + 1, start.position, end.position


def start_of(shard: str, layout: Layout, guess: Position, start_ms: int, slack_ms: int) -> Walk[Edge]:
    """The start of a window alone; see `edges_of`."""
    stamps = Stamps()
    reach_ms = slack_ms
    while True:
        start = yield from start_edge(_Walk(shard, layout, guess, stamps), start_ms - reach_ms)
        if stamps.disorder_ms <= reach_ms:
            return start
        reach_ms, guess = int(stamps.disorder_ms * MARGIN) + 1, start.position


def start_edge(walk: _Walk, before_ms: int) -> Walk[Edge]:
    """Where reading must begin to meet every message published at or after a time, except late ones."""
    layout, place = walk.layout, walk.layout.inside(walk.guess)
    step = entries_at(layout, place)
    while True:
        begin = layout.shifted(place, -step)
        probe = walk.note((yield walk.place(begin)))
        # at the head, its own messages may prove that nothing of the window was removed
        heads = [head for head in probe.heads if place == begin or at(head.ledger, head.entry) < place]
        if _all(heads, lambda published_ms: published_ms < before_ms):
            proven = walk.proven(min(place, layout.shifted(at(heads[-1].ledger, heads[-1].entry + 1), 0)))
            if not _are_foreign(heads):
                return proven
        if begin <= layout.head:
            return walk.by_others or walk.at_bound(layout.head, probe.published)
        place, step = begin, step * GROWTH


def end_edge(walk: _Walk, after_ms: int) -> Walk[Edge]:
    """Where reading may end after every message published before a time, except late ones."""
    layout, place = walk.layout, walk.layout.inside(walk.guess)
    step = entries_at(layout, place)
    while place < layout.end:
        probe = walk.note((yield walk.place(place)))
        if not probe.heads:
            break
        if _all(probe.heads, lambda published_ms: published_ms >= after_ms):
            proven = walk.proven(place)
            if not _are_foreign(probe.heads):
                return proven
        place = layout.shifted(max(place, at(*probe.heads[-1][:2])), step)
        step *= GROWTH
    return walk.by_others or walk.at_bound(layout.end)


def entries_at(layout: Layout, position: Position) -> int:
    """How many entries a probe there takes."""
    size = layout.entry_bytes(position.parts[0])
    return max(1, min(MOST_ENTRIES, int(PROBE_BYTES / size))) if size else MOST_ENTRIES


@dataclass
class Stamps:
    """Publish times of one shard, by place."""

    by_place: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, heads: Sequence[EntryHead]) -> None:
        """Note the times of one probe."""
        usual = set(usual_ms(heads))
        met = ((head, head.metadata.publish_ms) for head in heads if head.metadata is not None)
        self.by_place |= {(head.ledger, head.entry): stamp for head, stamp in met if stamp in usual}

    @property
    def disorder_ms(self) -> int:
        """The greatest lead of a time over one stored later."""
        in_order = [self.by_place[place] for place in sorted(self.by_place)]
        return max(
            (latest - stamp for latest, stamp in zip(accumulate(in_order, max), in_order, strict=True)), default=0
        )


def usual_ms(heads: Sequence[EntryHead]) -> list[int]:
    """The publish times of this cluster's messages, or else of all; without those of broken clocks."""
    readable = [head.metadata for head in heads if head.metadata is not None]
    own = [metadata for metadata in readable if metadata.replicated_from is None]
    stamps = [metadata.publish_ms for metadata in own or readable]
    middle = median_low(stamps) if stamps else 0
    return [stamp for stamp in stamps if abs(stamp - middle) <= FAR_MS]


@dataclass
class _Walk:
    """The way of one edge from the broker's answer."""

    shard: str
    layout: Layout
    guess: Position
    stamps: Stamps
    by_others: Edge | None = None
    """The edge that messages of other clusters prove, used if there are no others."""
    last: tuple[int, int] | None = None

    def place(self, position: Position) -> ProbePoint:
        ledger, entry, _ = position.parts
        return ProbePoint(self.shard, ledger, max(entry, 0), entries_at(self.layout, position))

    def note(self, probe: EntryProbe) -> EntryProbe:
        self.stamps.add(probe.heads)
        if probe.last is not None:
            self.last = max(self.last or probe.last, probe.last)
        return probe

    def proven(self, position: Position) -> Edge:
        edge = Edge(position, is_proven=True, last=self.last)
        self.by_others = self.by_others or edge
        return edge

    def at_bound(self, position: Position, first_published: datetime | None = None) -> Edge:
        return Edge(position, is_proven=False, first_published=first_published, last=self.last)


def _distance(layout: Layout, guess: Position, edge: Edge) -> int:
    """Entries from the broker's answer; 0: within one probe."""
    place = layout.inside(guess)
    walked = abs(layout.index_of(edge.position) - layout.index_of(place))
    return walked if walked > entries_at(layout, place) else 0


def _all(heads: Sequence[EntryHead], holds: Callable[[int], bool]) -> bool:
    """Whether there are messages, and a rule holds for all their times."""
    times = usual_ms(heads)
    return bool(times) and all(map(holds, times))


def _are_foreign(heads: Sequence[EntryHead]) -> bool:
    """Whether all messages came from another cluster."""
    return all(head.metadata is None or head.metadata.replicated_from is not None for head in heads)
