"""One stored entry, looked at through the admin API: its headers say what the wire never delivers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from airflow_provider_streams.systems.pulsar.admin.answers import EntryId, parse_time
from airflow_provider_streams.systems.rest.answer import Answer

_PREFIX = "x-pulsar-"


@dataclass(frozen=True, slots=True)
class Chunk:
    """An entry that is one part of a larger message."""

    uuid: str
    number: int
    count: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class PeekedEntry:
    """What an entry is. Its payload is left out."""

    id: EntryId | None
    publish_time: datetime | None = None
    num_messages: int | None = None
    """Messages in the batch; None: not a batch."""
    marker_type: int | None = None
    """Set on what the broker wrote for itself (transaction ends, replication snapshots): no message."""
    aborted: bool = False
    """Part of a transaction that was aborted: never delivered."""
    uncommitted: bool = False
    """Behind, or part of, a transaction that is still open: not deliverable yet."""
    chunk: Chunk | None = None
    broker_time: datetime | None = None
    broker_index: int | None = None
    """Index of the entry's last message, where the broker keeps count."""
    encrypted: bool = False

    @classmethod
    def read(cls, answer: Answer) -> Self:
        """From the headers of `ledger/../entry/..` and `examinemessage`."""
        headers = {
            name.removeprefix(_PREFIX): value for name, value in answer.headers.items() if name.startswith(_PREFIX)
        }
        marker, aborted = _number(headers.get("marker-type")), _flag(headers.get("txn-aborted"))
        # newer brokers say of each entry whether it can be delivered; what never will be is not waited for
        waiting = headers.get("txn-consumable") == "false" and not aborted and marker is None
        return cls(
            id=EntryId.parse(headers["message-id"]) if "message-id" in headers else None,
            publish_time=parse_time(headers.get("publish-time")),
            num_messages=_number(headers.get("num-batch-message")),
            marker_type=marker,
            aborted=aborted,
            uncommitted=_flag(headers.get("txn-uncommitted")) or waiting,
            chunk=_chunk(headers),
            broker_time=parse_time(headers.get("broker-entry-metadata-timestamp")),
            broker_index=_number(headers.get("broker-entry-metadata-index")),
            encrypted=_flag(headers.get("is-encrypted")),
        )


def _chunk(headers: dict[str, str]) -> Chunk | None:
    count = _number(headers.get("num-chunks-from-msg"))
    if not count or "uuid" not in headers:
        return None
    return Chunk(
        headers["uuid"],
        _number(headers.get("chunk-id")) or 0,
        count,
        _number(headers.get("total-chunk-msg-size")) or 0,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _flag(text: str | None) -> bool:
    return (text or "").lower() == "true"
