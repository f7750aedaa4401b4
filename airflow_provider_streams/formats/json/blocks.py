"""Many JSON objects at once, by Arrow's reader: a block is read as a whole, or not at all.

Each object is a line. A line begins with `{` and ends with `}`: so no object can go on in the next line, as behind `}`
no `{` may follow, and no line can be without one. As many rows as lines: each line was one object.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from airflow_provider_streams.formats.arrays import (
    Array,
    Bytes,
    Flags,
    Ints,
    booleans,
    held_bytes,
    listed,
    lists,
    number_values,
    numbers,
    offsets_of,
    python_bytes,
    span_ends,
    valid_flags,
)
from airflow_provider_streams.formats.arrow_types import SIMPLE, arrow_type
from airflow_provider_streams.formats.decimals import beyond
from airflow_provider_streams.formats.json.rows import MOST_DEPTH, time_of_day
from airflow_provider_streams.formats.times import Scale, scale_of
from airflow_provider_streams.model.row_type import TIMES, ArrayOf, Decimal, MapOf, Simple, StructOf, Type, leaves


class NotRead(Exception):  # caught by those who call: the block is read another way
    """A block that holds something else than rows that Arrow reads by our rules."""


class BlockReader:
    """Reads lines of objects as structs.

    Args:
        type_: of the rows; `can_read` says whether it is one for blocks.
    """

    def __init__(self, type_: StructOf) -> None:
        self._type = type_
        self._odd = _ODD_NUMBERS if any(isinstance(one, Decimal) for one in leaves(type_)) else None
        schema = pa.schema([pa.field(one.name, _stored(one.type)) for one in type_.fields])
        self._options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")

    def usual(self, payloads: Array) -> Flags:
        """Which payloads may be lines of a block: what Arrow reads by other rules than ours is not among them."""
        data, starts, ends = span_ends(payloads)
        found = ends - starts >= _LEAST
        if not found.any():
            return found
        found &= (data.take(starts, mode="clip") == _OPEN) & (data.take(ends - 1, mode="clip") == _CLOSE)
        held, starts = data[starts[0] : ends[-1]], starts - starts[0]
        if len(odd := self._odd_rows(held.tobytes(), starts)):
            found[odd] = False
        if len(held) > 2 * MOST_DEPTH:
            found &= openers(held, starts) <= MOST_DEPTH
        return found

    def _odd_rows(self, raw: bytes, starts: Ints) -> Ints:
        """Rows that hold a word that Arrow knows and we do not, or a number that is not safe with it."""
        patterns = [_ODD_WORDS] if _may_hold_odd_words(raw) else []
        patterns += [self._odd] if self._odd else []
        places = [place.start() for pattern in patterns for place in pattern.finditer(raw)]
        return np.searchsorted(starts, np.array(places, np.int64), "right") - 1

    def read(self, payloads: Array) -> Array:
        """The rows.

        Raises:
            NotRead: otherwise; which of them is the reason, nobody knows.
        """
        count = len(payloads)
        lines = _joined(payloads)
        options = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        try:
            table = pj.read_json(pa.BufferReader(lines), options, self._options)  # type: ignore[arg-type]  # it reads such files
        except (pa.ArrowException, ValueError) as error:
            raise NotRead from error
        if table.num_rows != count:
            raise NotRead
        columns = [_one(column) for column in table.columns]
        return _struct(self._type, columns, None, count)


def can_read(type_: Type) -> bool:
    """Whether Arrow reads it: a struct without maps."""

    def inner(one: Type) -> bool:
        match one:
            case MapOf():
                return False
            case ArrayOf(element):
                return inner(element)
            case StructOf(fields):
                return all(inner(field.type) for field in fields)
        return True

    return isinstance(type_, StructOf) and inner(type_)


def _joined(payloads: Array) -> pa.Buffer:
    """The payloads as lines."""
    raw = held_bytes(payloads)
    if b"\n" in raw or b"\r" in raw:
        # white space in JSON, or inside a text, where neither line ends nor tabs may stand
        return pa.py_buffer(b"\n".join([payload.translate(_TABS) for payload in python_bytes(payloads)]))
    rows = lists(pa.list_(pa.binary()), np.array([len(payloads)]), payloads)
    lines = cast("Array", pc.binary_join(rows, _LINE_END))
    held = lines.buffers()[2]
    return held.slice(0, int(offsets_of(lines)[-1])) if held is not None else pa.py_buffer(b"")


def _may_hold_odd_words(raw: bytes) -> bool:
    """Whether any of them may be there."""
    if b"\0" in raw:
        return True
    if b"N" not in raw and b"I" not in raw:
        return False
    data = np.frombuffer(raw, np.uint8)
    ends = ((data[:-2] == ord("N")) & (data[2:] == ord("N"))) | ((data[:-2] == ord("I")) & (data[2:] == ord("f")))
    return bool(ends.any())


def openers(data: Bytes, starts: Ints) -> Ints:
    """How many brackets each span opens: the spans begin at these places, one behind the other."""
    places = np.flatnonzero((data & _WITHOUT_CASE) == _OPEN_ARRAY)
    return np.diff(np.append(np.searchsorted(places, starts), len(places)))


def _stored(type_: Type) -> pa.DataType:
    """What Arrow reads, of which the column is made."""
    match type_:
        case Simple(word, unit) if word in TIMES:
            return pa.string() if unit is None else pa.int64()
        case Simple("binary"):
            return pa.string()
        case ArrayOf(element):
            return cast("pa.DataType", pa.list_(pa.field("element", _stored(element))))
        case StructOf(fields):
            return pa.struct([pa.field(one.name, _stored(one.type)) for one in fields])
    return arrow_type(type_)


def _column(type_: Type, values: Array) -> Array:
    match type_:
        case StructOf(fields):
            columns = [cast("pa.StructArray", values).field(place) for place in range(len(fields))]
            return _struct(type_, columns, values, len(values))
        case ArrayOf(element):
            found = cast("pa.ListArray[Any]", values)
            items = _column(element, found.values)
            buffers = values.buffers()[:2]
            return pa.Array.from_buffers(
                arrow_type(type_), len(values), list(buffers), offset=values.offset, children=[items]
            )
        case Simple(word, unit) if word in TIMES:
            return text_times(type_, values) if unit is None else counted_times(type_, values)
        case Simple("binary"):
            return _decoded(values)
        case Simple("float" | "double"):
            if np.isinf(number_values(values)).any():
                raise NotRead
        case Decimal(precision):
            if (beyond(values, precision) & valid_flags(values)).any():
                raise NotRead  # of `1e2`, Arrow counts one digit
        case _:
            pass
    return values


def _struct(type_: StructOf, columns: list[Array], around: Array | None, count: int) -> Array:
    valid = np.ones(count, np.bool_) if around is None else valid_flags(around)
    for one, column in zip(type_.fields, columns, strict=True):
        if not one.nullable and column.null_count and (valid & ~valid_flags(column)).any():
            raise NotRead
    made = [_column(one.type, column) for one, column in zip(type_.fields, columns, strict=True)]
    array: Array = pa.StructArray.from_arrays(
        made, fields=list(cast("pa.StructType", arrow_type(type_))), mask=None if valid.all() else booleans(~valid)
    )
    return array


def text_times(type_: Simple, values: Array) -> Array:
    """The column of texts of times.

    Raises:
        NotRead: one of them is none, or none that Arrow reads.
    """
    try:
        if type_.word == "time":
            counts = [None if text is None else time_of_day(text) for text in values.to_pylist()]
            return pa.array(counts, SIMPLE["time"])
        column: Array = values.cast(SIMPLE[type_.word])
    except (pa.ArrowInvalid, ValueError) as error:
        raise NotRead from error
    if (scale_of(Simple(type_.word)).outside(number_values(column)) & valid_flags(column)).any():
        raise NotRead
    return column


def counted_times(type_: Simple, values: Array) -> Array:
    """The column of times that are numbers of a unit.

    Raises:
        NotRead: one of them is outside.
    """
    scale = Scale.of(type_.word, type_.unit or "us")
    valid = valid_flags(values)
    counts = np.where(valid, number_values(values), 0)
    if scale.outside(counts).any():
        raise NotRead
    kind = SIMPLE[type_.word]
    return numbers(kind, scale.column(counts).astype(np.dtype(f"i{kind.bit_width // 8}")), valid)


def _decoded(values: Array) -> Array:
    try:
        found = [None if text is None else base64.b64decode(text, validate=True) for text in values.to_pylist()]
    except ValueError as error:
        raise NotRead from error
    return pa.array(found, pa.binary())


def _one(column: pa.ChunkedArray[Any]) -> Array:
    found = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    return cast("Array", found)


_LEAST: Final = 2
_LINE_END: Final = listed([b"\n"])[0]  # a plain b"\n" imports pandas
_TABS: Final = bytes.maketrans(b"\n\r", b"\t\t")
_OPEN, _CLOSE, _OPEN_ARRAY = ord("{"), ord("}"), ord("[")
_WITHOUT_CASE: Final = np.uint8(0xDF)
"""A bit tells both kinds of brackets apart, as it does capital letters and others."""
_ODD_WORDS: Final = re.compile(rb"NaN|Inf|\0")
"""Arrow knows more words for numbers that are not finite, and ends at a NUL."""
_ODD_NUMBERS: Final = re.compile(rb"[0-9]{30}|[0-9.][eE]|\\u")
"""As decimals they are not safe with Arrow: it takes 1e-77 for 0.00, and 1e-999999999 ends the process."""
