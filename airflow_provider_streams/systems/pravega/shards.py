"""What of a cut, a life or a sighting is one stream's. Pure."""

from __future__ import annotations

from functools import lru_cache

from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.sighting import Identity, Sighting
from airflow_provider_streams.systems.pravega.names import Segment


@lru_cache(1 << 16)
def stream_of(shard: str) -> str:
    """`scope/stream` of a segment's name."""
    return Segment.parse(shard).stream


def by_stream(cut: Cut) -> dict[str, Cut]:
    """A cut of several streams as one of each."""
    parts: dict[str, dict[str, Position]] = {}
    for shard, position in cut.items():
        parts.setdefault(stream_of(shard), {})[shard] = position
    return {stream: Cut(positions) for stream, positions in parts.items()}


def part_of_cut(cut: Cut, stream: str) -> Cut:
    """What a cut says of one stream."""
    return Cut({shard: position for shard, position in cut.items() if stream_of(shard) == stream})


def part_of_life(identity: Identity, stream: str) -> Identity:
    """What an identity says of one stream."""
    return tuple((shard, made) for shard, made in identity if stream_of(shard) == stream)


def part_of_sighting(seen: Sighting | None, stream: str) -> Sighting | None:
    """What was seen of one stream; None: it was not seen."""
    tail = by_stream(seen.tail).get(stream) if seen else None
    return Sighting(seen.at, tail, part_of_life(seen.identity, stream)) if seen and tail else None
