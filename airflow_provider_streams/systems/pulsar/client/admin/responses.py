"""Answers of the admin API as typed values, and how each is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import unquote_plus

from airflow_provider_streams.model.window.window import moment_of_ms
from airflow_provider_streams.systems.rest.response import Answer, reason
from airflow_provider_streams.systems.schemas import Compatibility

_FIRST_FAILURE = 400
"""The lowest HTTP status of a failure."""
_PREFIX = "x-pulsar-"


def _parse_time(text: str | None) -> datetime | None:
    """An aware time from the broker's ISO text, in any zone; raises ValueError for another text."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {text!r}")
    return moment


class EntryId(NamedTuple):
    """A ledger and the number of an entry in it. Entry -1 is the place before a ledger's first entry."""

    ledger: int
    entry: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `42:10`."""
        ledger, _, entry = text.partition(":")
        return cls(int(ledger), int(entry))

    @classmethod
    def read(cls, answer: Answer) -> Self:
        """From `{"ledgerId", "entryId"}`."""
        data = answer.json()
        return cls(data["ledgerId"], data["entryId"])

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}"


@dataclass(frozen=True, slots=True)
class Ledger:
    """One ledger of a topic, with what it holds now."""

    ledger: int
    entries: int
    bytes: int
    offloaded: bool = False


@dataclass(frozen=True, slots=True)
class InternalStats:
    """A topic's storage as its broker sees it. The open ledger carries its current counts."""

    ledgers: tuple[Ledger, ...]
    last_confirmed: EntryId
    """The last stored entry. It may name a ledger that is gone, and it is often not a message."""
    state: str
    last_ledger_created: datetime | None = None
    compacted_ledger: int | None = None
    cursors: Mapping[str, EntryId | None] = field(default_factory=dict)
    """The mark-delete position of each subscription: everything up to it is acknowledged."""

    @property
    def terminated(self) -> bool:
        """Nothing can be appended any more."""
        return self.state == "Terminated"

    @property
    def bytes(self) -> int:
        """Stored bytes of all ledgers."""
        return sum(ledger.bytes for ledger in self.ledgers)

    @classmethod
    def read_partitions(cls, answer: Answer) -> dict[str, Self]:
        """The body of `partitioned-internalStats`, by the partitions' full names."""
        return {shard: cls.of(data) for shard, data in (answer.json().get("partitions") or {}).items()}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """The body of `internalStats`."""
        rows = [
            Ledger(row["ledgerId"], max(row["entries"], 0), max(row["size"], 0), bool(row.get("offloaded")))
            for row in data["ledgers"]
        ]
        last = EntryId.parse(data["lastConfirmedEntry"])
        if rows and not rows[-1].entries and rows[-1].ledger == last.ledger:
            # Only the open ledger is listed with zeros, and its counts are given separately. While a ledger is being
            # closed, these are still the old one's. The place of the last entry says what the open ledger stores.
            rows[-1] = Ledger(rows[-1].ledger, last.entry + 1, data["currentLedgerSize"])
        compacted = (data.get("compactedLedger") or {}).get("ledgerId", -1)
        return cls(
            ledgers=tuple(rows),
            last_confirmed=last,
            state=data["state"],
            last_ledger_created=_parse_time(data.get("lastLedgerCreatedTimestamp")),
            compacted_ledger=None if compacted == -1 else compacted,
            # the broker encodes the names
            cursors={
                unquote_plus(name): _optional_entry(cursor.get("markDeletePosition"))
                for name, cursor in data.get("cursors", {}).items()
            },
        )


def _optional_entry(text: str | None) -> EntryId | None:
    return EntryId.parse(text) if text else None


@dataclass(frozen=True, slots=True)
class LedgerInfo:
    """One ledger in the metadata store."""

    ledger: int
    closed_ms: int | None
    """By the broker's clock; None: it is open."""


