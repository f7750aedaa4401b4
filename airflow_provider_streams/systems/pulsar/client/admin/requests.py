"""Admin calls that only read: what to send, and how the answer becomes a value.

The calls that create or change something are in `changes`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar
from urllib.parse import quote_plus

from airflow_provider_streams.systems.pulsar.client.admin.responses import (
    BacklogQuota,
    EntryId,
    InternalInfo,
    InternalStats,
    PeekedEntry,
    Process,
    Retention,
    SlowTransaction,
    StoredSchema,
    TopicStats,
    TransactionBuffer,
    read_compatibility,
)
from airflow_provider_streams.systems.pulsar.metadata.names import namespace_of, parent_of, rest_path, segment
from airflow_provider_streams.systems.rest.request import Refusal, Request
from airflow_provider_streams.systems.rest.response import Answer
from airflow_provider_streams.systems.schemas import Compatibility

T = TypeVar("T")
BacklogQuotas = Mapping[str, BacklogQuota]
"""By kind, as the broker names it."""

_NOT_CREATED: tuple[Refusal, ...] = ((404, "not yet created"), (404, "not found"))
"""A partition may be created on first use. Until then it does not exist, though its topic does."""
_NOT_ALLOWED: tuple[Refusal, ...] = ((401, "unauthorized to"), (403, ""))
"""A user who may only consume may not read policies."""
_INCOMPATIBLE: tuple[Refusal, ...] = (
    (500, "incompatible schema"),
    (500, "schema compatibility check"),
    (409, "incompatible"),
)
_PEEK_SECONDS = 5.0


def topic_request(
    action: str,
    topic: str,
    suffix: str,
    parse: Callable[[Answer], T],
    params: Mapping[str, str] | None = None,
    **more: Any,
) -> Request[T]:
    """A call about one topic; its name follows the action, and `suffix` its path."""
    path = f"admin/v2/{rest_path(topic)}/{suffix}".rstrip("/")
    return Request(f"{action} {topic}", path, parse, params or {}, subject=topic, **more)


def if_exists(request: Request[T]) -> Request[T | None]:
    """The same request, with the answer None if the topic or partition does not exist."""
    return replace(request, absent=(*request.absent, *_NOT_CREATED))


def _list(action: str, path: str, subject: str = "") -> Request[tuple[str, ...]]:
    return Request(action, f"admin/v2/{path}", lambda answer: tuple(answer.json()), subject=subject)


# Clusters and namespaces


def brokers_version() -> Request[str]:
    """The broker's version. It needs a valid token but no permission, so it is the best test of a connection."""
    return Request("ask for the broker's version", "admin/v2/brokers/version", Answer.text)


def brokers_ready() -> Request[bool]:
    """Whether the broker serves."""
    return Request("ask whether the broker is ready", "admin/v2/brokers/ready", lambda answer: answer.text() == "ok")


def clusters() -> Request[tuple[str, ...]]:
    """The names of the clusters that the broker knows."""
    return _list("list the clusters", "clusters")


def namespaces(tenant: str) -> Request[tuple[str, ...]]:
    """The namespaces of a tenant, `tenant/namespace`; for tenant administrators."""
    return _list(f"list the namespaces of {tenant}", f"namespaces/{segment(tenant)}", tenant)


def topics(namespace: str) -> Request[tuple[str, ...]]:
    """Full names of the persistent topics of a namespace; a partitioned topic appears as its partitions."""
    return _list(f"list the topics of {namespace}", _namespace_path(namespace), namespace)


def partitioned_topics(namespace: str) -> Request[tuple[str, ...]]:
    """Full names of the partitioned topics of a namespace, without their partitions."""
    path = f"{_namespace_path(namespace)}/partitioned"
    return _list(f"list the partitioned topics of {namespace}", path, namespace)


def _namespace_path(namespace: str) -> str:
    return f"persistent/{'/'.join(map(segment, namespace.split('/', 1)))}"


