"""Every admin call we make, one function each: what to send, and how its answer becomes a value.

None of them creates a topic or a subscription, or changes anything: those that do are in `changes`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from airflow_provider_streams.systems.pulsar.admin.answers import (
    BacklogQuota,
    InternalInfo,
    InternalStats,
    MessageId,
    Process,
    Retention,
    SlowTransaction,
    TopicStats,
    TransactionBuffer,
)
from airflow_provider_streams.systems.pulsar.admin.peek import PeekedEntry
from airflow_provider_streams.systems.pulsar.names import rest_path, segment
from airflow_provider_streams.systems.rest.answer import Answer
from airflow_provider_streams.systems.rest.request import Refusal, Request

T = TypeVar("T")


# a partition may be made when it is first used; until then it is not there, though its topic is
_NOT_MADE: tuple[Refusal, ...] = ((404, "not yet created"), (404, "not found"))


def if_made(request: Request[T]) -> Request[T | None]:
    """The same about a partition that may not have been made yet; None: it has not."""
    return replace(request, absent=(*request.absent, *_NOT_MADE))


_V2 = "admin/v2"
_PEEK_SECONDS = 5.0
_ENTRY_GONE: Refusal = (404, "message id not found")


def _topic(topic: str, suffix: str) -> str:
    return f"{_V2}/{rest_path(topic)}/{suffix}"


def _namespace(namespace: str) -> str:
    tenant, _, name = namespace.partition("/")
    return f"{segment(tenant)}/{segment(name)}"


def _strings(answer: Answer) -> tuple[str, ...]:
    return tuple(answer.json())


# Clusters and brokers


def brokers_version() -> Request[str]:
    """The broker's version; needs a valid token, no permission: the best test of a connection."""
    return Request("ask for the broker's version", f"{_V2}/brokers/version", Answer.text)


def brokers_ready() -> Request[bool]:
    """Whether the broker serves."""
    return Request("ask whether the broker is ready", f"{_V2}/brokers/ready", lambda answer: answer.text() == "ok")


def clusters() -> Request[tuple[str, ...]]:
    """The names of the clusters it knows."""
    return Request("list the clusters", f"{_V2}/clusters", _strings)


# Namespaces


def namespaces(tenant: str) -> Request[tuple[str, ...]]:
    """The namespaces of a tenant, `tenant/namespace`; for tenant administrators."""
    path = f"{_V2}/namespaces/{segment(tenant)}"
    return Request(f"list the namespaces of {tenant}", path, _strings, subject=tenant)


def topics(namespace: str) -> Request[tuple[str, ...]]:
    """Full names of the persistent topics of a namespace; of partitioned ones each partition."""
    path = f"{_V2}/persistent/{_namespace(namespace)}"
    return Request(f"list the topics of {namespace}", path, _strings, subject=namespace)


def partitioned_topics(namespace: str) -> Request[tuple[str, ...]]:
    """Full names of the partitioned topics of a namespace, once each, without their partitions."""
    path = f"{_V2}/persistent/{_namespace(namespace)}/partitioned"
    return Request(f"list the partitioned topics of {namespace}", path, _strings, subject=namespace)


# Topics


def partitions(topic: str) -> Request[int]:
    """How many partitions a topic has; 0: it is not partitioned."""
    return Request(
        f"ask for the partitions of {topic}",
        _topic(topic, "partitions"),
        lambda answer: int(answer.json()["partitions"]),
        # with `true` a look would create the topic
        {"checkAllowAutoCreation": "false"},
        subject=topic,
    )


_STATS = {"getPreciseBacklog": "false", "subscriptionBacklogSize": "true", "getEarliestTimeInBacklog": "true"}


def stats(topic: str) -> Request[TopicStats]:
    """Counters and subscriptions of a topic that is not partitioned, or of one partition."""
    return Request(f"read the statistics of {topic}", _topic(topic, "stats"), TopicStats.read, _STATS, subject=topic)


def partitioned_stats(topic: str) -> Request[TopicStats]:
    """The same, summed over a topic's partitions."""
    return Request(
        f"read the statistics of {topic}",
        _topic(topic, "partitioned-stats"),
        TopicStats.read,
        {**_STATS, "perPartition": "false"},
        subject=topic,
    )


def internal_stats(topic: str) -> Request[InternalStats]:
    """The ledgers of a topic or partition."""
    return Request(
        f"read the ledgers of {topic}",
        _topic(topic, "internalStats"),
        InternalStats.read,
        {"metadata": "false"},
        subject=topic,
    )


def partitioned_internal_stats(topic: str) -> Request[dict[str, InternalStats]]:
    """The ledgers of all partitions of a topic; those that a broker does not answer for are left out."""
    return Request(
        f"read the ledgers of {topic}",
        _topic(topic, "partitioned-internalStats"),
        InternalStats.read_partitions,
        subject=topic,
    )


