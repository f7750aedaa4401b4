"""The part of a source's cut, incarnation or tail observation that belongs to one topic or stream. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_streams.model.plan.plan import RecordedBounds
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.tail_observation import Incarnation, TailObservation
from airflow_provider_streams.systems.registry import declaration_of

if TYPE_CHECKING:
    from airflow_provider_streams.model.stream.source import Source


def part_of_cut(cut: Cut, single: Source) -> Cut:
    """Its shards; empty: it was not there."""
    has_shard = declaration_of(single.system).has_shard
    return Cut({shard: position for shard, position in cut.items() if has_shard(single, shard)})


def part_of_incarnation(incarnation: Incarnation, single: Source) -> Incarnation:
    """As `part_of_cut`, of an incarnation."""
    has_shard = declaration_of(single.system).has_shard
    return tuple((shard, life) for shard, life in incarnation if has_shard(single, shard))


def part_of_tail_observation(seen: TailObservation, single: Source) -> TailObservation:
    """As `part_of_cut`; with an empty tail: it was not there."""
    return replace(seen, tail=part_of_cut(seen.tail, single), incarnation=part_of_incarnation(seen.incarnation, single))


def part_of_around(around: RecordedBounds, single: Source) -> RecordedBounds:
    """As `part_of_cut`, of the recorded cuts around a window; those from before it was made are empty."""
    return replace(
        around,
        start=None if around.start is None else part_of_cut(around.start, single),
        since=part_of_cut(around.since, single),
        until=part_of_cut(around.until, single),
        end=part_of_cut(around.end, single),
        start_incarnation=part_of_incarnation(around.start_incarnation, single),
        end_incarnation=part_of_incarnation(around.end_incarnation, single),
    )