# Topics


def partitions(topic: str) -> Request[int]:
    """How many partitions a topic has; 0: it is not partitioned."""
    # with `true` this call would create the topic
    params = {"checkAllowAutoCreation": "false"}
    return topic_request(
        "ask for the partitions of", topic, "partitions", lambda a: int(a.json()["partitions"]), params
    )


_STATS = {"getPreciseBacklog": "false", "subscriptionBacklogSize": "true", "getEarliestTimeInBacklog": "true"}


def stats(topic: str) -> Request[TopicStats]:
    """Counters and subscriptions of a topic that is not partitioned, or of one partition."""
    return topic_request("read the statistics of", topic, "stats", TopicStats.read, _STATS)


def partitioned_stats(topic: str) -> Request[TopicStats]:
    """The same, summed over a topic's partitions."""
    params = {**_STATS, "perPartition": "false"}
    return topic_request("read the statistics of", topic, "partitioned-stats", TopicStats.read, params)


def internal_stats(topic: str) -> Request[InternalStats]:
    """The ledgers of a topic or partition."""
    params = {"metadata": "false"}
    return topic_request("read the ledgers of", topic, "internalStats", lambda a: InternalStats.of(a.json()), params)


def partitioned_internal_stats(topic: str) -> Request[dict[str, InternalStats]]:
    """The ledgers of all partitions of a topic, without the partitions whose broker does not answer."""
    return topic_request("read the ledgers of", topic, "partitioned-internalStats", InternalStats.read_partitions)


def internal_info(topic: str) -> Request[dict[str, InternalInfo]]:
    """What the metadata store has about a topic, or about each of its partitions. The call loads no topic.

    For a topic that does not exist, the broker answers with a 500, as if it had failed.
    """
    return topic_request(
        "read the metadata of", topic, "internal-info", lambda answer: InternalInfo.read_all(topic, answer)
    )


def internal_info_of_all(topic: str) -> Request[dict[str, InternalInfo] | None]:
    """The same for all partitions of a topic; None: the broker failed for one of them, for example a missing one.

    The broker calls itself for each partition, and its reason then quotes the inner answer.
    """
    return replace(internal_info(topic), absent=((500, "http 500"),))


def last_message_id(topic: str) -> Request[EntryId]:
    """The last stored entry: perhaps a marker, aborted or removed. Only the wire protocol knows the last *message*."""
    return topic_request("ask for the last message of", topic, "lastMessageId", EntryId.read)


def message_id_at(topic: str, publish_ms: int) -> Request[EntryId]:
    """The first entry published at or after a time (milliseconds); past the end, the next entry to come."""
    # brokers under load give this refusal at random
    passing = ((404, "message id not found"),)
    return topic_request("look up a time in", topic, f"messageid/{publish_ms}", EntryId.read, passing=passing)


def peek(topic: str, ledger: int, entry: int) -> Request[PeekedEntry | None]:
    """What one entry is; None: its ledger is gone.

    Only for entries that readers are not sent, and that the binary protocol therefore cannot describe. The broker gives
    no answer for a chunk of a compressed message, and a 500 where a key and properties exceed the size of HTTP headers.
    """
    return topic_request(
        f"look at entry {ledger}:{entry} of",
        topic,
        f"ledger/{ledger}/entry/{entry}",
        PeekedEntry.read,
        headers_only=True,
        seconds=_PEEK_SECONDS,
        absent=((404, "message id not found"),),
    )


def subscriptions(topic: str) -> Request[tuple[str, ...]]:
    """The names of a topic's subscriptions."""
    return topic_request("list the subscriptions of", topic, "subscriptions", lambda answer: tuple(answer.json()))


