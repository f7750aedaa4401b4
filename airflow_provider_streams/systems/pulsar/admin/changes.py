"""Every admin call that changes something, one function each; reading, planning and waiting use none of them.

Each may be sent twice: where the broker refuses because the change is made already, the result is None.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote_plus

from airflow_provider_streams.systems.pulsar.admin.answers import MessageId
from airflow_provider_streams.systems.pulsar.names import partition_of, rest_path, segment
from airflow_provider_streams.systems.rest.answer import Answer
from airflow_provider_streams.systems.rest.request import Refusal, Request

Place = MessageId | Literal["earliest", "latest"]
"""Where a subscription starts: at this entry, at the first one stored, or after the last one."""

_EXISTS: Refusal = (409, "exist")
_ABSENT: Refusal = (404, "")
_RUNNING: Refusal = (409, "")


def _path(topic: str, suffix: str = "") -> str:
    return f"admin/v2/{rest_path(topic)}{'/' if suffix else ''}{suffix}"


def _change(action: str, topic: str, method: str, suffix: str = "", **more: Any) -> Request[Any]:
    more.setdefault("parse", _done)
    return Request(action, _path(topic, suffix), method=method, subject=topic, **more)


def _done(_: Answer) -> bool:
    return True


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


# Topics


def create_topic(topic: str) -> Request[bool | None]:
    """A topic without partitions; None: it was there."""
    return _change(f"create {topic}", topic, "PUT", absent=(_EXISTS,))


def create_partitioned_topic(topic: str, partitions: int) -> Request[bool | None]:
    """A topic with partitions; None: it was there."""
    return _change(f"create {topic}", topic, "PUT", "partitions", body=_json(partitions), absent=(_EXISTS,))


def update_partitions(topic: str, partitions: int) -> Request[bool]:
    """More partitions for a partitioned topic; fewer are refused by the broker."""
    return _change(f"change the partitions of {topic}", topic, "POST", "partitions", body=_json(partitions))


def delete_topic(topic: str, *, partitioned: bool, force: bool) -> Request[bool | None]:
    """A topic with all its data; None: it was not there. `force`: although clients are connected."""
    return _change(
        f"delete {topic}",
        topic,
        "DELETE",
        "partitions" if partitioned else "",
        params={"force": str(force).lower()},
        absent=(_ABSENT,),
    )


def terminate(topic: str) -> Request[MessageId]:
    """Nothing more can be written to a topic or partition; its last entry, also when it was terminated before."""
    return _change(f"terminate {topic}", topic, "POST", "terminate", parse=MessageId.read)


def terminate_partitions(topic: str) -> Request[bool]:
    """The same for all partitions of a topic; the broker refuses it for one of them alone."""
    return _change(f"terminate {topic}", topic, "POST", "terminate/partitions")


def compact(topic: str) -> Request[bool | None]:
    """Starts a compaction of a topic or partition; None: one is running."""
    return _change(f"compact {topic}", topic, "PUT", "compaction", absent=(_RUNNING,))


def offload(topic: str, up_to: MessageId) -> Request[bool | None]:
    """Starts moving full ledgers before a position to long-term storage; None: that is running."""
    body = {"ledgerId": up_to.ledger, "entryId": up_to.entry, "partitionIndex": partition_of(topic)}
    return _change(f"offload {topic}", topic, "PUT", "offload", body=_json(body), absent=(_RUNNING,))


def trim(topic: str) -> Request[bool]:
    """Removes now what retention and subscriptions no longer keep, instead of at the broker's next check."""
    return _change(f"trim {topic}", topic, "POST", "trim")


def set_retention(topic: str, minutes: int, megabytes: int) -> Request[bool]:
    """A topic's own retention; -1: without limit."""
    body = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}
    return _change(f"set the retention of {topic}", topic, "POST", "retention", body=_json(body))


def remove_retention(topic: str) -> Request[bool]:
    """A topic has its namespace's retention again."""
    return _change(f"remove the retention of {topic}", topic, "DELETE", "retention")


# Subscriptions of a topic without partitions, or of one partition


def _subscription(action: str, topic: str, name: str, method: str, suffix: str = "", **more: Any) -> Request[Any]:
    # the broker decodes this part of the path twice: "+" would arrive as a blank
    path = f"subscription/{segment(quote_plus(name))}{'/' if suffix else ''}{suffix}"
    return _change(f"{action} subscription {name} of {topic}", topic, method, path, **more)


def _position(topic: str, at: MessageId, properties: Mapping[str, str]) -> dict[str, Any]:
    # the broker takes the whole entry, whatever the batch index
    return {
        "ledgerId": at.ledger,
        "entryId": at.entry,
        "partitionIndex": partition_of(topic),
        "batchIndex": -1,
        "excluded": False,
        "properties": dict(properties),
    }


def create_subscription(
    topic: str, name: str, at: Place, properties: Mapping[str, str] | None = None
) -> Request[bool | None]:
    """A durable subscription whose first unread entry is `at`; None: it was there, wherever it stands.

    Ask only for a topic that exists: the broker may create it.
    """
    # properties travel with a position alone
    body = at if isinstance(at, str) else _position(topic, at, properties or {})
    return _subscription("create", topic, name, "PUT", body=_json(body), absent=(_EXISTS,))


def set_subscription_properties(topic: str, name: str, properties: Mapping[str, str]) -> Request[bool]:
    """Replaces a subscription's properties."""
    return _subscription("mark", topic, name, "PUT", "properties", body=_json(dict(properties)))


def move_subscription(topic: str, name: str, at: MessageId) -> Request[bool]:
    """Makes `at` its first unread entry, forwards or backwards; consumers are disconnected."""
    body = _json(_position(topic, at, {}))
    busy = ((412, "fenced"), (412, "busy"), (412, "concurrent"))
    return _subscription("move", topic, name, "POST", "resetcursor", body=body, passing=busy)


def acknowledge_up_to(topic: str, name: str, last: MessageId) -> Request[bool]:
    """Everything up to and including the entry `last` counts as read; never moves backwards."""
    body = _json(_position(topic, last, {}))
    return _subscription("acknowledge in", topic, name, "POST", "expireMessages", body=body)


def drop_subscription(topic: str, name: str, *, force: bool = False) -> Request[bool | None]:
    """Removes it; None: it was not there. `force`: although consumers are connected."""
    params = {"force": str(force).lower()}
    return _subscription("drop", topic, name, "DELETE", params=params, absent=(_ABSENT,))
