"""Many JSON objects at once, by Arrow's reader, which reads a block as a whole or not at all.

Each object is a line that begins with `{` and ends with `}`. No object can continue in the next line, since `{` may not
follow `}`, and no line can be without one. If there are as many rows as lines, each line was one object.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags, Ints
from airflow_provider_streams.formats.arrow.arrow_types import SIMPLE, arrow_type
from airflow_provider_streams.formats.arrow.decimals import beyond
from airflow_provider_streams.formats.arrow.times import Scale, scale_of
from airflow_provider_streams.formats.json.converters import time_of_day
from airflow_provider_streams.formats.json.json_parser import MOST_DEPTH, openers
from airflow_provider_streams.formats.json.unmatched_keys import Unmatched
from airflow_provider_streams.model.schema.type_table import TIMES
from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, Field, MapOf, Simple, StructOf, Type, leaves

_Others: TypeAlias = Literal["error", "ignore"]
"""What Arrow does with keys without a column."""


class NotRead(Exception):  # callers catch it, and read the block another way
    """A block that holds something other than rows that Arrow reads by our rules."""


class BlockReader:
    """Reads lines of objects as structs.

    Args:
        type_: the type of the rows, for which `can_read` is true.
        unmatched: counts the objects with keys without a column.
        strict: whether a block with such an object is refused.
    """

    def __init__(self, type_: StructOf, unmatched: Unmatched, *, strict: bool = False) -> None:
        self._type, self._unmatched, self._strict = type_, unmatched, strict
        self._has_others = False
        self._odd = _ODD_NUMBERS if any(isinstance(one, Decimal) for one in leaves(type_)) else None
        schema = pa.schema(list(_stored(type_)))  # type: ignore[call-overload]  # of a struct
        self._options = {
            others: pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others)
            for others in get_args(_Others)
        }

    def usual(self, payloads: Array) -> Flags:
        """Which payloads may be lines of a block: not those that Arrow reads by other rules than ours."""
        data, starts, ends = arrays.span_ends(payloads)
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
        """Rows with a word that only Arrow knows, or a number that is not safe with Arrow."""
        patterns = [_ODD_WORDS] if _may_hold_odd_words(raw) else []
        patterns += [self._odd] if self._odd else []
        places = [place.start() for pattern in patterns for place in pattern.finditer(raw)]
        return np.searchsorted(starts, np.array(places, np.int64), "right") - 1

    def read(self, payloads: Array) -> Array:
        """The rows. Raises NotRead if some payload is no such row; Arrow does not say which one."""
        lines = _joined(payloads)
        table = self._table(lines)
        if table.num_rows != len(payloads):
            raise NotRead
        columns = [
            column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks) for column in table.columns
        ]
        rows = _struct(self._type, cast("list[Array]", columns), None, len(payloads))
        self._unmatched.fill(rows)
        if self._has_others and self._unmatched.is_open:
            self._unmatched.add_lines(arrays.memory(lines, np.uint8), rows)
        return rows

    def _table(self, lines: pa.Buffer) -> pa.Table:
        """The columns of the lines' keys. If there are no other keys, this check costs nothing."""
        if self._strict or not self._has_others:
            try:
                return self._parsed(lines, "error")
            except NotRead as error:
                if self._strict or _UNEXPECTED not in str(error.__cause__):
                    raise
        table = self._parsed(lines, "ignore")
        self._has_others = True
        return table

    def _parsed(self, lines: pa.Buffer, others: _Others) -> pa.Table:
        options = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        try:
            return pj.read_json(pa.BufferReader(lines), options, self._options[others])  # type: ignore[arg-type]  # it reads such files
        except (pa.ArrowException, ValueError) as error:
            raise NotRead from error


def can_read(type_: Type) -> bool:
    """Whether Arrow reads it: it has no maps, no text that is something else in JSON, and no key of several fields."""
    match type_:
        case MapOf() | Simple(form="number" | "json"):
            return False
        case ArrayOf(element):
            return can_read(element)
        case StructOf(fields):
            keys = [key for field in fields for key in field.in_objects]
            return len(set(keys)) == len(keys) and all(can_read(field.type) for field in fields)
    return True


def _joined(payloads: Array) -> pa.Buffer:
    """The payloads as lines."""
    raw = arrays.held_bytes(payloads)
    if b"\n" in raw or b"\r" in raw:
        # white space in JSON, or inside a text, where neither line ends nor tabs may stand
        return pa.py_buffer(b"\n".join([payload.translate(_TABS) for payload in arrays.python_bytes(payloads)]))
    rows = arrays.lists(pa.list_(pa.binary()), np.array([len(payloads)]), payloads)
    lines = cast("Array", pc.binary_join(rows, _LINE_END))
    held = lines.buffers()[2]
    return held.slice(0, int(arrays.offsets_of(lines)[-1])) if held is not None else pa.py_buffer(b"")


def _may_hold_odd_words(raw: bytes) -> bool:
    """Whether `_ODD_WORDS` may match."""
    if b"\0" in raw:
        return True
    if b"N" not in raw and b"I" not in raw:
        return False
    data = np.frombuffer(raw, np.uint8)
    ends = ((data[:-2] == ord("N")) & (data[2:] == ord("N"))) | ((data[:-2] == ord("I")) & (data[2:] == ord("f")))
    return bool(ends.any())