def internal_info(topic: str) -> Request[dict[str, InternalInfo]]:
    """What the metadata store has about a topic, or about each of its partitions; asking loads no topic.

    Ask only for a topic that exists: for others the broker answers as if it had failed, with a 500.
    """
    return Request(
        f"read the metadata of {topic}",
        _topic(topic, "internal-info"),
        lambda answer: InternalInfo.read_all(topic, answer),
        subject=topic,
    )


def last_message_id(topic: str) -> Request[MessageId]:
    """The last stored entry, which may be a marker or aborted, or be gone: the wire knows the last *message*."""
    return Request(
        f"ask for the last message of {topic}", _topic(topic, "lastMessageId"), MessageId.read, subject=topic
    )


def message_id_at(topic: str, publish_ms: int) -> Request[MessageId]:
    """The first entry published at or after a time (milliseconds); past the end, the next one to come."""
    return Request(
        f"look up a time in {topic}",
        _topic(topic, f"messageid/{publish_ms}"),
        MessageId.read,
        subject=topic,
        # seen at random on brokers under load
        passing=((404, "message id not found"),),
    )


def peek(topic: str, ledger: int, entry: int) -> Request[PeekedEntry | None]:
    """What one entry is; None: its ledger is gone.

    Only for what readers are not sent, which the binary protocol therefore cannot tell. There is no answer for a chunk
    of a compressed message, and a 500 for a key and properties that are larger than HTTP headers may be.
    """
    return Request(
        f"look at entry {ledger}:{entry} of {topic}",
        _topic(topic, f"ledger/{ledger}/entry/{entry}"),
        PeekedEntry.read,
        headers_only=True,
        seconds=_PEEK_SECONDS,
        subject=topic,
        absent=(_ENTRY_GONE,),
    )


def subscriptions(topic: str) -> Request[tuple[str, ...]]:
    """The names of a topic's subscriptions."""
    return Request(f"list the subscriptions of {topic}", _topic(topic, "subscriptions"), _strings, subject=topic)


def compaction_status(topic: str) -> Request[Process]:
    """How the last compaction of a topic or partition went."""
    return Request(f"ask for the compaction of {topic}", _topic(topic, "compaction"), Process.read, subject=topic)


def offload_status(topic: str) -> Request[Process]:
    """How the last offload of a topic or partition went."""
    return Request(f"ask for the offload of {topic}", _topic(topic, "offload"), Process.read, subject=topic)


# Policies: a user who may only consume may not read them; None then means "not known"

_NOT_ALLOWED: tuple[Refusal, ...] = ((401, "unauthorized to"), (403, ""))


def retention(topic: str) -> Request[Retention | None]:
    """The retention in effect for a topic; None: we may not know."""
    return Request(
        f"read the retention of {topic}",
        _topic(topic, "retention"),
        Retention.read,
        {"applied": "true"},
        subject=topic,
        absent=_NOT_ALLOWED,
    )


def message_ttl(topic: str) -> Request[int | None]:
    """After how many seconds unread messages count as read, 0: never; None: we may not know."""
    return Request(
        f"read the message TTL of {topic}",
        _topic(topic, "messageTTL"),
        lambda answer: int(answer.text() or 0),
        {"applied": "true"},
        subject=topic,
        absent=_NOT_ALLOWED,
    )


def backlog_quotas(topic: str) -> Request[tuple[BacklogQuota, ...] | None]:
    """The limits of unread data in effect for a topic; None: we may not know."""
    return Request(
        f"read the backlog quota of {topic}",
        _topic(topic, "backlogQuotaMap"),
        lambda answer: tuple(BacklogQuota.of(quota) for quota in answer.json().values()),
        {"applied": "true"},
        subject=topic,
        absent=_NOT_ALLOWED,
    )


# Transactions


def transaction_buffer(topic: str) -> Request[TransactionBuffer | None]:
    """Where open transactions hold a topic back; None: the cluster has no transactions."""
    return Request(
        f"read the transactions of {topic}",
        f"admin/v3/transactions/transactionBufferStats/{rest_path(topic).removeprefix('persistent/')}",
        TransactionBuffer.read,
        subject=topic,
        absent=((503, "transaction"), (404, "transaction")),
    )


def slow_transactions(longer_than_ms: int) -> Request[tuple[SlowTransaction, ...] | None]:
    """The whole cluster's transactions that have been open for longer; for superusers. None: it has none at all."""
    return Request(
        f"list the transactions open for longer than {longer_than_ms} ms",
        f"admin/v3/transactions/slowTransactions/{longer_than_ms}",
        SlowTransaction.read_all,
        # no coordinator is loaded before the first transaction
        absent=((503, "transaction"), (500, "coordinator not found"), (404, "coordinator not found")),
    )
