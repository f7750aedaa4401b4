"""Since when streams are still held whole, by their recorded cuts: events carry no time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.sighting import Identity
from airflow_provider_streams.systems.pravega.beginning import is_beginning
from airflow_provider_streams.systems.pravega.shards import part_of_cut, part_of_life, stream_of
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut, follows

Entry = tuple[datetime, Cut, Identity]
"""When a cut was sampled, the cut, and the lives that it is of."""


class History:
    """The recorded cuts of a source, oldest first. There may be many, and of many streams: few are looked into."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = list(entries)
        streams: dict[tuple[str, ...], frozenset[str]] = {}
        shards = [tuple(cut) for _, cut, _ in self._entries]
        for names in set(shards):
            streams[names] = frozenset(map(stream_of, names))
        self._streams = [streams[names] for names in shards]

    def held_since(self, head: StreamCut, is_alive: Callable[[Identity], bool]) -> datetime | None:
        """When the oldest cut of which a stream still holds its part was sampled; None: it holds none.

        Cuts of another life of the stream, which come before those of today's, are not held. Before a stream came to
        the others of its source nothing of it is missing, if all of it is still there.

        Args:
            head: the stream's.
            is_alive: whether a life is that of today.
        """
        stream, entries = head.stream, self._entries
        named = [index for index, streams in enumerate(self._streams) if stream in streams]
        known = [index for index in named if entries[index][2]]
        dead = bisect_left(known, True, key=lambda index: is_alive(part_of_life(entries[index][2], stream)))
        since = known[dead - 1] + 1 if dead else 0
        if entries and is_beginning(head) and not dead and (not named or named[0] > 0):
            return entries[0][0]
        oldest = self._oldest_held(head, [index for index in named if index >= since])
        return oldest[0] if oldest else None

    def oldest_held(self, head: StreamCut) -> tuple[datetime, Cut] | None:
        """The oldest part of a stream that it still holds, as far as places tell, and when it was sampled."""
        return self._oldest_held(head, [index for index, known in enumerate(self._streams) if head.stream in known])

    def _oldest_held(self, head: StreamCut, among: Sequence[int]) -> tuple[datetime, Cut] | None:
        start = head.to_model()

        def part(index: int) -> Cut:
            return part_of_cut(self._entries[index][1], head.stream)

        held = bisect_left(among, True, key=lambda index: follows(start, part(index)))
        return (self._entries[among[held]][0], part(among[held])) if held < len(among) else None
