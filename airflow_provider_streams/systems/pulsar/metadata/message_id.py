"""How users write a message id: `ledger:entry[:partition:batch index]`, base64 of Pulsar's own form, or JSON.

To Pulsar's clients, three numbers are a partition's id; in plans, they are a place within a batch. Where these differ,
the user must say which is meant.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, ProtocolError
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.metadata.names import partition_of

_COLONS = re.compile(r"-?\d+(:-?\d+){1,3}")
_AMBIGUOUS = re.compile(r"(-?\d+:-?\d+):(\d+)")
_AFTER = re.compile(r"after\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WrittenId:
    """A message id as the user wrote it; -1 or 0: not said."""

    ledger: int
    entry: int
    partition: int = -1
    batch_index: int = -1
    batch_size: int = 0

    @property
    def position(self) -> Position:
        """At the message."""
        return Position.of(self.ledger, self.entry, self.batch_index)

    @property
    def next_position(self) -> Position:
        """Just after the message; after the last of a batch, where the batch's size is known, the next entry."""
        if self.batch_index < 0 or 0 < self.batch_size <= self.batch_index + 1:
            return Position.of(self.ledger, self.entry + 1, -1)
        return Position.of(self.ledger, self.entry, self.batch_index + 1)


def parse_position(text: str, shard: str) -> Position:
    """The position that a user's text names in a shard: at the message, or with `after <id>` just after it.

    Raises:
        InvalidRequest: no known notation, one that may mean two places, or an id of another partition.
    """
    stripped, is_after = _AFTER.subn("", text.strip(), count=1)
    if found := _AMBIGUOUS.fullmatch(stripped):
        entry, number = found.groups()
        raise InvalidRequest(
            f"{text!r} for {shard} may be an entry of partition {number}, or message {number} of an entry's batch: "
            f"write {entry}:{number}:-1 for the first, {entry}:-1:{number} for the second"
        )
    try:
        written = _parse_id(stripped)
    except (ValueError, KeyError, TypeError, ProtocolError) as error:
        raise InvalidRequest(
            f"{text!r} is not a message id for {shard}: write ledger:entry[:partition:batch index], the base64 text "
            "of a serialized id, or its JSON; 'after <id>' is the place after that message"
        ) from error
    if written.partition >= 0 and written.partition != partition_of(shard):
        raise InvalidRequest(f"{text!r} names partition {written.partition}, which {shard} is not")
    return written.next_position if is_after else written.position


def _parse_id(text: str) -> WrittenId:
    if _COLONS.fullmatch(text):
        return WrittenId(*map(int, text.split(":")))
    if text.startswith("{"):
        data = json.loads(text)
        return WrittenId(
            int(data["ledgerId"]),
            int(data["entryId"]),
            int(data.get("partitionIndex", -1)),
            int(data.get("batchIndex", -1)),
            int(data.get("batchSize", 0)),
        )
    return _parse_message_id_data(_decode_base64(text))


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _parse_message_id_data(data: bytes) -> WrittenId:
    from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2  # noqa: PLC0415 - only this form needs it
    from airflow_provider_streams.systems.pulsar.client.wire.commands import parse  # noqa: PLC0415

    found = parse(commands_pb2.MessageIdData, data)
    if not (found.HasField("ledgerId") and found.HasField("entryId")):
        raise ValueError("a serialized message id has a ledger and an entry")
    return WrittenId(found.ledgerId, found.entryId, found.partition, found.batch_index, found.batch_size)
