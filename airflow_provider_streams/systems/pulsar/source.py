"""Topics of one Pulsar cluster, and the names that they can have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_streams.errors import InvalidName, InvalidRequest
from airflow_provider_streams.model.source import in_uri


@dataclass(frozen=True, slots=True)
class PulsarSource:
    """Topics of one Pulsar cluster.

    Args:
        topics: a topic or several: `orders` (public/default), `shop/orders/events`,
            `persistent://shop/orders/events`, or one partition, `..-partition-3`.
        pattern: instead of topics, a regular expression that full topic names must match as a whole, for
            example `persistent://shop/orders/.*`; resolved when a window is planned, and recorded in the plan.
            Tenant and namespace must be plain text.
        conn_id: the Airflow connection.

    Raises:
        InvalidName: a topic that is not persistent, or not a topic's name.
        InvalidRequest: neither topics nor a pattern, or both.
    """

    system: ClassVar[str] = "pulsar"

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    conn_id: str = "pulsar_default"

    def __init__(
        self, topics: str | Iterable[str] = (), *, pattern: str | None = None, conn_id: str = "pulsar_default"
    ) -> None:
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        if bool(names) == bool(pattern):
            raise InvalidRequest("PulsarSource takes topics or a pattern, one of them")
        object.__setattr__(self, "topics", tuple(dict.fromkeys(full_topic_name(name) for name in names)))
        object.__setattr__(self, "pattern", full_topic_pattern(pattern) if pattern else None)
        object.__setattr__(self, "conn_id", conn_id)

    def __str__(self) -> str:
        return self.pattern or ", ".join(self.topics)

    @property
    def key(self) -> str:
        """`pulsar:<connection>:<sorted full names>`, or `pulsar:<connection>:pattern:<pattern>`."""
        return f"pulsar:{self.conn_id}:{f'pattern:{self.pattern}' if self.pattern else ','.join(sorted(self.topics))}"

    @property
    def asset_uri(self) -> str:
        """`pulsar://<connection>/<tenant>/<namespace>/<topic>` of the first topic, or of the pattern."""
        name = self.pattern or self.topics[0]
        return f"pulsar://{self.conn_id}/{in_uri(name.removeprefix('persistent://'))}"


_DOMAIN = re.compile(r"^(?P<domain>[a-z-]+)://")
_PART = re.compile(r"^[-=:.\w]+$")
_REFUSED = {
    "non-persistent": "its messages are not stored, so a window of it cannot be read",
    "topic": "it is a Pulsar 5 scalable topic, whose segments this version does not read",
}


def full_topic_name(name: str) -> str:
    """`persistent://tenant/namespace/topic` for a full name or one of Pulsar's shorthands.

    Raises:
        InvalidName: another domain, or not 1 or 3 parts.
    """
    domain = _DOMAIN.match(name)
    if domain and domain["domain"] != "persistent":
        raise InvalidName(name, _REFUSED.get(domain["domain"], "only persistent:// topics can be read"))
    parts = name.removeprefix("persistent://").split("/")
    if len(parts) == 1 and not domain:
        parts = ["public", "default", *parts]
    if len(parts) != 3 or not all(map(_PART.match, parts[:2])) or not parts[2].strip():  # noqa: PLR2004
        raise InvalidName(name, "write it as 'topic', 'tenant/namespace/topic' or 'persistent://..'")
    return f"persistent://{'/'.join(parts)}"


def full_topic_pattern(pattern: str) -> str:
    """The pattern with its domain, tenant and namespace.

    Raises:
        InvalidName: not a regular expression, another domain, or a tenant or namespace that is not plain text.
    """
    domain = _DOMAIN.match(pattern)
    if domain and domain["domain"] != "persistent":
        raise InvalidName(pattern, _REFUSED.get(domain["domain"], "only persistent:// topics can be read"))
    parts = pattern.removeprefix("persistent://").split("/", 2)
    if len(parts) == 1 and not domain:
        parts = ["public", "default", *parts]
    if len(parts) != 3 or not all(map(_PART.match, parts[:2])):  # noqa: PLR2004
        raise InvalidName(pattern, "tenant and namespace of a pattern must be plain text")
    full = f"persistent://{'/'.join(parts)}"
    try:
        re.compile(full)
    except re.error as error:
        raise InvalidName(pattern, f"not a regular expression: {error}") from error
    return full
