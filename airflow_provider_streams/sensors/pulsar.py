"""Wait for a subscription's backlog, or for a state of topics. Nothing is consumed or changed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.sensors.state import StateSensor
from airflow_provider_streams.systems.pulsar.backlog import BacklogLimit, Direction
from airflow_provider_streams.systems.pulsar.conditions import (
    CaughtUp,
    Condition,
    Finished,
    NoOldTransactions,
    Terminated,
    condition_to_json,
)
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.sources import source_to_json
from airflow_provider_streams.triggers.pulsar import (
    PulsarBacklogTrigger,
    PulsarConditionTrigger,
    backlog_answer,
    finding_answer,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.hooks.pulsar import PulsarHook
    from airflow_provider_streams.triggers.state import Answer


class PulsarBacklogSensor(StateSensor):
    """Waits until the backlog of a durable subscription meets a limit. Nothing is consumed or acknowledged.

    **Entries are not messages**: a batch of 1,000 messages is one entry, and Pulsar counts backlogs in entries. The
    age is that of the oldest unacknowledged entry, by its producer's clock and ours.

    Args:
        topic: the topic, named as in `PulsarSource`; or give `source`.
        source: instead of `topic`, several topics or a pattern; their backlogs are summed.
        subscription: its name (templated).
        entries: a limit in entries.
        bytes: a limit in stored bytes.
        age: a limit for the oldest entry's age.
        direction: `at_least` waits for a backlog to form: one reached limit suffices. `at_most` waits for it to
            drain: no limit may be exceeded.
        conn_id: the Airflow connection, with `topic`.

    Returns (XCom):
        `entries, bytes, oldest, age_seconds`.
    """

    template_fields: Sequence[str] = ("subscription",)
    ui_color = "#e3f1d8"

    def __init__(
        self,
        *,
        topic: str | None = None,
        source: PulsarSource | None = None,
        subscription: str,
        entries: int | None = None,
        bytes: int | None = None,  # noqa: A002 - the unit is the name
        age: timedelta | None = None,
        direction: Direction = "at_least",
        conn_id: str = "pulsar_default",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = _source(topic, source, conn_id)
        self.subscription = subscription
        self.limit = BacklogLimit(entries, bytes, age, direction)

    def ask(self, context: Context) -> Answer:  # noqa: ARG002 - all sensors' shape
        """Poll once."""
        with closing(cast("PulsarHook", hook_for(self.source))) as hook:
            backlog = hook.backlog_of(self.source, self.subscription)
        return backlog_answer(backlog, self.limit, self.subscription)

    def trigger(self, context: Context) -> PulsarBacklogTrigger:  # noqa: ARG002 - all sensors' shape
        """The trigger that goes on asking."""
        return PulsarBacklogTrigger(
            source_to_json(self.source), self.subscription, self.limit.to_json(), self.poke_interval
        )


def _source(topic: str | None, source: PulsarSource | None, conn_id: str) -> PulsarSource:
    if (topic is None) == (source is None):
        raise InvalidRequest("the sensor takes a topic or a source, one of them")
    return source or PulsarSource(topic or (), conn_id=conn_id)


class PulsarConditionSensor(StateSensor):
    """What the sensors on a condition share.

    Args:
        topic: the topic, named as in `PulsarSource`; or give `source`.
        source: instead of `topic`, several topics or a pattern; the condition must be met by all of them.
        conn_id: the Airflow connection, with `topic`.
    """

    ui_color = "#e3f1d8"

    def __init__(
        self,
        *,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str = "pulsar_default",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = _source(topic, source, conn_id)

    @abstractmethod
    def condition(self) -> Condition:
        """What is waited for."""

    def ask(self, context: Context) -> Answer:  # noqa: ARG002 - all sensors' shape
        """Poll once."""
        with closing(cast("PulsarHook", hook_for(self.source))) as hook:
            return finding_answer(hook.find(self.source, self.condition()))

    def trigger(self, context: Context) -> PulsarConditionTrigger:  # noqa: ARG002 - all sensors' shape
        """The trigger that goes on asking."""
        return PulsarConditionTrigger(
            source_to_json(self.source), condition_to_json(self.condition()), self.poke_interval
        )


class PulsarTerminatedSensor(PulsarConditionSensor):
    """Waits until topics are terminated: what they hold is all they will ever hold.

    Returns (XCom):
        `last`: each partition's last entry.
    """

    def condition(self) -> Condition:
        """What is waited for."""
        return Terminated()


class PulsarCompactionSensor(PulsarConditionSensor):
    """Waits until the compaction of every partition has succeeded; fails where the broker gave up.

    The broker knows the last compaction since it loaded the topic.

    Returns (XCom):
        `process, shards`.
    """

    def condition(self) -> Condition:
        """What is waited for."""
        return Finished("compaction")


class PulsarOffloadSensor(PulsarConditionSensor):
    """Waits until the offload of every partition has succeeded; fails where the broker gave up.

    Returns (XCom):
        `process, shards`.
    """

    def condition(self) -> Condition:
        """What is waited for."""
        return Finished("offload")


class PulsarTransactionsSensor(PulsarConditionSensor):
    """Waits until no transaction that wrote to the topics has been open for longer than a time.

    An open transaction holds back every later event of its partitions. Needs a superuser's token.

    Args:
        older_than: the age from which on a transaction is waited for.

    Returns (XCom):
        `open`, an empty list.
    """

    def __init__(self, *, older_than: timedelta = timedelta(0), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.older_than = older_than
        self.condition()

    def condition(self) -> Condition:
        """What is waited for."""
        return NoOldTransactions(self.older_than.total_seconds())


class PulsarCaughtUpSensor(PulsarConditionSensor):
    """Waits until a durable subscription has acknowledged everything, or all but a little.

    Args:
        subscription: its name (templated).
        entries: so many unread entries (not messages) count as caught up.
        age: the oldest unread entry may be so old; None: of any age.

    Returns (XCom):
        `entries, bytes, oldest`.
    """

    template_fields: Sequence[str] = ("subscription",)

    def __init__(self, *, subscription: str, entries: int = 0, age: timedelta | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.subscription = subscription
        self.entries, self.age = entries, age

    def condition(self) -> Condition:
        """What is waited for."""
        return CaughtUp(self.subscription, self.entries, None if self.age is None else self.age.total_seconds())
