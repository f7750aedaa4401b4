"""Topics of one Pulsar cluster, and their valid names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from airflow_provider_streams.errors import InvalidName, InvalidRequest, InvalidSchema
from airflow_provider_streams.model.asset_uri_length import short_uri
from airflow_provider_streams.model.parse_time_value import ParseTimeValue, takes_field_names
from airflow_provider_streams.model.schema.change_payload import ChangePayload
from airflow_provider_streams.model.schema.payload import Payload, PayloadLike, Registry, payload_from
from airflow_provider_streams.model.sinks.templates import is_template
from airflow_provider_streams.model.stream.key_selection import Selection, joined_slots, key_texts
from airflow_provider_streams.model.stream.source import Source, in_uri
from airflow_provider_streams.model.text_arguments import check_conn_id, check_optional_names, several, several_names


@dataclass(frozen=True, slots=True)
class PulsarSource(ParseTimeValue):
    """Topics of one Pulsar cluster.

    Args:
        topics: a topic or several: `orders` (public/default), `shop/orders/events`,
            `persistent://shop/orders/events`, or one partition, `..-partition-3`.
        pattern: instead of topics, a regular expression that full topic names must match as a whole, for
            example `persistent://shop/orders/.*`; resolved when a window is planned, and recorded in the plan.
            Tenant and namespace must be plain text.
        conn_id: the Airflow connection.
        value: what the messages' values are: `"auto"` (by the topic's schema), `Json(..)`, `Avro(..)`, `Protobuf(..)`,
            `Utf8()` or `Bytes()`; changes of a database: `Debezium()`, `Canal()` or `Maxwell()`; None: they are not
            decoded.
        key: the same for their keys.
        partitions: only these partitions of each topic.
        keys: only messages with one of these keys become rows. All are read; the others count as filtered.
        key_hash_ranges: the same for messages whose keys' hashes are in one of these ranges, `(first, last)` of 0 to
            65535, both included. The hash is 31 bits of Murmur3 (32 bits, seed 0), modulo 65536, of the ordering key,
            or else of the key. Messages without a key have the hash 0.

    Raises:
        InvalidName: a topic that is not persistent, or an invalid name.
        InvalidRequest: neither topics nor a pattern, or both; or a choice that no message can meet.
        InvalidSchema: a payload that a topic cannot have.
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

    @takes_field_names
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
        owner = type(self).__name__
        names = several_names(owner, "topics", topics)
        check_optional_names(owner, pattern=pattern)
        check_conn_id(owner, conn_id)
        if bool(names) == bool(pattern):
            raise InvalidRequest("PulsarSource takes topics or a pattern, one of them")
        full_names = tuple(dict.fromkeys(full_topic_name(name) for name in names))
        values = {
            "topics": full_names,
            "pattern": full_topic_pattern(pattern) if pattern else None,
            "conn_id": conn_id,
            "value": _payload(value),
            "key_payload": _key_payload(value, key),
            "partitions": _partitions(full_names, several(owner, "partitions", partitions)),
            "keys": key_texts(owner, "keys", keys),
            "key_hash_ranges": joined_slots(several(owner, "key_hash_ranges", key_hash_ranges)),
        }
        for name, given in values.items():
            object.__setattr__(self, name, given)
        _ = self.selection  # refuses a choice by both keys and hashes

    def __str__(self) -> str:
        numbers = f" (partitions {', '.join(map(str, self.partitions))})" if self.partitions else ""
        chosen = f" ({self.selection})" if self.selection else ""
        return f"{self.pattern or ', '.join(self.topics)}{numbers}{chosen}"

    def only(self, topic: str) -> PulsarSource:
        """One of its topics as a source, with the same choices."""
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
            InvalidRequest: both keys and ranges of hashes, or an impossible range.
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
        """`pulsar://<connection>/<tenant>/<namespace>/<topic>`; of several topics all, or the pattern."""
        names = [self.pattern] if self.pattern else sorted(self.topics)
        path = ",".join(name.removeprefix("persistent://") for name in names)
        return short_uri(f"pulsar://{self.conn_id}/{in_uri(path)}")


