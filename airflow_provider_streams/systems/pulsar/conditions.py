"""Conditions on topics that sensors and triggers wait for: what to ask, and a pure predicate over the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Literal, Protocol

from airflow_provider_streams.errors import InvalidRequest, ProcessFailed
from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.systems.conditions import Condition, Direction, check_limit
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats, Process, SlowTransaction
from airflow_provider_streams.systems.pulsar.backlog import Backlog
from airflow_provider_streams.systems.pulsar.names import parent_of
from airflow_provider_streams.systems.pulsar.questions import Question, Topic
from airflow_provider_streams.systems.pulsar.schemas import versions_of
from airflow_provider_streams.systems.pulsar.topics import backlog
from airflow_provider_streams.systems.schemas import SchemaAvailable


class PulsarCondition(Condition, Protocol):
    """Something to wait for on topics."""

    def rule(self, topics: Sequence[Topic]) -> Question[Readiness]:
        """One poll: at most one request per partition, side by side."""


@dataclass(frozen=True, slots=True)
class Terminated:
    """Nothing can be written to the topics any more."""

    kind: ClassVar[str] = "terminated"

    def rule(self, topics: Sequence[Topic]) -> Question[Readiness]:
        """See `PulsarCondition`."""
        shards = _shards(topics)
        answers = yield [requests.internal_stats(shard) for shard in shards]
        return self.judge(dict(zip(shards, answers, strict=True)))

    @staticmethod
    def judge(stats: Mapping[str, InternalStats]) -> Readiness:
        """Ready when every shard is terminated."""
        open_ = [shard for shard, one in stats.items() if not one.terminated]
        last = {shard: f"{one.last_confirmed.ledger}:{one.last_confirmed.entry}" for shard, one in stats.items()}
        return Readiness(not open_, f"still open: {', '.join(open_)}", {"last": last})


@dataclass(frozen=True, slots=True)
class Finished:
    """A background process of every shard has ended well."""

    process: Literal["compaction", "offload"]

    kind: ClassVar[str] = "finished"

    def rule(self, topics: Sequence[Topic]) -> Question[Readiness]:
        """See `PulsarCondition`.

        Raises:
            ProcessFailed: the broker gave up on a shard.
        """
        shards = _shards(topics)
        status = {"compaction": requests.compaction_status, "offload": requests.offload_status}[self.process]
        answers = yield [status(shard) for shard in shards]
        return self.judge(dict(zip(shards, answers, strict=True)))

    def judge(self, by_shard: Mapping[str, Process]) -> Readiness:
        """Ready when it succeeded everywhere; where it was never started, it is waited for.

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
    """No transaction that wrote to the topics has been open for so long."""

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

    `at_least` is met as soon as one of the given limits is reached: enough for a batch, or old enough. `at_most` is
    met when none of them is exceeded: drained.

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
            f"{self.subscription} has {found.entries} entries, {found.bytes} bytes, age {age}; "
            f"wanted {self.direction.replace('_', ' ')} {shown}",
            {**found.to_json(), "age_seconds": round(age.total_seconds(), 3)},
        )

    def _limits(self) -> dict[str, float | None]:
        return {"entries": self.entries, "bytes": self.bytes, "age_seconds": self.age_seconds}


class TopicSchemaAvailable(SchemaAvailable):
    """Every topic has a schema, see `SchemaAvailable`."""

    def rule(self, topics: Sequence[Topic]) -> Question[Readiness]:
        """See `PulsarCondition`; one request per topic."""
        found = yield from versions_of(_shards(topics))
        return self.judge(found)


CONDITIONS: dict[str, type[PulsarCondition]] = {
    kind.kind: kind for kind in (Terminated, Finished, NoOldTransactions, BacklogReached, TopicSchemaAvailable)
}


def _shards(topics: Sequence[Topic]) -> list[str]:
    return [shard for topic in topics for shard in topic.shards]
