"""Change topics and subscriptions of a Pulsar cluster. Each task may run twice without harm."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import BaseOperator

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.pulsar import PulsarHook, one_topic
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.systems.pulsar.client.queries import Question, ask
from airflow_provider_streams.systems.pulsar.operations import administration
from airflow_provider_streams.systems.pulsar.source import PulsarSource, full_topic_name
from airflow_provider_streams.template_rendering import RendersValues

if TYPE_CHECKING:
    from airflow.sdk import Context

_MINUTE = timedelta(minutes=1)
_MEGABYTE = 1024 * 1024


class _TopicOperator(RendersValues, BaseOperator):
    """What the operators on one topic share.

    Args:
        topic: the topic, named as in `PulsarSource` (templated); or give `source`.
        source: instead of `topic`, a source of one topic.
        conn_id: the Airflow connection of `topic` (templated), by default `pulsar_default`; a source has its own.
    """

    template_fields: Sequence[str] = ("topic", "conn_id")
    ui_color = "#e9e3f5"

    def __init__(
        self,
        *,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.topic, self.conn_id = one_topic(self, topic, source, conn_id)

    @abstractmethod
    def change(self, topic: str) -> Question[dict[str, Any]]:
        """What to ask and do, given the topic's full name."""

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Change it, and return what was done.

        Raises:
            StreamsError: typed; one that cannot pass by itself stops retries.
        """
        with terminal_errors(), closing(PulsarHook(self.conn_id)) as hook:
            done = ask(hook.admin, self.change(full_topic_name(self.topic)))
        self.log.info("%s: %s", type(self).__name__, done)
        return done


class PulsarCreateTopicOperator(_TopicOperator):
    """Creates a topic. One that exists stays as it is, except that it may get more partitions.

    Args:
        partitions: how many; 0: a topic without partitions.

    Returns (XCom):
        `topic, partitions, created`.
    """

    def __init__(
        self,
        *,
        partitions: int = 0,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(topic=topic, source=source, conn_id=conn_id, **kwargs)
        if partitions < 0:
            raise InvalidRequest(f"partitions must not be negative, got {partitions}")
        self.partitions = partitions

    def change(self, topic: str) -> Question[dict[str, Any]]:
        """As `_TopicOperator`."""
        return administration.create_topic(topic, self.partitions)


class PulsarUpdatePartitionsOperator(_TopicOperator):
    """Gives a partitioned topic more partitions; Pulsar cannot take any away.

    Args:
        partitions: how many there will be.

    Returns (XCom):
        `topic, partitions, added`.
    """

    def __init__(
        self,
        *,
        partitions: int,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(topic=topic, source=source, conn_id=conn_id, **kwargs)
        if partitions < 1:
            raise InvalidRequest(f"partitions must be positive, got {partitions}")
        self.partitions = partitions

    def change(self, topic: str) -> Question[dict[str, Any]]:
        """As `_TopicOperator`."""
        return administration.update_partitions(topic, self.partitions)


class PulsarDeleteTopicOperator(_TopicOperator):
    """Deletes a topic **with all its data**; succeeds if it does not exist.

    Args:
        force: although producers or consumers are connected.

    Returns (XCom):
        `topic, deleted`.
    """

    def __init__(
        self,
        *,
        force: bool = False,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(topic=topic, source=source, conn_id=conn_id, **kwargs)
        self.force = force

    def change(self, topic: str) -> Question[dict[str, Any]]:
        """As `_TopicOperator`."""
        return administration.delete_topic(topic, force=self.force)


class PulsarTerminateTopicOperator(_TopicOperator):
    """Terminates a topic: nothing can be written to it any more, for ever; what it holds can be read.

    Returns (XCom):
        `topic`, and `last`: each partition's last entry.
    """

    def change(self, topic: str) -> Question[dict[str, Any]]:
        """As `_TopicOperator`."""
        return administration.terminate(topic)


class PulsarCompactTopicOperator(_TopicOperator):
    """Starts a compaction of every partition; wait for it with `PulsarCompactionSensor`.

    Returns (XCom):
        `topic`, and `started`: the partitions where none was running.
    """

    def change(self, topic: str) -> Question[dict[str, Any]]:
        """As `_TopicOperator`."""
        return administration.compact(topic)


class PulsarOffloadTopicOperator(_TopicOperator):
    """Starts moving the oldest full ledgers to long-term storage; wait for it with `PulsarOffloadSensor`.

    Args:
        keep_bytes: about so many bytes of each partition stay with the bookies; its open ledger always does.

    Returns (XCom):
        `topic, started, up_to`.
    """

    def __init__(
        self,
        *,
        keep_bytes: int = 0,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(topic=topic, source=source, conn_id=conn_id, **kwargs)
        if keep_bytes < 0:
            raise InvalidRequest(f"keep_bytes must not be negative, got {keep_bytes}")
        self.keep_bytes = keep_bytes

    def change(self, topic: str) -> Question[dict[str, Any]]:
        """As `_TopicOperator`."""
        return administration.offload(topic, self.keep_bytes)


class PulsarTrimTopicOperator(_TopicOperator):
    """Removes at once what retention and subscriptions no longer keep, instead of at the broker's next check.

    Returns (XCom):
        `topic, trimmed`.
    """

    def change(self, topic: str) -> Question[dict[str, Any]]:
        """As `_TopicOperator`."""
        return administration.trim(topic)


class PulsarSetRetentionOperator(_TopicOperator):
    """Sets a topic's own retention: how long data stays that no subscription waits for.

    Both limits apply together: data goes as soon as either is exceeded. Without limits, nothing ever goes.

    Args:
        retention: for how long, whole minutes; None: without limit.
        retention_bytes: how much, whole MiB; None: without limit.
        inherit: instead, remove the topic's own retention, so that its namespace's applies again.

    Returns (XCom):
        `topic, partitions, minutes, megabytes`.
    """

    def __init__(
        self,
        *,
        retention: timedelta | None = None,
        retention_bytes: int | None = None,
        inherit: bool = False,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(topic=topic, source=source, conn_id=conn_id, **kwargs)
        if inherit and (retention is not None or retention_bytes is not None):
            raise InvalidRequest("inherit=True takes the namespace's retention: give no limits with it")
        minutes = _whole(retention, _MINUTE, "retention")
        megabytes = _whole(retention_bytes, _MEGABYTE, "retention_bytes")
        self.retention = None if inherit else (minutes, megabytes)

    def change(self, topic: str) -> Question[dict[str, Any]]:
        """As `_TopicOperator`."""
        return administration.set_retention(topic, self.retention)


def _whole(limit: Any, unit: Any, name: str) -> int:
    """How many units; -1: without limit. Rounded up, so that never less is kept than was asked for."""
    if limit is None:
        return -1
    if limit < 0 * unit:
        raise InvalidRequest(f"{name} must not be negative, got {limit}")
    return int(-(-limit // unit))


class PulsarCreateSubscriptionOperator(_TopicOperator):
    """Creates a durable subscription on every partition; one that exists stays where it stands.

    It keeps everything it has not acknowledged from being removed. To hold the data of windows, use
    `HoldRetentionOperator`.

    Args:
        subscription: its name (templated).
        at: `earliest`: at the first entry still stored; `latest`: after the last one.

    Returns (XCom):
        `topic`, and `created`: the partitions that did not have it.
    """

    template_fields: Sequence[str] = ("topic", "conn_id", "subscription")

    def __init__(
        self,
        *,
        subscription: str,
        at: Literal["earliest", "latest"] = "earliest",
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(topic=topic, source=source, conn_id=conn_id, **kwargs)
        if at not in ("earliest", "latest"):
            raise InvalidRequest(f"at must be 'earliest' or 'latest', got {at!r}")
        self.subscription, self.at = subscription, at

    def change(self, topic: str) -> Question[dict[str, Any]]:
        """As `_TopicOperator`."""
        return administration.create_subscription(topic, self.subscription, self.at)


class PulsarDropSubscriptionOperator(_TopicOperator):
    """Removes a subscription from every partition; succeeds if there is none. Its unread data may then be removed.

    Args:
        subscription: its name (templated).
        force: although consumers are connected.

    Returns (XCom):
        `topic`, and `dropped`: the partitions that had it.
    """

    template_fields: Sequence[str] = ("topic", "conn_id", "subscription")

    def __init__(
        self,
        *,
        subscription: str,
        force: bool = False,
        topic: str | None = None,
        source: PulsarSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(topic=topic, source=source, conn_id=conn_id, **kwargs)
        self.subscription, self.force = subscription, force

    def change(self, topic: str) -> Question[dict[str, Any]]:
        """As `_TopicOperator`."""
        return administration.drop_subscription(topic, self.subscription, force=self.force)
