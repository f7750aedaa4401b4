"""Since when streams are held whole. Recorded cuts tell it, as events carry no time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.tail_observation import Incarnation
from airflow_provider_streams.systems.pravega.metadata.segment_names import stream_of
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut, follows
from airflow_provider_streams.systems.pravega.planning.start_verification import is_beginning
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.topic_parts import part_of_cut, part_of_incarnation

Entry = tuple[datetime, Cut, Incarnation]
"""When a cut was sampled, the cut, and the incarnations that it is of."""


class History:
    """The recorded cuts of a source, oldest first. There may be many, and of many streams: only a few are searched."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = list(entries)
        shards = [tuple(cut) for _, cut, _ in self._entries]
        streams = {names: frozenset(map(stream_of, names)) for names in set(shards)}
        self._streams = [streams[names] for names in shards]

    def held_since(self, head: StreamCut, is_alive: Callable[[Incarnation], bool]) -> datetime | None:
        """When the oldest cut was sampled of which a stream still holds its part; None: it holds none.

        Cuts of an earlier incarnation of the stream, which is not `is_alive`, are not held. If all of a stream is
        still there, nothing of it is missing in the cuts that were recorded before it was made.
        """
        entries, single, named = self._entries, PravegaSource(head.stream), self._naming(head.stream)
        known = [index for index in named if entries[index][2]]
        dead = bisect_left(known, True, key=lambda index: is_alive(part_of_incarnation(entries[index][2], single)))
        since = known[dead - 1] + 1 if dead else 0
        if entries and is_beginning(head) and not dead and (not named or named[0] > 0):
            return entries[0][0]
        oldest = self._oldest_held(head, [index for index in named if index >= since])
        return oldest[0] if oldest else None

    def oldest_held(self, head: StreamCut) -> tuple[datetime, Cut] | None:
        """The oldest part of a stream that it still holds, judged by places alone, and when it was sampled."""
        return self._oldest_held(head, self._naming(head.stream))

    def _naming(self, stream: str) -> list[int]:
        return [index for index, streams in enumerate(self._streams) if stream in streams]

    def _oldest_held(self, head: StreamCut, among: Sequence[int]) -> tuple[datetime, Cut] | None:
        start, single = head.to_model(), PravegaSource(head.stream)

        def part(index: int) -> Cut:
            return part_of_cut(self._entries[index][1], single)

        held = bisect_left(among, True, key=lambda index: follows(start, part(index)))
        return (self._entries[among[held]][0], part(among[held])) if held < len(among) else None
