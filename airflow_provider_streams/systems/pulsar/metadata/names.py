"""Topic names: partitions and their parents, REST paths, patterns. `source.py` refuses invalid names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

_PARTITION = re.compile(r"^(?P<parent>.+)-partition-(?P<number>0|[1-9]\d*)$")
_DOMAIN = "persistent://"
_SYSTEM_PREFIX = "__"


def partition_name(parent: str, number: int) -> str:
    """The full name of one partition of a partitioned topic."""
    return f"{parent}-partition-{number}"


def parent_of(topic: str) -> str:
    """The partitioned topic of a partition; any other topic is its own parent."""
    match = _PARTITION.match(topic)
    return match["parent"] if match else topic


def partition_of(topic: str) -> int:
    """The number of a partition, -1 for any other topic. As in the broker, `x-partition-01` is a plain topic."""
    match = _PARTITION.match(topic)
    return int(match["number"]) if match else -1


def namespace_of(topic: str) -> str:
    """`tenant/namespace` of a full topic name or pattern."""
    tenant, namespace, _ = topic.removeprefix(_DOMAIN).split("/", 2)
    return f"{tenant}/{namespace}"


def rest_path(topic: str) -> str:
    """`persistent/tenant/namespace/topic` of a full topic name, its last part percent-encoded as a whole."""
    tenant, namespace, local = topic.removeprefix(_DOMAIN).split("/", 2)
    return f"persistent/{segment(tenant)}/{segment(namespace)}/{segment(local)}"


def segment(text: str) -> str:
    """One part of a URL's path, percent-encoded, also its slashes."""
    return quote(text, safe="")


def parents(topics: Iterable[str]) -> tuple[str, ...]:
    """Each topic once, with parents in place of partitions, sorted."""
    return tuple(sorted({parent_of(topic) for topic in topics}))


def matching(pattern: str, topics: Iterable[str]) -> tuple[str, ...]:
    """The parents whose full name matches as a whole, sorted, without the broker's own topics (`__..`)."""
    expression = re.compile(pattern)
    return tuple(
        topic
        for topic in parents(topics)
        if not topic.rpartition("/")[2].startswith(_SYSTEM_PREFIX) and expression.fullmatch(topic)
    )
