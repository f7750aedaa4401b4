"""Messages inside an entry as the admin API hands it out: its body decompressed, a batch as a whole."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from airflow_provider_streams.systems.pulsar.admin.answers import Answer
from airflow_provider_streams.systems.pulsar.admin.peek import PeekedEntry

_LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Message:
    """One message."""

    batch_index: int
    """-1: not in a batch."""
    key: str | None
    value: bytes | None
    """None: it has none (a tombstone)."""

    def to_json(self, longest: int) -> dict[str, Any]:
        """Plain JSON values: the value as `text` where it is UTF-8, else as `base64`, and left out over a size."""
        shown: dict[str, Any] = {"batch_index": self.batch_index, "key": self.key}
        if self.value is None or len(self.value) > longest:
            return {**shown, "bytes": None if self.value is None else len(self.value)}
        try:
            return {**shown, "text": self.value.decode("utf-8")}
        except UnicodeDecodeError:
            return {**shown, "base64": base64.b64encode(self.value).decode("ascii")}


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """An entry with its messages: none, where it holds none that can be shown (encrypted, a part of a large one)."""

    peeked: PeekedEntry
    messages: tuple[Message, ...] = ()

    @classmethod
    def read(cls, answer: Answer) -> Self:
        """From the answer of `ledger/../entry/..`.

        Raises:
            ValueError: its body is not what its headers say.
        """
        peeked = PeekedEntry.read(answer)
        hidden = peeked.encrypted or peeked.chunk or peeked.aborted or peeked.marker_type is not None
        if hidden or peeked.uncommitted:
            return cls(peeked)
        if peeked.num_messages is not None:
            return cls(peeked, tuple(_batch(answer.body, peeked.num_messages)))
        value = None if answer.headers.get("x-pulsar-null-value", "").lower() == "true" else answer.body
        return cls(peeked, (Message(-1, answer.headers.get("x-pulsar-partition-key"), value),))


def _batch(body: bytes, count: int) -> Iterator[Message]:
    # its package loads Arrow: who calls this in an event loop has imported it in a thread before
    from airflow_provider_streams.systems.pulsar.protobuf import (  # noqa: PLC0415
        as_bytes,
        as_flag,
        as_uint,
        collect,
    )

    single = {2: ("key", as_bytes), 3: ("size", as_uint), 9: ("null", as_flag)}
    at = 0
    for index in range(count):
        try:
            (length,) = _LENGTH.unpack_from(body, at)
            at += _LENGTH.size
            header = collect(body, at, at + length, single)
        except (struct.error, ValueError) as error:
            raise ValueError(f"message {index} of a batch of {count}: {error}") from error
        at += length
        end = at + header["size"]
        key = header.get("key")
        yield Message(
            index, None if key is None else key.decode("utf-8", "replace"), None if header.get("null") else body[at:end]
        )
        at = end