@dataclass(frozen=True, slots=True)
class InternalInfo:
    """A topic's storage as the metadata store has it."""

    version: int
    """How often this record changed: every new ledger, trim, offload or termination adds one."""
    created: datetime | None
    modified: datetime | None
    ledgers: tuple[LedgerInfo, ...]
    durable_cursors: frozenset[str] = frozenset()
    terminated: bool = False

    @classmethod
    def read_all(cls, topic: str, answer: Answer) -> dict[str, Self]:
        """The body of `internal-info` of all partitions, or of the topic itself, by their full names."""
        data = answer.json()
        return {shard: cls.of(one) for shard, one in data.get("partitions", {topic: data}).items()}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """From one topic's values."""
        return cls(
            version=data["version"],
            created=_parse_time(data.get("creationDate")),
            modified=_parse_time(data.get("modificationDate")),
            ledgers=tuple(
                # an open ledger has no counts, and its timestamp is the time of this request
                LedgerInfo(row["ledgerId"], row["timestamp"] if "entries" in row else None)
                for row in data.get("ledgers", ())
            ),
            durable_cursors=frozenset(unquote_plus(name) for name in data.get("cursors", ())),
            terminated="terminatedPosition" in data,
        )


@dataclass(frozen=True, slots=True)
class SubscriptionStats:
    """A subscription's backlog. `entries` are stored units, not messages: a batch counts once."""

    entries: int
    bytes: int | None
    oldest: datetime | None
    """Publish time of the oldest unacknowledged entry; None: there is none, or its time is in no calendar."""
    consumers: int
    durable: bool
    unacked_messages: int
    properties: Mapping[str, str] = field(default_factory=dict)
    """What its creator wrote on it."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """One value of `subscriptions` in `stats` and `partitioned-stats`."""
        size, oldest = data.get("backlogSize", -1), data.get("earliestMsgPublishTimeInBacklog", 0)
        return cls(
            entries=data.get("msgBacklog", 0),
            bytes=size if size >= 0 else None,
            oldest=moment_of_ms(oldest) if oldest > 0 else None,
            consumers=len(data.get("consumers", ())),
            durable=bool(data.get("isDurable", True)),
            unacked_messages=data.get("unackedMessages", 0),
            properties=dict(data.get("subscriptionProperties") or {}),
        )


@dataclass(frozen=True, slots=True)
class TopicStats:
    """A topic's counters. Those that end in `_in` count since its broker loaded the topic."""

    messages_in: int
    bytes_in: int
    storage_bytes: int
    backlog_bytes: int
    open_transactions: int
    subscriptions: Mapping[str, SubscriptionStats]

    @classmethod
    def read(cls, answer: Answer) -> Self:
        """The body of `stats` or `partitioned-stats`."""
        data = answer.json()
        return cls(
            messages_in=data.get("msgInCounter", 0),
            bytes_in=data.get("bytesInCounter", 0),
            storage_bytes=data.get("storageSize", 0),
            backlog_bytes=data.get("backlogSize", 0),
            open_transactions=data.get("ongoingTxnCount", 0),
            subscriptions={name: SubscriptionStats.of(row) for name, row in data.get("subscriptions", {}).items()},
        )


@dataclass(frozen=True, slots=True)
class Retention:
    """How long acknowledged data stays. None: without limit; zero: the broker removes it at once."""

    seconds: int | None
    bytes: int | None

    @property
    def unlimited(self) -> bool:
        """The broker never removes anything."""
        return self.seconds is None and self.bytes is None

    @classmethod
    def read(cls, answer: Answer) -> Self:
        """From `{"retentionTimeInMinutes", "retentionSizeInMB"}`; an empty body is the broker's zero default."""
        data = answer.json() if answer.body.strip() else {}
        minutes, megabytes = data.get("retentionTimeInMinutes", 0), data.get("retentionSizeInMB", 0)
        return cls(
            None if minutes < 0 else minutes * 60,
            None if megabytes < 0 else megabytes * 1024 * 1024,
        )


