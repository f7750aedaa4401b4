"""Places in a stream and in a source's log as text of fixed width, so that texts compare as the places do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags
from airflow_provider_streams.formats.change_data.values import text_columns

WIDTH: Final = 20
"""Digits of a number of 64 bits."""


def stream_positions(parts: Sequence[Array]) -> Array:
    """The `_position` of rows: Pulsar's ledger, entry and batch index, or Pravega's segment and offset.

    Pravega's segment ids have the epoch in their high bits: a key that moves to a new segment has a greater one there.
    A missing batch index, or a negative one, counts as 0: its entry holds one message.

    Args:
        parts: integers, of which the first decides.
    """
    return padded([_unsigned(one) for one in parts])


def padded(parts: Sequence[npt.NDArray[np.uint64]], valid: Flags | None = None) -> Array:
    """Numbers as decimal digits of fixed width, with a dot between them.

    Args:
        parts: unsigned numbers, of which the first decides.
        valid: which rows have a place; others are null.
    """
    count = len(parts[0])
    width = WIDTH * len(parts) + len(parts) - 1
    letters = np.full((count, width), ord("."), np.uint8)
    for place, numbers in enumerate(parts):
        left = numbers.copy()
        for column in range(place * (WIDTH + 1) + WIDTH - 1, place * (WIDTH + 1) - 1, -1):
            left, digit = np.divmod(left, _TEN)
            letters[:, column] = digit + ord("0")
    offsets = np.arange(count + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(
        pa.string(), count, [arrays.bitmap(valid), arrays.buffer(offsets), arrays.buffer(letters.reshape(-1))]
    )


def _unsigned(values: Array) -> npt.NDArray[np.uint64]:
    numbers = arrays.number_values(values).astype(np.int64)
    return np.where(arrays.valid_flags(values), np.maximum(numbers, 0), 0).astype(np.uint64)


Fields = Mapping[str, Array]
"""Fields of `source`, by name."""


def log_positions(fields: Fields, count: int) -> Array:
    """The `_log_position` of rows: what the connector says of the source's log, null where there is no such place."""
    for names, make in _KNOWN:
        if all(name in fields and fields[name].null_count < count for name in names):
            return make(fields)
    return arrays.nulls(pa.string(), count)


def _number(fields: Fields, name: str) -> Array:
    """A field as whole numbers; null: it is none."""
    values = fields.get(name)
    if values is None:
        return arrays.nulls(pa.int64(), len(next(iter(fields.values()))))
    if pa.types.is_string(values.type):
        values = text_columns.only(values, text_columns.matches(values, "^[0-9]{1,18}$"))
    found: Array = values.cast(pa.int64())
    return found


def _postgres(fields: Fields) -> Array:
    lsn = _number(fields, "lsn")
    return padded([_unsigned(lsn)], arrays.valid_flags(lsn))


def _mysql(fields: Fields) -> Array:
    """The number of the binlog file: its name is not comparable, as `.1000000` comes after `.999999`."""
    file = text_columns.replaced(fields["file"], r"^.*\.([0-9]+)$", r"\1")
    number = _number({**fields, "file": file}, "file")
    valid = arrays.valid_flags(number) & arrays.valid_flags(fields["pos"])
    return padded([_unsigned(number), *(_unsigned(_number(fields, name)) for name in ("pos", "row"))], valid)


def _sql_server(fields: Fields) -> Array:
    """Both are hexadecimal texts of fixed width. A snapshot's rows have no place of their own: zeros."""
    commit = _of_shape(fields["commit_lsn"], _LSN)
    change = _of_shape(fields.get("change_lsn", arrays.nulls(pa.string(), len(commit))), _LSN)
    change = text_columns.or_text(change, _NO_LSN)
    serial = padded([_unsigned(_number(fields, "event_serial_no"))])
    return _joined(commit, change, serial)


def _oracle(fields: Fields) -> Array:
    """The SCN, and within it the redo record and its statement."""
    scn = _number(fields, "scn")
    none = arrays.nulls(pa.string(), len(scn))
    record = text_columns.replaced(fields.get("rs_id", none), r"^\s*0x([0-9a-fA-F.]+)\s*$", r"\1")
    record = text_columns.or_text(_of_shape(record, _RS_ID), _NO_RS_ID)
    valid = arrays.valid_flags(scn)
    return _joined(padded([_unsigned(scn)], valid), record, padded([_unsigned(_number(fields, "ssn"))]))


def _mongodb(fields: Fields) -> Array:
    seconds = _number(fields, "ts_ms")
    return padded([_unsigned(seconds), _unsigned(_number(fields, "ord"))], arrays.valid_flags(seconds))


def _of_shape(values: Array, pattern: str) -> Array:
    return text_columns.lower(text_columns.only(values, text_columns.matches(values, pattern)))


def _joined(*parts: Array) -> Array:
    return text_columns.joined(parts, ".")


_TEN: Final = np.uint64(10)
_LSN: Final = "^[0-9a-fA-F]{8}:[0-9a-fA-F]{8}:[0-9a-fA-F]{4}$"
_NO_LSN: Final = "00000000:00000000:0000"
_RS_ID: Final = r"^[0-9a-fA-F]{6}\.[0-9a-fA-F]{8}\.[0-9a-fA-F]{4}$"
_NO_RS_ID: Final = "000000.00000000.0000"
_KNOWN: Final[Sequence[tuple[tuple[str, ...], Callable[[Fields], Array]]]] = (
    (("lsn",), _postgres),
    (("file", "pos"), _mysql),
    (("commit_lsn",), _sql_server),
    (("scn",), _oracle),
    (("ord", "ts_ms"), _mongodb),
)
"""By the fields that a connector has. A batch is of one connector."""
