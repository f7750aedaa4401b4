"""Rows and their entries to Arrow columns."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow.arrays import Array, booleans, listed, numbers
from airflow_provider_streams.systems.pulsar.client.protobuf import Malformed, write_varint
from airflow_provider_streams.systems.pulsar.reading.decode import arrays
from airflow_provider_streams.systems.pulsar.reading.decode.columns import COLUMNS, TIMESTAMP
from airflow_provider_streams.systems.pulsar.reading.decode.entry import BadEntry, Entry, Group
from airflow_provider_streams.systems.pulsar.reading.decode.headers.single_header import Tag
from airflow_provider_streams.systems.pulsar.reading.decode.rows import Rows
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import Flags, Ints

MESSAGE_COLUMNS: Final = frozenset(
    {"value", "key", "event_time", "properties", "ordering_key", "key_bytes", "sequence_id"}
)
"""The columns that a message's own header and value decide."""
SHORT_TEXT: Final = 64
"""A longer text, in bytes, is not repeated for each row without checking its total size."""

_LATEST_MS: Final = (1 << 63) // 1000 - 1
"""The last millisecond that a timestamp column (microseconds) can hold; its negative is the first."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where each row comes from: its entry (by number) and its batch index (-1: none)."""

    group: Group
    partition: int
    owner: Ints
    index: Ints

    def column(self, name: str) -> Array:
        """A column that the entry and the place in it decide."""
        return _ORIGIN_COLUMNS[name](self)

    def each(self, values: Sequence[int]) -> Ints:
        """One value per entry, for each of its rows."""
        return np.array(values, np.int64)[self.owner]

    def times(self, column: str, millis: Ints, known: Flags | None = None) -> Array:
        """A timestamp (from ms) per row; raises `BadEntry` if a timestamp cannot hold one."""
        beyond = np.flatnonzero((millis > _LATEST_MS) | (millis < -_LATEST_MS))
        if len(beyond):
            row, found = beyond[0], int(millis[beyond[0]])
            message = f"message {index} of its batch" if (index := int(self.index[row])) >= 0 else "its message"
            why = f"{message} has the {column} {found} ms, which no timestamp can hold (columns without it can be read)"
            raise BadEntry(self.group.entries[self.owner[row]], Malformed(why))
        return numbers(TIMESTAMP, millis * 1000, known)

    def each_time(self, column: str, values: Sequence[int]) -> Array:
        """One time (ms) per entry, for each of its rows; raises as `times`."""
        millis = np.array(values, np.int64)
        if ((millis > _LATEST_MS) | (millis < -_LATEST_MS)).any():
            return self.times(column, millis[self.owner])  # an entry without a row may have such a time
        return numbers(TIMESTAMP, (millis * 1000)[self.owner])

    def each_text(self, kind: pa.DataType, values: Sequence[bytes | None]) -> Array:
        """One text per entry, for each of its rows."""
        if len(set(values)) == 1 and len(values[0] or b"") <= SHORT_TEXT:
            return arrays.repeated(kind, values[0], len(self.owner))
        return arrays.taken(kind, values, self.owner)


def message_columns(rows: Rows, data: bytes | memoryview, origin: Origin, *, views: bool = False) -> dict[str, Array]:
    """The value, and the other `MESSAGE_COLUMNS` that `rows` has room for; `views`: values stay in `data`."""
    taken = arrays.views if views else partial(arrays.binary, pa.binary())
    columns = {"value": taken(data, rows.value_start, rows.value_end, ~rows.flags[Tag.NULL_VALUE])}
    columns |= key_columns(rows, data)
    if (times := rows.numbers.get(Tag.EVENT_TIME)) is not None:
        columns["event_time"] = origin.times("event_time", times, times != 0)
    if Tag.SEQUENCE_ID in rows.numbers:
        columns["sequence_id"] = numbers(pa.int64(), rows.numbers[Tag.SEQUENCE_ID], rows.flags[Tag.SEQUENCE_ID])
    if (found := rows.properties) is not None:
        names = arrays.binary(pa.string(), data, found.name_start, found.name_end)
        values = arrays.binary(pa.string(), data, found.value_start, found.value_end)
        columns["properties"] = arrays.maps(np.bincount(found.row, minlength=len(rows)), names, values)
    return columns


def key_columns(rows: Rows, data: bytes | memoryview) -> dict[str, Array]:
    """The keys of rows, as far as `rows` has room for them."""
    columns: dict[str, Array] = {}
    stored = {
        tag: arrays.binary(pa.binary(), data, starts, ends, starts >= 0) for tag, (starts, ends) in rows.spans.items()
    }
    if Tag.KEY in stored:
        columns["key"] = arrays.text(stored[Tag.KEY])
        if Tag.KEY_BASE64 in rows.flags:
            columns["key_bytes"] = _given_keys(stored[Tag.KEY], rows.flags[Tag.KEY_BASE64])
    if Tag.ORDERING_KEY in stored:
        columns["ordering_key"] = stored[Tag.ORDERING_KEY]
    return columns