def _stored(type_: Type) -> pa.DataType:
    """What Arrow reads, before it becomes the column."""
    match type_:
        case Simple(word, unit) if word in TIMES:
            return pa.string() if unit is None else pa.int64()
        case Simple("binary"):
            return pa.string()
        case ArrayOf(element):
            return cast("pa.DataType", pa.list_(pa.field("element", _stored(element))))
        case StructOf():
            return pa.struct([pa.field(key, _stored(one.type)) for key, one in _keys(type_)])
    return arrow_type(type_)


def _keys(type_: StructOf) -> list[tuple[str, Field]]:
    """The fields by their keys in objects. Second keys come last."""
    first = [(one.in_objects[0], one) for one in type_.fields]
    return first + [(key, one) for one in type_.fields for key in one.in_objects[1:]]


def _column(type_: Type, values: Array) -> Array:
    match type_:
        case StructOf():
            columns = [cast("pa.StructArray", values).field(place) for place in range(len(_keys(type_)))]
            return _struct(type_, columns, values, len(values))
        case ArrayOf(element):
            items = _column(element, cast("pa.ListArray[Any]", values).values)
            return arrays.lists_like(values, arrow_type(type_), items)
        case Simple(word, unit) if word in TIMES:
            return text_times(type_, values) if unit is None else counted_times(type_, values)
        case Simple("binary"):
            return _from_base64(values)
        case Simple("float" | "double"):
            if np.isinf(arrays.number_values(values)).any():
                raise NotRead
        case Decimal(precision):
            if (beyond(values, precision) & arrays.valid_flags(values)).any():
                raise NotRead  # Arrow counts one digit in `1e2`
    return values


def _struct(type_: StructOf, columns: list[Array], around: Array | None, count: int) -> Array:
    valid = np.ones(count, np.bool_) if around is None else arrays.valid_flags(around)
    if len(columns) > len(type_.fields):
        columns = _of_second_keys(type_, columns)
    for one, column in zip(type_.fields, columns, strict=True):
        if not one.nullable and column.null_count and (valid & ~arrays.valid_flags(column)).any():
            raise NotRead
    made = [_column(one.type, column) for one, column in zip(type_.fields, columns, strict=True)]
    mask = None if valid.all() else arrays.booleans(~valid)
    array: Array = pa.StructArray.from_arrays(made, fields=list(cast("pa.StructType", arrow_type(type_))), mask=mask)
    return array


def _of_second_keys(type_: StructOf, columns: list[Array]) -> list[Array]:
    """One column for each field: fields with several keys join theirs."""
    found = columns[: len(type_.fields)]
    for (_, field), column in zip(_keys(type_)[len(found) :], columns[len(found) :], strict=True):
        place = type_.fields.index(field)
        if (arrays.valid_flags(found[place]) & arrays.valid_flags(column)).any():
            raise NotRead  # an object with both
        found[place] = pc.coalesce(found[place], column)
    return found


def text_times(type_: Simple, values: Array) -> Array:
    """The column of times that are texts. Raises NotRead if a text is no time, or Arrow does not read it."""
    try:
        if type_.word == "time":
            counts = [None if text is None else time_of_day(text) for text in values.to_pylist()]
            return pa.array(counts, SIMPLE["time"])
        column: Array = values.cast(SIMPLE[type_.word])
    except (pa.ArrowInvalid, ValueError) as error:
        raise NotRead from error
    if (scale_of(Simple(type_.word)).outside(arrays.number_values(column)) & arrays.valid_flags(column)).any():
        raise NotRead
    return column


def counted_times(type_: Simple, values: Array) -> Array:
    """The column of times that are numbers of a unit. Raises NotRead if a number is outside the column's times."""
    scale = Scale.of(type_.word, type_.unit or "us")
    valid = arrays.valid_flags(values)
    counts = np.where(valid, arrays.number_values(values), 0)
    if scale.outside(counts).any():
        raise NotRead
    return arrays.time_numbers(SIMPLE[type_.word], scale.column(counts), valid)


def _from_base64(values: Array) -> Array:
    try:
        found = [None if text is None else base64.b64decode(text, validate=True) for text in values.to_pylist()]
    except ValueError as error:
        raise NotRead from error
    return pa.array(found, pa.binary())


_UNEXPECTED: Final = "unexpected field"
"""What Arrow says of a key without a column."""
_LEAST: Final = 2
_LINE_END: Final = arrays.listed([b"\n"])[0]  # a plain b"\n" imports pandas
_TABS: Final = bytes.maketrans(b"\n\r", b"\t\t")
_OPEN, _CLOSE = ord("{"), ord("}")
_ODD_WORDS: Final = re.compile(rb"NaN|Inf|\0")
"""Arrow knows more words for numbers that are not finite, and ends at a NUL."""
_ODD_NUMBERS: Final = re.compile(rb"[0-9]{30}|[0-9.][eE]|\\u")
"""They are not safe as decimals: Arrow reads 1e-77 as 0.00, and 1e-999999999 ends the process."""
