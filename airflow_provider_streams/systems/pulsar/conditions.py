"""Conditions on topics that sensors and triggers wait for: what to ask, and a pure predicate over the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal, Protocol

from airflow_provider_streams.errors import InvalidRequest, ProcessFailed
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats, Process, SlowTransaction
from airflow_provider_streams.systems.pulsar.backlog import Backlog, BacklogLimit
from airflow_provider_streams.systems.pulsar.names import parent_of
from airflow_provider_streams.systems.pulsar.questions import Question, Topic
from airflow_provider_streams.systems.pulsar.topics import backlog


@dataclass(frozen=True, slots=True)
class Finding:
    """What one poll found."""

    met: bool
    facts: dict[str, Any]
    """Plain JSON values for whoever waits; no secret."""
    reason: str = ""
    """What is still missing."""


class Condition(Protocol):
    """Something to wait for; its fields are plain JSON values."""

    kind: ClassVar[str]

    def ask(self, topics: Sequence[Topic]) -> Question[Finding]:
        """One poll: at most one request per partition, side by side."""


@dataclass(frozen=True, slots=True)
class Terminated:
    """Nothing can be written to the topics any more."""

    kind: ClassVar[str] = "terminated"

    def ask(self, topics: Sequence[Topic]) -> Question[Finding]:
        """See `Condition`."""
        shards = _shards(topics)
        answers = yield [requests.internal_stats(shard) for shard in shards]
        return self.judge(dict(zip(shards, answers, strict=True)))

    @staticmethod
    def judge(stats: Mapping[str, InternalStats]) -> Finding:
        """Met when every shard is terminated."""
        open_ = [shard for shard, one in stats.items() if not one.terminated]
        last = {shard: f"{one.last_confirmed.ledger}:{one.last_confirmed.entry}" for shard, one in stats.items()}
        return Finding(not open_, {"last": last}, f"still open: {', '.join(open_)}")


@dataclass(frozen=True, slots=True)
class Finished:
    """A background process of every shard has ended well."""

    process: Literal["compaction", "offload"]

    kind: ClassVar[str] = "finished"

    def ask(self, topics: Sequence[Topic]) -> Question[Finding]:
        """See `Condition`.

        Raises:
            ProcessFailed: the broker gave up on a shard.
        """
        shards = _shards(topics)
        status = {"compaction": requests.compaction_status, "offload": requests.offload_status}[self.process]
        answers = yield [status(shard) for shard in shards]
        return self.judge(dict(zip(shards, answers, strict=True)))

    def judge(self, by_shard: Mapping[str, Process]) -> Finding:
        """Met when it succeeded everywhere; where it was never started, it is waited for.

        Raises:
            ProcessFailed: the broker gave up on a shard.
        """
        for shard, process in by_shard.items():
            if process.status == "ERROR":
                raise ProcessFailed(shard, self.process, process.error)
        waiting = [f"{shard} {process.status}" for shard, process in by_shard.items() if process.status != "SUCCESS"]
        return Finding(not waiting, {"process": self.process, "shards": list(by_shard)}, "; ".join(waiting))


@dataclass(frozen=True, slots=True)
class NoOldTransactions:
    """No transaction that wrote to the topics has been open for so long."""

    older_than_seconds: float

    kind: ClassVar[str] = "no_old_transactions"

    def __post_init__(self) -> None:
        if self.older_than_seconds < 0:
            raise InvalidRequest("the age of a transaction must not be negative")

    def ask(self, topics: Sequence[Topic]) -> Question[Finding]:
        """See `Condition`; one request for the whole cluster."""
        (slow,) = yield [requests.slow_transactions(int(self.older_than_seconds * 1000))]
        return self.judge(slow or (), {topic.name for topic in topics}, datetime.now(UTC))

    @staticmethod
    def judge(slow: Iterable[SlowTransaction], topics: set[str], now: datetime) -> Finding:
        """Met when none of them touched the topics."""
        ours = [one for one in slow if any(parent_of(name) in topics or name in topics for name in one.topics)]
        ages = [(one.id, now - one.opened) for one in sorted(ours, key=lambda one: one.opened)]
        facts = {"open": [{"id": name, "age_seconds": round(age.total_seconds(), 1)} for name, age in ages]}
        return Finding(not ours, facts, ", ".join(f"transaction {name} is open for {age}" for name, age in ages))


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """A subscription has read everything, or nearly."""

    subscription: str
    entries: int = 0
    age_seconds: float | None = None

    kind: ClassVar[str] = "caught_up"

    def ask(self, topics: Sequence[Topic]) -> Question[Finding]:
        """See `Condition`."""
        found = yield from backlog(topics, self.subscription)
        return self.judge(found, datetime.now(UTC))

    def judge(self, found: Backlog, now: datetime) -> Finding:
        """Met when neither limit is exceeded."""
        age = None if self.age_seconds is None else timedelta(seconds=self.age_seconds)
        limit = BacklogLimit(self.entries, None, age, "at_most")
        reason = f"{self.subscription} has {found.entries} entries to read, the oldest for {found.age(now)}"
        return Finding(limit.met(found, now), found.to_json(), reason)


CONDITIONS: dict[str, type[Any]] = {kind.kind: kind for kind in (Terminated, Finished, NoOldTransactions, CaughtUp)}


def condition_to_json(condition: Condition) -> dict[str, Any]:
    """A condition as a trigger's argument."""
    return {"kind": condition.kind, **asdict(condition)}  # type: ignore[call-overload]  # dataclasses all


def condition_from_json(data: Mapping[str, Any]) -> Condition:
    """The reverse of `condition_to_json`."""
    arguments = dict(data)
    condition: Condition = CONDITIONS[arguments.pop("kind")](**arguments)
    return condition


def _shards(topics: Sequence[Topic]) -> list[str]:
    return [shard for topic in topics for shard in topic.shards]
