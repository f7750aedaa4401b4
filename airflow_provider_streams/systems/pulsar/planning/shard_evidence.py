"""The evidence of what a shard holds, and of what it held when it was observed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.tail_observation import TailObservation
from airflow_provider_streams.systems.pulsar.client.admin.responses import InternalInfo, InternalStats, Retention
from airflow_provider_streams.systems.pulsar.metadata.incarnation import incarnation_of
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, Layout


@dataclass(frozen=True, slots=True)
class Seen:
    """The part of a tail observation that is about one shard."""

    at: datetime
    tail: Position
    incarnation: str | None = None
    """When that incarnation of the topic was created; None: not known."""
    was_empty: bool | None = None
    """It held no entry; None: not known."""

    @property
    def made(self) -> datetime | None:
        """The same as a time."""
        return None if self.incarnation is None else datetime.fromisoformat(self.incarnation)


def seen_by_shard(tail_observations: Iterable[TailObservation]) -> dict[str, tuple[Seen, ...]]:
    """What tail observations saw of each shard, in order; they did not see shards before their creation."""
    found: dict[str, list[Seen]] = {}
    for one in tail_observations:
        incarnations = dict(one.incarnation)
        for shard, tail in one.tail.items():
            if tail > EARLIEST:
                was_empty = None if one.empty is None else shard in one.empty
                found.setdefault(shard, []).append(Seen(one.at, tail, incarnations.get(shard), was_empty))
    return {shard: tuple(some) for shard, some in found.items()}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a shard; each part may be missing."""

    shard: str
    stats: InternalStats | None
    """None: a partition that was never created."""
    info: InternalInfo | None = None
    """Newer than the ledgers, so that these contain everything that it shows as not removed."""
    retention: Retention | None = None
    first_published: datetime | None = None
    """Publish time of the first message still held."""
    seen: tuple[Seen, ...] = ()
    """Earlier observations, in order."""

    @property
    def layout(self) -> Layout:
        """Its ledgers."""
        return Layout.of(self.stats)

    @property
    def made(self) -> datetime | None:
        """When this incarnation of the topic began; None: not known."""
        return self.info.created if self.info else None

    @property
    def ended(self) -> tuple[Seen, ...]:
        """Observations of another incarnation: the topic was deleted and created again since."""
        now = incarnation_of(self.info)
        return tuple(one for one in self.seen if None not in (one.incarnation, now) and one.incarnation != now)

    @property
    def of_this_incarnation(self) -> tuple[Seen, ...]:
        """All other observations."""
        ended = self.ended
        return tuple(one for one in self.seen if one not in ended)
