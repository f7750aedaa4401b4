"""Admin calls that change something. Reading, planning and waiting use none of them.

Each may be sent twice: the result is None if the broker refuses because the change was made before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import quote_plus

from airflow_provider_streams.systems.pulsar.client.admin.requests import topic_request
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId
from airflow_provider_streams.systems.pulsar.metadata.names import partition_of, segment
from airflow_provider_streams.systems.rest.request import Refusal, Request
from airflow_provider_streams.systems.rest.response import Answer

Place = EntryId | Literal["earliest", "latest"]
"""Where a subscription starts: at this entry, at the first one stored, or after the last one."""

_EXISTS: tuple[Refusal, ...] = ((409, "exist"),)
_ABSENT: tuple[Refusal, ...] = ((404, ""),)
_RUNNING: tuple[Refusal, ...] = ((409, ""),)


def _done(_: Answer) -> bool:
    return True


def _change(
    action: str,
    topic: str,
    method: str,
    suffix: str = "",
    *,
    body: object = None,
    parse: Callable[[Answer], Any] = _done,
    **more: Any,
) -> Request[Any]:
    content = None if body is None else json.dumps(body).encode()
    return topic_request(action, topic, suffix, parse, method=method, body=content, **more)


def create_topic(topic: str, partitions: int) -> Request[bool | None]:
    """Create a topic, with 0 partitions a topic that is not partitioned; None: it exists."""
    suffix, body = ("partitions", partitions) if partitions else ("", None)
    return _change("create", topic, "PUT", suffix, body=body, absent=_EXISTS)


def update_partitions(topic: str, partitions: int) -> Request[bool]:
    """Add partitions to a partitioned topic; the broker refuses to remove any."""
    return _change("change the partitions of", topic, "POST", "partitions", body=partitions)


def delete_topic(topic: str, *, partitioned: bool, force: bool) -> Request[bool | None]:
    """Delete a topic with all its data; None: it does not exist. `force`: even while clients are connected."""
    suffix = "partitions" if partitioned else ""
    return _change("delete", topic, "DELETE", suffix, params={"force": str(force).lower()}, absent=_ABSENT)


def terminate(topic: str) -> Request[EntryId]:
    """End a topic or partition for writers, and return its last entry, also if it was terminated before."""
    return _change("terminate", topic, "POST", "terminate", parse=EntryId.read)


def terminate_partitions(topic: str) -> Request[bool]:
    """The same for all partitions of a topic; the broker refuses it for a single one."""
    return _change("terminate", topic, "POST", "terminate/partitions")


def compact(topic: str) -> Request[bool | None]:
    """Start a compaction of a topic or partition; None: one is running."""
    return _change("compact", topic, "PUT", "compaction", absent=_RUNNING)


def offload(topic: str, up_to: EntryId) -> Request[bool | None]:
    """Start to move full ledgers before a position to long-term storage; None: an offload is running."""
    body = {"ledgerId": up_to.ledger, "entryId": up_to.entry, "partitionIndex": partition_of(topic)}
    return _change("offload", topic, "PUT", "offload", body=body, absent=_RUNNING)


def trim(topic: str) -> Request[bool]:
    """Remove now what neither retention nor a subscription keeps, instead of at the broker's next check."""
    return _change("trim", topic, "POST", "trim")


def set_retention(topic: str, retention: tuple[int, int] | None) -> Request[bool]:
    """Set a topic's own retention, minutes and megabytes (-1: without limit); None: return to its namespace's."""
    if retention is None:
        return _change("remove the retention of", topic, "DELETE", "retention")
    body = dict(zip(("retentionTimeInMinutes", "retentionSizeInMB"), retention, strict=True))
    return _change("set the retention of", topic, "POST", "retention", body=body)


# Subscriptions of a topic without partitions, or of one partition


def _subscription(action: str, topic: str, name: str, method: str, suffix: str = "", **more: Any) -> Request[Any]:
    # the broker decodes this part of the path twice: "+" would arrive as a blank
    path = f"subscription/{segment(quote_plus(name))}/{suffix}".rstrip("/")
    return _change(f"{action} subscription {name} of", topic, method, path, **more)


def _position(topic: str, at: EntryId, properties: Mapping[str, str]) -> dict[str, Any]:
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
    """Create a durable subscription whose first unread entry is `at`; None: it exists, at any place.

    Ask only for a topic that exists: the broker may create a missing one.
    """
    # the broker accepts properties only together with a position
    body = at if isinstance(at, str) else _position(topic, at, properties or {})
    return _subscription("create", topic, name, "PUT", body=body, absent=_EXISTS)


def set_subscription_properties(topic: str, name: str, properties: Mapping[str, str]) -> Request[bool]:
    """Replace a subscription's properties."""
    return _subscription("mark", topic, name, "PUT", "properties", body=dict(properties))


def move_subscription(topic: str, name: str, at: EntryId) -> Request[bool]:
    """Make `at` the first unread entry, forwards or backwards; the broker disconnects the consumers."""
    busy = ((412, "fenced"), (412, "busy"), (412, "concurrent"))
    return _subscription("move", topic, name, "POST", "resetcursor", body=_position(topic, at, {}), passing=busy)


def acknowledge_up_to(topic: str, name: str, last: EntryId) -> Request[bool]:
    """Count everything up to and including the entry `last` as read; never moves backwards."""
    return _subscription("acknowledge in", topic, name, "POST", "expireMessages", body=_position(topic, last, {}))


def drop_subscription(topic: str, name: str, *, force: bool = False) -> Request[bool | None]:
    """Remove a subscription; None: it does not exist. `force`: even while consumers are connected."""
    params = {"force": str(force).lower()}
    return _subscription("drop", topic, name, "DELETE", params=params, absent=_ABSENT)