def may_subscribe(topic: str, subscription: str) -> Request[bool]:
    """Whether this user may make and move a subscription, found out with one that does not exist.

    Brokers ask for the same permission for every action on subscriptions. This one reads their properties; a peek would
    make a subscription that does not exist.
    """
    return topic_request(
        f"use subscription {subscription} of",
        topic,
        f"subscription/{segment(quote_plus(subscription))}/properties",
        lambda _answer: True,
        told=((404, "subscription"), (404, "not found")),
    )


def server_date() -> Request[str]:
    """The time by the clock of the server that answers, as HTTP says it; empty: it does not."""
    return Request(
        "ask for the time", "admin/v2/brokers/version", lambda answer: answer.headers.get("date", ""), headers_only=True
    )


def process_status(topic: str, process: Literal["compaction", "offload"]) -> Request[Process]:
    """How the last compaction or offload of a topic or partition went."""
    return topic_request(f"ask for the {process} of", topic, process, Process.read)


# Policies in effect for a topic; None: this user may not read them


def _policy(name: str, topic: str, suffix: str, parse: Callable[[Answer], T]) -> Request[T | None]:
    return topic_request(f"read the {name} of", topic, suffix, parse, {"applied": "true"}, absent=_NOT_ALLOWED)


def retention(topic: str) -> Request[Retention | None]:
    """How long acknowledged data stays."""
    return _policy("retention", topic, "retention", Retention.read)


def message_ttl(topic: str) -> Request[int | None]:
    """After how many seconds unread messages count as read; 0: never."""
    return _policy("message TTL", topic, "messageTTL", lambda answer: int(answer.text() or 0))


def backlog_quotas(topic: str) -> Request[BacklogQuotas | None]:
    """The topic's own limits of unread data, by kind.

    A broker that is asked for those in effect writes its defaults into the policies of the namespace (4.0.8). From then
    on, it refuses retention below them.
    """
    return topic_request("read the backlog quota of", topic, "backlogQuotaMap", _quotas, absent=_NOT_ALLOWED)


def namespace_backlog_quotas(topic: str) -> Request[BacklogQuotas | None]:
    """The limits of unread data in the topic's namespace, by kind."""
    namespace = namespace_of(topic)
    path = f"admin/v2/namespaces/{namespace}/backlogQuotaMap"
    return Request(f"read the backlog quota of {namespace}", path, _quotas, subject=topic, absent=_NOT_ALLOWED)


def _quotas(answer: Answer) -> BacklogQuotas:
    return {kind: BacklogQuota.of(one) for kind, one in answer.json().items()}


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
    """All transactions of the cluster that have been open for longer; for superusers. None: it has no transactions."""
    return Request(
        f"list the transactions open for longer than {longer_than_ms} ms",
        f"admin/v3/transactions/slowTransactions/{longer_than_ms}",
        SlowTransaction.read_all,
        # no coordinator is loaded before the first transaction
        absent=((503, "transaction"), (500, "coordinator not found"), (404, "coordinator not found")),
    )


# Schemas, which all partitions of a topic share


def schemas(topic: str) -> Request[tuple[StoredSchema, ...] | None]:
    """Every version of a topic's schema, the oldest first; None or empty: it has no schema, or does not exist.

    Deleted versions leave nothing.
    """
    return Request(
        f"read the schemas of {topic}", _schema_path(topic, "schemas"), StoredSchema.read_all, absent=((404, ""),)
    )


def compatibility(topic: str, type_: str, schema: str, properties: Mapping[str, str]) -> Request[Compatibility]:
    """Whether a topic would accept a schema in addition to its present ones; changes nothing."""
    return Request(
        f"check a schema of {topic}",
        _schema_path(topic, "compatibility"),
        read_compatibility,
        method="POST",
        body=json.dumps({"type": type_, "schema": schema, "properties": dict(properties)}).encode(),
        subject=topic,
        told=_INCOMPATIBLE,
    )


def _schema_path(topic: str, suffix: str) -> str:
    return f"admin/v2/schemas/{rest_path(parent_of(topic)).removeprefix('persistent/')}/{suffix}"
