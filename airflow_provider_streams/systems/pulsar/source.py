"""Topics of one Pulsar cluster, and the names that they can have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from airflow_provider_streams.errors import InvalidName, InvalidRequest, InvalidSchema
from airflow_provider_streams.model.payload import Payload, PayloadLike, Registry, payload_from
from airflow_provider_streams.model.selection import Selection, joined_slots, key_texts
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
        value: what the messages' values are: `"auto"` (by the topic's schema), `Json(..)`, `Avro(..)`, `Protobuf(..)`,
            `Utf8()` or `Bytes()`; None: they are not decoded.
        key: the same of their keys.
        partitions: of each topic only these partitions.
        keys: only messages with one of these keys land. All are read; the others are counted as filtered.
        key_hash_ranges: the same of messages whose keys' hashes are in one of these ranges, `(first, last)` of 0 to
            65535, both included: 31 bits of Murmur3 (32 bits, seed 0), modulo 65536, of the ordering key, or else the
            key. Messages without any have the hash 0.

    Raises:
        InvalidName: a topic that is not persistent, or not a topic's name.
        InvalidRequest: neither topics nor a pattern, or both; or what chooses no message.
        InvalidSchema: values or keys that cannot be decoded so.
    """

    system: ClassVar[str] = "pulsar"

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    conn_id: str = "pulsar_default"
    value: Payload | None = None
    key_payload: Payload | None = field(default=None, metadata={"argument": "key"})
    partitions: tuple[int, ...] = ()
    """Empty: all."""
    keys: tuple[str, ...] = ()
    """Empty: all."""
    key_hash_ranges: tuple[tuple[int, int], ...] = ()
    """Empty: all."""

    def __init__(
        self,
        topics: str | Iterable[str] = (),
        *,
        pattern: str | None = None,
        conn_id: str = "pulsar_default",
        value: PayloadLike | None = None,
        key: PayloadLike | None = None,
        partitions: Iterable[int] = (),
        keys: str | Iterable[str] = (),
        key_hash_ranges: Iterable[tuple[int, int]] = (),
    ) -> None:
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        if bool(names) == bool(pattern):
            raise InvalidRequest("PulsarSource takes topics or a pattern, one of them")
        object.__setattr__(self, "topics", tuple(dict.fromkeys(full_topic_name(name) for name in names)))
        object.__setattr__(self, "pattern", full_topic_pattern(pattern) if pattern else None)
        object.__setattr__(self, "conn_id", conn_id)
        object.__setattr__(self, "value", _payload(value))
        object.__setattr__(self, "key_payload", _payload(key))
        object.__setattr__(self, "partitions", _partitions(self.topics, partitions))
        object.__setattr__(self, "keys", key_texts(keys))
        object.__setattr__(self, "key_hash_ranges", joined_slots(key_hash_ranges))
        _ = self.selection  # refuses what chooses in two ways

    def __str__(self) -> str:
        numbers = f" (partitions {', '.join(map(str, self.partitions))})" if self.partitions else ""
        chosen = f" ({self.selection})" if self.selection else ""
        return f"{self.pattern or ', '.join(self.topics)}{numbers}{chosen}"

    def only(self, topic: str) -> PulsarSource:
        """One of its topics, read as it is."""
        return PulsarSource(
            topic,
            conn_id=self.conn_id,
            value=self.value,
            key=self.key_payload,
            partitions=self.partitions,
            keys=self.keys,
            key_hash_ranges=self.key_hash_ranges,
        )

    @property
    def selection(self) -> Selection | None:
        """Which keys are chosen; None: all.

        Raises:
            InvalidRequest: keys and ranges of their hashes, or ranges that there are not.
        """
        if not self.keys and not self.key_hash_ranges:
            return None
        return Selection(tuple(key.encode() for key in self.keys), self.key_hash_ranges)

    @property
    def key(self) -> str:
        """`pulsar:<connection>:[partitions:<numbers>:][keys:<them>:]` and the sorted full names, or `pattern:<it>`."""
        numbers = f"partitions:{','.join(map(str, self.partitions))}:" if self.partitions else ""
        chosen = f"{self.selection.text}:" if self.selection else ""
        names = f"pattern:{self.pattern}" if self.pattern else ",".join(sorted(self.topics))
        return f"pulsar:{self.conn_id}:{numbers}{chosen}{names}"

    @property
    def asset_uri(self) -> str:
        """`pulsar://<connection>/<tenant>/<namespace>/<topic>` of the first topic, or of the pattern."""
        name = self.pattern or self.topics[0]
        return f"pulsar://{self.conn_id}/{in_uri(name.removeprefix('persistent://'))}"


def _partitions(topics: Iterable[str], given: Iterable[int]) -> tuple[int, ...]:
    found = tuple(sorted(set(given)))
    if any(isinstance(one, bool) or not isinstance(one, int) or one < 0 for one in found):
        raise InvalidRequest(f"partitions are numbers from 0 on, got {found}")
    if found and any(_PARTITION.search(topic) for topic in topics):
        raise InvalidRequest("name topics, or single partitions of them: not both")
    return found


def _payload(given: PayloadLike | None) -> Payload | None:
    payload = payload_from(given)
    if isinstance(payload, Registry):
        raise InvalidSchema("Registry", "a Pulsar topic has schemas of its own", "Write value='auto'.")
    return payload


_PARTITION = re.compile(r"-partition-\d+$")
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
