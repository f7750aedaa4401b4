"""Wait for a subscription's backlog, or for a state of topics. Nothing is consumed or changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.hooks.pulsar import connection_of
from airflow_provider_streams.sensors.base import ConditionSensor
from airflow_provider_streams.systems.pulsar.operations.conditions import (
    BacklogReached,
    Finished,
    NoOldTransactions,
    Terminated,
)
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.template_rendering import is_late

if TYPE_CHECKING:
    from airflow_provider_streams.systems.conditions import Condition, Direction


class _PulsarSensor(ConditionSensor):
    """What the sensors of Pulsar share: topics on a connection.

    Args:
        topic: the topic, named as in `PulsarSource` (templated); or give `source`.
        source: instead of `topic`, several topics or a pattern (templated); the condition must be met by all of them.
        conn_id: the Airflow connection of `topic` (templated), by default `pulsar_default`; a source has its own.
    """

    template_fields: Sequence[str] = ("topic", "source", "conn_id")

    def __init__(
        self,
        *,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(deferrable=deferrable, poke_interval=poke_interval, **kwargs)
        self.topic, self.source, self.conn_id = topic, source, connection_of(self, topic, source, conn_id)
        if not is_late(topic):
            self.target()  # refuses when the DAG is parsed

    def target(self) -> PulsarSource:
        """The topics."""
        return self.source or PulsarSource(self.topic or (), conn_id=self.conn_id)


class PulsarBacklogSensor(_PulsarSensor):
    """Waits until the backlog of a durable subscription meets a limit. Nothing is consumed or acknowledged.

    **Entries are not messages**: a batch of 1,000 messages is one entry, and Pulsar counts backlogs in entries. The
    age is the age of the oldest unacknowledged entry, by its producer's clock and ours.

    Args:
        topic: the topic, named as in `PulsarSource` (templated); or give `source`.
        source: instead of `topic`, several topics or a pattern (templated); their backlogs are summed.
        subscription: its name (templated).
        entries: a limit in entries.
        bytes: a limit in stored bytes.
        age: a limit for the oldest entry's age.
        direction: `at_least` waits for a backlog to form: one reached limit suffices. `at_most` waits for it to
            drain: no limit may be exceeded.
        conn_id: the Airflow connection of `topic` (templated), by default `pulsar_default`; a source has its own.

    Returns (XCom):
        `entries, bytes, oldest, age_seconds`.
    """

    template_fields: Sequence[str] = ("topic", "source", "conn_id", "subscription")

    def __init__(
        self,
        *,
        subscription: str,
        entries: int | None = None,
        bytes: int | None = None,  # noqa: A002 - the unit is the name
        age: timedelta | None = None,
        direction: Direction = "at_least",
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            deferrable=deferrable, poke_interval=poke_interval, topic=topic, source=source, conn_id=conn_id, **kwargs
        )
        self.subscription = subscription
        self.entries, self.bytes, self.age, self.direction = entries, bytes, age, direction
        self.condition()  # refuses when the DAG is parsed

    def condition(self) -> Condition:
        """As `ConditionSensor`."""
        age = None if self.age is None else self.age.total_seconds()
        return BacklogReached(self.subscription, self.entries, self.bytes, age, self.direction)


class PulsarCaughtUpSensor(PulsarBacklogSensor):
    """Waits until a durable subscription has acknowledged everything, or all but a little.

    Args:
        topic: the topic, named as in `PulsarSource` (templated); or give `source`.
        source: instead of `topic`, several topics or a pattern (templated); their backlogs are summed.
        subscription: its name (templated).
        entries: so many unread entries (not messages) count as caught up.
        age: the oldest unread entry may be so old; None: of any age.
        conn_id: the Airflow connection of `topic` (templated), by default `pulsar_default`; a source has its own.

    Returns (XCom):
        `entries, bytes, oldest, age_seconds`.
    """

    def __init__(
        self,
        *,
        subscription: str,
        entries: int = 0,
        age: timedelta | None = None,
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            subscription=subscription,
            entries=entries,
            age=age,
            direction="at_most",
            deferrable=deferrable,
            poke_interval=poke_interval,
            topic=topic,
            source=source,
            conn_id=conn_id,
            **kwargs,
        )


class PulsarTerminatedSensor(_PulsarSensor):
    """Waits until topics are terminated: what they hold is all they will ever hold.

    Returns (XCom):
        `last`: each partition's last entry.
    """

    def condition(self) -> Condition:
        """As `ConditionSensor`."""
        return Terminated()


class PulsarCompactionSensor(_PulsarSensor):
    """Waits until the compaction of every partition has succeeded; fails where the broker gave up.

    The broker knows the last compaction since it loaded the topic.

    Returns (XCom):
        `process, shards`.
    """

    def condition(self) -> Condition:
        """As `ConditionSensor`."""
        return Finished("compaction")


class PulsarOffloadSensor(_PulsarSensor):
    """Waits until the offload of every partition has succeeded; fails where the broker gave up.

    Returns (XCom):
        `process, shards`.
    """

    def condition(self) -> Condition:
        """As `ConditionSensor`."""
        return Finished("offload")


class PulsarTransactionsSensor(_PulsarSensor):
    """Waits until no transaction that wrote to the topics has been open for longer than a time.

    An open transaction holds back every later event of its partitions. Needs a superuser's token.

    Args:
        older_than: the age from which on a transaction is waited for.

    Returns (XCom):
        `open`, an empty list.
    """

    def __init__(
        self,
        *,
        older_than: timedelta = timedelta(0),
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            deferrable=deferrable, poke_interval=poke_interval, topic=topic, source=source, conn_id=conn_id, **kwargs
        )
        self.older_than = older_than
        self.condition()  # refuses when the DAG is parsed

    def condition(self) -> Condition:
        """As `ConditionSensor`."""
        return NoOldTransactions(self.older_than.total_seconds())