@dataclass(frozen=True, slots=True)
class BacklogQuota:
    """The limit of unacknowledged data, and what happens at the limit."""

    limit_bytes: int | None
    limit_seconds: int | None
    policy: str

    @property
    def evicts(self) -> bool:
        """The broker drops data of slow subscriptions, including holds, at the limit."""
        return self.policy == "consumer_backlog_eviction"

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """One value of a backlog quota map."""
        size, seconds = data.get("limitSize", data.get("limit", -1)), data.get("limitTime", -1)
        return cls(size if size > 0 else None, seconds if seconds > 0 else None, data.get("policy", ""))


@dataclass(frozen=True, slots=True)
class TransactionBuffer:
    """A topic's transactions."""

    max_read: EntryId | None
    """Entries after it wait for an open transaction."""

    @classmethod
    def read(cls, answer: Answer) -> Self:
        """The body of `transactionBufferStats`."""
        return cls(_optional_entry(answer.json().get("maxReadPosition")))


@dataclass(frozen=True, slots=True)
class Process:
    """A background process of a broker: a compaction or an offload."""

    status: Literal["NOT_RUN", "RUNNING", "SUCCESS", "ERROR"]
    error: str = ""

    @classmethod
    def read(cls, answer: Answer) -> Self:
        """From `{"status", "lastError"}`."""
        data = answer.json()
        return cls(data["status"], data.get("lastError") or "")


@dataclass(frozen=True, slots=True)
class SlowTransaction:
    """A transaction that has been open for long."""

    id: str
    opened: datetime
    topics: frozenset[str]
    """Full names of the topics and partitions it wrote to."""

    @classmethod
    def read_all(cls, answer: Answer) -> tuple[Self, ...]:
        """The body of `slowTransactions`, a map by id."""
        return tuple(
            cls(
                name,
                datetime.fromtimestamp(data["openTimestamp"] / 1000, UTC),
                frozenset(data.get("producedPartitions") or ()),
            )
            for name, data in answer.json().items()
        )


@dataclass(frozen=True, slots=True)
class PeekedEntry:
    """What the headers of an entry say, for entries that no reader is sent."""

    publish_time: datetime | None = None
    marker_type: int | None = None
    """Set on entries that the broker wrote for itself: transaction ends and replication snapshots."""
    aborted: bool = False
    """Part of a transaction that was aborted."""

    @classmethod
    def read(cls, answer: Answer) -> Self:
        """The headers of `ledger/../entry/..`."""
        marker = answer.headers.get(f"{_PREFIX}marker-type")
        return cls(
            _parse_time(answer.headers.get(f"{_PREFIX}publish-time")),
            int(marker) if marker else None,
            answer.headers.get(f"{_PREFIX}txn-aborted", "").lower() == "true",
        )


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """One version of a topic's schema. `data` is text whose form depends on `type`; clients write the properties."""

    version: int
    type: str
    data: str
    properties: Mapping[str, str] = field(default_factory=dict)
    timestamp_ms: int = 0

    @classmethod
    def read_all(cls, answer: Answer) -> tuple[Self, ...]:
        """The body `{"getSchemaResponses": [..]}`."""
        return tuple(map(cls.of, answer.json()["getSchemaResponses"]))

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """One value of the body."""
        texts = {str(name): str(value) for name, value in (data.get("properties") or {}).items()}
        return cls(int(data["version"]), str(data["type"]), data.get("data") or "", texts, data.get("timestamp") or 0)


def read_compatibility(answer: Answer) -> Compatibility:
    """The broker answers with a failure and a reason where a schema does not fit."""
    if answer.status >= _FIRST_FAILURE:
        return Compatibility(compatible=False, reason=reason(answer))
    data = answer.json()
    return Compatibility(bool(data["compatibility"]), data.get("schemaCompatibilityStrategy") or "")
