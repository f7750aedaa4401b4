"""Conditions on topics that sensors and triggers wait for: what to ask, and a pure predicate over the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Literal, Protocol

from airflow_provider_streams.errors import InvalidRequest, ProcessFailed
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.systems.conditions import Condition, Direction, check_limit
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.responses import InternalStats, Process, SlowTransaction
from airflow_provider_streams.systems.pulsar.client.queries import Question, Topic, by_shard, shards_of
from airflow_provider_streams.systems.pulsar.metadata.names import parent_of
from airflow_provider_streams.systems.pulsar.metadata.schemas import versions_of
from airflow_provider_streams.systems.pulsar.metadata.topics import Backlog, backlog
from airflow_provider_streams.systems.schemas import SchemaAvailable


class PulsarCondition(Condition, Protocol):
    """A state of topics to wait for."""

    def rule(self, topics: Sequence[Topic]) -> Question[Readiness]:
        """One poll: at most one request per partition, side by side."""


@dataclass(frozen=True, slots=True)
class Terminated:
    """The topics accept no more messages."""

    kind: ClassVar[str] = "terminated"

    def rule(self, topics: Sequence[Topic]) -> Question[Readiness]:
        """See `PulsarCondition`."""
        return self.judge((yield from by_shard(shards_of(topics), requests.internal_stats)))

    @staticmethod
    def judge(stats: Mapping[str, InternalStats]) -> Readiness:
        """Ready when every shard is terminated."""
        open_ = [shard for shard, one in stats.items() if not one.terminated]
        last = {shard: str(one.last_confirmed) for shard, one in stats.items()}
        return Readiness(not open_, f"still open: {', '.join(open_)}", {"last": last})


@dataclass(frozen=True, slots=True)
class Finished:
    """A background process of every shard has succeeded."""

    process: Literal["compaction", "offload"]

    kind: ClassVar[str] = "finished"

    def rule(self, topics: Sequence[Topic]) -> Question[Readiness]:
        """See `PulsarCondition` and `judge`."""
        shards = shards_of(topics)
        return self.judge((yield from by_shard(shards, lambda shard: requests.process_status(shard, self.process))))

    def judge(self, by_shard: Mapping[str, Process]) -> Readiness:
        """Ready when it succeeded everywhere; a process that was never started counts as not ready.

        Raises:
            ProcessFailed: the broker gave up on a shard.
        """
        for shard, process in by_shard.items():
            if process.status == "ERROR":
                raise ProcessFailed(shard, self.process, process.error)
        waiting = [f"{shard} {process.status}" for shard, process in by_shard.items() if process.status != "SUCCESS"]
        return Readiness(not waiting, "; ".join(waiting), {"process": self.process, "shards": list(by_shard)})


@dataclass(frozen=True, slots=True)
class NoOldTransactions:
    """No transaction that wrote to the topics has been open for longer."""

    older_than_seconds: float

    kind: ClassVar[str] = "no_old_transactions"

    def __post_init__(self) -> None:
        if self.older_than_seconds < 0:
            raise InvalidRequest("the age of a transaction must not be negative")

    def rule(self, topics: Sequence[Topic]) -> Question[Readiness]:
        """See `PulsarCondition`; one request for the whole cluster."""
        (slow,) = yield [requests.slow_transactions(int(self.older_than_seconds * 1000))]
        return self.judge(slow or (), {topic.name for topic in topics}, datetime.now(UTC))

    @staticmethod
    def judge(slow: Iterable[SlowTransaction], topics: set[str], now: datetime) -> Readiness:
        """Ready when none of them touched the topics."""
        ours = [one for one in slow if any(parent_of(name) in topics or name in topics for name in one.topics)]
        ages = [(one.id, now - one.opened) for one in sorted(ours, key=lambda one: one.opened)]
        facts = {"open": [{"id": name, "age_seconds": round(age.total_seconds(), 1)} for name, age in ages]}
        return Readiness(not ours, ", ".join(f"transaction {name} is open for {age}" for name, age in ages), facts)


@dataclass(frozen=True, slots=True)
class BacklogReached:
    """A subscription's backlog meets limits.

    `at_least` is met as soon as one of the given limits is reached, `at_most` when none of them is exceeded.

    Raises:
        InvalidRequest: no limit, or a negative one.
    """

    subscription: str
    entries: int | None = None
    bytes: int | None = None
    age_seconds: float | None = None
    direction: Direction = "at_least"

    kind: ClassVar[str] = "backlog"

    def __post_init__(self) -> None:
        check_limit(self.direction, self._limits())

    def rule(self, topics: Sequence[Topic]) -> Question[Readiness]:
        """See `PulsarCondition`; one request per topic."""
        found = yield from backlog(topics, self.subscription)
        return self.judge(found, datetime.now(UTC))

    def judge(self, found: Backlog, now: datetime) -> Readiness:
        """Ready when the backlog meets the limits now."""
        age = found.age(now)
        actual = {"entries": found.entries, "bytes": found.bytes, "age_seconds": age.total_seconds()}
        pairs = [(actual[name], limit) for name, limit in self._limits().items() if limit is not None]
        at_least = self.direction == "at_least"
        met = any(one >= limit for one, limit in pairs) if at_least else all(one <= limit for one, limit in pairs)
        shown = ", ".join(f"{name} {limit}" for name, limit in self._limits().items() if limit is not None)
        return Readiness(
            met,
            f"{self.subscription} has {counted(found.entries, 'entry')}, {counted(found.bytes, 'byte')}, age {age}; "
            f"wanted {self.direction.replace('_', ' ')} {shown}",
            {**found.to_json(), "age_seconds": round(age.total_seconds(), 3)},
        )

    def _limits(self) -> dict[str, float | None]:
        return {"entries": self.entries, "bytes": self.bytes, "age_seconds": self.age_seconds}


class TopicSchemaAvailable(SchemaAvailable):
    """Every topic has a schema; see `SchemaAvailable`."""

    def rule(self, topics: Sequence[Topic]) -> Question[Readiness]:
        """See `PulsarCondition`; one request per topic."""
        return self.judge((yield from versions_of(shards_of(topics))))


CONDITIONS: dict[str, type[PulsarCondition]] = {
    kind.kind: kind for kind in (Terminated, Finished, NoOldTransactions, BacklogReached, TopicSchemaAvailable)
}
