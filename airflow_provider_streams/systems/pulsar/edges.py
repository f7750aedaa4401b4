"""The edges of a window of time in one shard: where the broker's lookup puts them, proven by the messages beside them.

The broker's lookup by time is a binary search over all entries. Some of these carry another clock than the producers'
(markers of transactions and of replication have the broker's, replicated messages that of another cluster), brokers
may stamp entries themselves, and on a compacted topic only what compaction left is searched. So its answer is a guess.
What makes an edge certain are messages beside it:

- a start, if the last messages before it were published before the window, less slack: whatever is stored before them
  is older than the window, or was stored more than slack out of order;
- an end, if the first messages behind it were published after the window, plus slack, for the same reason.

Where they were not, the edge walks on, in steps that grow, until such messages are met or the shard ends there. A
reader is sent no markers, so looking at what readers are sent leaves them out.

Several messages are looked at, so that producers whose clocks differ are likely to be among them. Where they are more
than slack out of order, both edges walk on as if slack were so much: a late message proves nothing of the others. What
another cluster's producers stamped does not decide while there are others, nor what a broken clock did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from statistics import median_low
from typing import Final

from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.layout import Layout, at
from airflow_provider_streams.systems.pulsar.looks import Head, Look, Place, Walk

MOST_ENTRIES: Final = 16
"""How many entries one look wants at most."""
LOOK_BYTES: Final = 128 * 1024
"""What they shall hold together, as entries are sent whole."""
GROWTH: Final = 4
"""How much longer each step is than the one before."""
MARGIN: Final = 1.25
"""How much more disorder is reckoned with than is seen."""
FAR_MS: Final = 24 * 3600 * 1000
"""A clock that differs so much from the others is broken: what it stamped is in no window near these messages."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A place, and what makes it certain."""

    position: Position
    is_proven: bool
    """Messages beside it prove it; otherwise it is the head or the end of the shard, which need no proof."""
    walked: int = 0
    """How many entries off the broker's answer it is, where that was not confirmed."""
    disorder_ms: int = 0
    """How much out of order the messages beside the edges are, where that is more than slack."""
    first_ms: int | None = None
    """Of a start at the head: when its first message was published; None: there is none."""
    last: tuple[int, int] | None = None
    """The shard's last readable entry, as it was told on the way; None: there is none."""


def edges_of(
    shard: str, layout: Layout, guesses: tuple[Position, Position], times: tuple[int, int], slack_ms: int
) -> Walk[tuple[Edge, Edge]]:
    """Both edges of a window.

    Args:
        shard: its name.
        layout: what it stores.
        guesses: where the broker's lookup puts the window's start less slack, and its end plus slack.
        times: the window's start and end, in milliseconds.
        slack_ms: how much out of order messages may be, and not be late.
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
    """Where reading must begin to meet every message published at or after a time, of those that are not late."""
    layout, place = walk.layout, walk.layout.inside(walk.guess)
    step = entries_at(layout, place)
    while True:
        begin = layout.shifted(place, -step)
        look = walk.note((yield walk.place(begin)))
        # at the head its own messages decide: they may prove that nothing of the window was removed
        heads = [head for head in look.heads if place == begin or at(head.ledger, head.entry) < place]
        if _all(heads, lambda published_ms: published_ms < before_ms):
            proven = walk.proven(min(place, layout.shifted(at(heads[-1].ledger, heads[-1].entry + 1), 0)))
            if not _are_foreign(heads):
                return proven
        if begin <= layout.head:
            return walk.by_others or walk.at_bound(layout.head, look.first_ms)
        place, step = begin, step * GROWTH


def end_edge(walk: _Walk, after_ms: int) -> Walk[Edge]:
    """Where reading may end to have met every message published before a time, of those that are not late."""
    layout, place = walk.layout, walk.layout.inside(walk.guess)
    step = entries_at(layout, place)
    while place < layout.end:
        look = walk.note((yield walk.place(place)))
        if not look.heads:
            break
        if _all(look.heads, lambda published_ms: published_ms >= after_ms):
            proven = walk.proven(place)
            if not _are_foreign(look.heads):
                return proven
        place = layout.shifted(max(place, at(look.heads[-1].ledger, look.heads[-1].entry)), step)
        step *= GROWTH
    return walk.by_others or walk.at_bound(layout.end)


def entries_at(layout: Layout, position: Position) -> int:
    """How many entries a look there wants."""
    size = layout.entry_bytes_at(position)
    return max(1, min(MOST_ENTRIES, int(LOOK_BYTES / size))) if size else MOST_ENTRIES


@dataclass
class Stamps:
    """Publish times met in one shard, by place."""

    by_place: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, heads: Sequence[Head]) -> None:
        """Note those of one look."""
        usual = set(usual_ms(heads))
        met = ((head, head.metadata.publish_ms) for head in heads if head.metadata is not None)
        self.by_place |= {(head.ledger, head.entry): stamp for head, stamp in met if stamp in usual}

    @property
    def disorder_ms(self) -> int:
        """The most that one of them is earlier than one stored before it."""
        in_order = [self.by_place[place] for place in sorted(self.by_place)]
        return max(
            (latest - stamp for latest, stamp in zip(accumulate(in_order, max), in_order, strict=True)), default=0
        )


def usual_ms(heads: Sequence[Head]) -> list[int]:
    """The publish times of this cluster's messages, or of others if there are none; without those of broken clocks."""
    readable = [head.metadata for head in heads if head.metadata is not None]
    own = [metadata for metadata in readable if metadata.replicated_from is None]
    stamps = [metadata.publish_ms for metadata in own or readable]
    middle = median_low(stamps) if stamps else 0
    return [stamp for stamp in stamps if abs(stamp - middle) <= FAR_MS]


@dataclass
class _Walk:
    """One edge's way from the broker's answer."""

    shard: str
    layout: Layout
    guess: Position
    stamps: Stamps
    by_others: Edge | None = None
    """What messages of other clusters prove: it holds where no other messages are met."""
    last: tuple[int, int] | None = None

    def place(self, position: Position) -> Place:
        ledger, entry, _ = position.parts
        return Place(self.shard, ledger, max(entry, 0), entries_at(self.layout, position))

    def note(self, look: Look) -> Look:
        self.stamps.add(look.heads)
        if look.last is not None:
            self.last = max(self.last or look.last, look.last)
        return look

    def proven(self, position: Position) -> Edge:
        edge = Edge(position, is_proven=True, last=self.last)
        self.by_others = self.by_others or edge
        return edge

    def at_bound(self, position: Position, first_ms: int | None = None) -> Edge:
        return Edge(position, is_proven=False, first_ms=first_ms, last=self.last)


def _distance(layout: Layout, guess: Position, edge: Edge) -> int:
    """Entries from the broker's answer, not counting what one look passes over."""
    place = layout.inside(guess)
    walked = abs(layout.index_of(edge.position) - layout.index_of(place))
    return walked if walked > entries_at(layout, place) else 0


def _all(heads: Sequence[Head], holds: Callable[[int], bool]) -> bool:
    """Whether there are messages, and it holds for all of their times."""
    times = usual_ms(heads)
    return bool(times) and all(map(holds, times))


def _are_foreign(heads: Sequence[Head]) -> bool:
    """All of them came from another cluster."""
    return all(head.metadata is None or head.metadata.replicated_from is not None for head in heads)