def pulsar_source(source: Source) -> PulsarSource:
    """The source, if it is one of Pulsar; raises `InvalidRequest` for any other."""
    if not isinstance(source, PulsarSource):
        raise InvalidRequest(f"{source} is not a Pulsar source")
    return source


def _partitions(topics: Iterable[str], given: tuple[object, ...]) -> tuple[int, ...]:
    numbers = [one for one in given if isinstance(one, int) and not isinstance(one, bool) and one >= 0]
    if len(numbers) < len(given):
        raise InvalidRequest(f"partitions are numbers from 0 on, got {given!r:.100}")
    found = tuple(sorted(set(numbers)))
    if found and any(_PARTITION.search(topic) for topic in topics):
        raise InvalidRequest("name topics, or single partitions of them: not both")
    return found


def _payload(given: PayloadLike | None, field: str = "value") -> Payload | None:
    payload = payload_from(given, field)
    if isinstance(payload, Registry):
        raise InvalidSchema("Registry", "a Pulsar topic has schemas of its own", "Write value='auto'.")
    return payload


def _key_payload(value: PayloadLike | None, given: PayloadLike | None) -> Payload | None:
    payload = _payload(given, "key")
    if isinstance(payload, ChangePayload):
        raise InvalidSchema(f"key={payload.format}", "only values are changes", "Leave it out, or write Utf8().")
    if payload is not None and isinstance(payload_from(value), ChangePayload):
        reason = "the keys of changes are columns of their rows"
        raise InvalidSchema(f"key={payload.format}", reason, "Leave it out.")
    return payload


_PARTITION = re.compile(r"-partition-\d+\Z")
_DOMAIN = re.compile(r"^(?P<domain>[a-z-]+)://")
_PART = re.compile(r"[-=:.\w]+")
_REFUSED = {
    "non-persistent": "its messages are not stored, so a window of it cannot be read",
    "topic": "it is a Pulsar 5 scalable topic, whose segments this version does not read",
}


def full_topic_name(name: str) -> str:
    """`persistent://tenant/namespace/topic` for a full name or one of Pulsar's shorthands.

    Raises:
        InvalidName: another domain, or a wrong number of parts. A template is checked after it is rendered.
    """
    if is_template(name):
        return name
    parts = _parts(name)
    if not parts or set("/\r\n") & set(parts[2]) or not parts[2].strip():
        raise InvalidName(name, "write it as 'topic', 'tenant/namespace/topic' or 'persistent://..'")
    return f"persistent://{'/'.join(parts)}"


def full_topic_pattern(pattern: str) -> str:
    """The pattern with its domain, tenant and namespace.

    Raises:
        InvalidName: not a regular expression, another domain, or a tenant or namespace that is not plain text.
    """
    if is_template(pattern):
        return pattern
    parts = _parts(pattern)
    if not parts:
        raise InvalidName(pattern, "tenant and namespace of a pattern must be plain text")
    full = f"persistent://{'/'.join(parts)}"
    try:
        re.compile(full)
    except re.error as error:
        raise InvalidName(pattern, f"not a regular expression: {error}") from error
    return full


def _parts(name: str) -> list[str]:
    """Tenant, namespace and the rest of a full name or a shorthand; empty: it has no such parts."""
    domain = _DOMAIN.match(name)
    if domain and domain["domain"] != "persistent":
        raise InvalidName(name, _REFUSED.get(domain["domain"], "only persistent:// topics can be read"))
    parts = name.removeprefix("persistent://").split("/", 2)
    if len(parts) == 1 and not domain:
        parts = ["public", "default", *parts]
    return parts if len(parts) == 3 and all(map(_PART.fullmatch, parts[:2])) else []  # noqa: PLR2004
