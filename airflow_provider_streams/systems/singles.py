"""What of a cut, a life or a sighting of a whole source is one topic's or stream's of it. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import RecordedAround
from airflow_provider_streams.model.sighting import Identity, Sighting
from airflow_provider_streams.systems.registry import declaration_of

if TYPE_CHECKING:
    from airflow_provider_streams.model.source import Source


def part_of_cut(cut: Cut, single: Source) -> Cut:
    """Its shards; empty: it was not there."""
    has_shard = declaration_of(single.system).has_shard
    return Cut({shard: position for shard, position in cut.items() if has_shard(single, shard)})


def part_of_life(identity: Identity, single: Source) -> Identity:
    """What an identity says of it."""
    has_shard = declaration_of(single.system).has_shard
    return tuple((shard, life) for shard, life in identity if has_shard(single, shard))


def part_of_sighting(seen: Sighting | None, single: Source) -> Sighting | None:
    """What was seen of it; None: it was not seen."""
    tail = part_of_cut(seen.tail, single) if seen else None
    return Sighting(seen.at, tail, part_of_life(seen.identity, single)) if seen and tail else None


def part_of_around(around: RecordedAround, single: Source) -> RecordedAround:
    """The recorded cuts around a window; it has no place in those that were recorded before it was made."""
    return replace(
        around,
        start=None if around.start is None else part_of_cut(around.start, single),
        since=part_of_cut(around.since, single),
        until=part_of_cut(around.until, single),
        end=part_of_cut(around.end, single),
        start_identity=part_of_life(around.start_identity, single),
        end_identity=part_of_life(around.end_identity, single),
    )