def _given_keys(stored: Array, flagged: Flags) -> Array:
    """Keys as their producers gave them. A key that is flagged as base64 text but is not stays as stored."""
    encoded = np.flatnonzero(flagged)
    if not len(encoded):
        return stored
    given = [_of_base64(key) for key in stored.take(numbers(pa.int64(), encoded)).to_pylist()]
    keys: Array = pc.replace_with_mask(stored, booleans(flagged), listed(given))
    return keys


def _of_base64(key: bytes | None) -> bytes | None:
    try:
        return key and base64.b64decode(key, validate=True)
    except ValueError:
        return key


def absent_columns(count: int, columns: Collection[str]) -> dict[str, Array]:
    """The `MESSAGE_COLUMNS` among `columns`, except the value, of messages that set none of them."""
    found = {name: arrays.absent(COLUMNS[name], count) for name in MESSAGE_COLUMNS & set(columns) - {"value"}}
    if "properties" in found:
        nothing = listed([]).cast(pa.string())
        found["properties"] = arrays.maps(np.zeros(count, np.int64), nothing, nothing)
    return found


def _broker(origin: Origin, part: int) -> tuple[Ints, Flags] | None:
    """What the broker noted of each row, its time (0) or its index (1), and whether it did; None: of no row."""
    noted = [None if entry.broker is None else entry.broker[part] for entry in origin.group.entries]
    if noted.count(None) == len(noted):
        return None
    return origin.each([value or 0 for value in noted]), origin.each([value is not None for value in noted]) != 0


def _broker_times(origin: Origin) -> Array:
    noted = _broker(origin, 0)
    return origin.times("broker_time", *noted) if noted else arrays.absent(TIMESTAMP, len(origin.owner))


def _broker_indexes(origin: Origin) -> Array:
    """Each message's own index, as Java's `Message.getIndex`: the broker notes the index of a batch's last message."""
    noted = _broker(origin, 1)
    if noted is None:
        return arrays.absent(pa.int64(), len(origin.owner))
    last, known = noted
    in_batch = origin.index >= 0
    after = np.where(in_batch, origin.group.messages[origin.owner] - 1 - origin.index, 0)
    return numbers(pa.int64(), last - after, known)


def _message_ids(origin: Origin) -> Array:
    """Serialized MessageIdData, with the same bytes as from Pulsar's clients."""
    places = [_place_id(entry.ledger, entry.entry, origin.partition) for entry in origin.group.entries]
    entry_part = origin.each_text(pa.binary(), places)
    index_part = arrays.taken(pa.binary(), *_index_texts(origin.index))
    tails = origin.each_text(pa.binary(), [_id_tail(entry, origin.partition) for entry in origin.group.entries])
    nothing = arrays.taken(pa.binary(), [b""], np.zeros(len(origin.owner), np.int64))  # a plain b"" imports pandas
    return pc.binary_join_element_wise(entry_part, index_part, tails, nothing)


def _index_texts(index: Ints) -> tuple[Sequence[bytes], Ints]:
    """The batch index as part of a message id, once for each index, and which of them each row has."""
    most = int(index.max(initial=0))
    if most <= len(index):
        known, places = np.arange(-1, most + 1), index + 1
    else:  # few messages of huge batches: compaction took the others out
        known, places = np.unique(index, return_inverse=True)
    return [b"\x20" + write_varint(each) if each >= 0 else b"" for each in known.tolist()], places


def _place_id(ledger: int, entry: int, partition: int) -> bytes:
    place = b"\x18" + write_varint(partition) if partition >= 0 else b""
    return b"\x08" + write_varint(ledger) + b"\x10" + write_varint(entry) + place


def _id_tail(entry: Entry, partition: int) -> bytes:
    if entry.metadata.num_messages is not None:
        return b"\x30" + write_varint(entry.metadata.num_messages)
    if entry.first_chunk is None:
        return b""
    first = _place_id(*entry.first_chunk, partition)
    return b"\x3a" + write_varint(len(first)) + first


_ORIGIN_COLUMNS: Mapping[str, Callable[[Origin], Array]] = {
    "publish_time": lambda o: o.each_time("publish_time", [m.publish_ms for m in o.group.metadata]),
    "ledger": lambda o: numbers(pa.int64(), o.group.ledgers[o.owner]),
    "entry": lambda o: numbers(pa.int64(), o.group.numbers[o.owner]),
    "batch_index": lambda o: numbers(pa.int32(), o.index.astype(np.int32)),
    "producer": lambda o: o.each_text(pa.string(), [m.producer for m in o.group.metadata]),
    "schema_version": lambda o: o.each_text(pa.binary(), [m.schema_version for m in o.group.metadata]),
    "replicated_from": lambda o: o.each_text(pa.string(), [m.replicated_from for m in o.group.metadata]),
    "broker_time": _broker_times,
    "broker_index": _broker_indexes,
    "message_id": _message_ids,
}
