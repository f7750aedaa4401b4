"""Placeholders of values that a database did not log, such as unchanged TOAST of Postgres.

The connector writes its placeholder as the column's type allows: as text, as base64 of the text, as the text's bytes in
an array of numbers, as the only element of an array or a map, as a map in JSON, or as a UUID made of the text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags
from airflow_provider_streams.formats.change_data.row_types.column_meanings import Meaning


class Placeholder:
    """Finds the places of one placeholder.

    Args:
        text: the connector's `unavailable.value.placeholder`.
    """

    def __init__(self, text: str) -> None:
        raw = text.encode()
        encoded = base64.b64encode(raw).decode()
        digest = bytearray(hashlib.md5(raw, usedforsecurity=False).digest())  # as Java's UUID.nameUUIDFromBytes
        made = str(uuid.UUID(bytes=bytes(digest), version=3))
        in_json = json.dumps({text: text}, separators=(",", ":"), ensure_ascii=False)
        self._raw = arrays.listed([raw])
        self._texts = arrays.texts([text, encoded, in_json, made])
        self._key = text
        self._numbers = [float(byte - 256 if byte > _MOST_BYTE else byte) for byte in raw]
        self._lengths = {len(self._numbers), len(text)}
        self._points = [float(ord(one)) for one in text]

    def rows(self, meaning: Meaning, values: Array) -> Flags:  # noqa: PLR0911  # one for each shape
        """Which values of a column are the placeholder.

        Args:
            meaning: of the column.
            values: as the messages have them.
        """
        if values.null_count == len(values):
            return np.zeros(len(values), np.bool_)
        kind = values.type
        if pa.types.is_string(kind):
            return _are_in(values, self._texts)
        if pa.types.is_binary(kind):
            return _are_in(values, self._raw)
        if pa.types.is_map(kind):
            return self._maps(cast("pa.MapArray[Any, Any]", values))
        if pa.types.is_list(kind):
            return self._lists(meaning, cast("pa.ListArray[Any]", values))
        if meaning.how == "geometry":
            return _are_in(pc.struct_field(values, "wkb"), self._texts)
        return np.zeros(len(values), np.bool_)

    def _lists(self, meaning: Meaning, values: pa.ListArray[Any]) -> Flags:
        offsets = arrays.offsets_of(values)
        lengths, items = np.diff(offsets), values.values
        found = np.zeros(len(values), np.bool_)
        there = arrays.valid_flags(values)
        if pa.types.is_integer(items.type) or pa.types.is_floating(items.type):
            for row in np.flatnonzero(there & np.isin(lengths, list(self._lengths))):
                held = items.slice(int(offsets[row]), int(lengths[row]))
                found[row] = not held.null_count and held.to_pylist() in (self._numbers, self._points)
            return found
        single = np.flatnonzero(there & (lengths == 1))
        if len(single):
            element = meaning.parts[0] if meaning.parts else meaning
            found[single] = self.rows(element, items.take(arrays.numbers(pa.int64(), offsets[single])))
        return found

    def _maps(self, values: pa.MapArray[Any, Any]) -> Flags:
        offsets = arrays.offsets_of(values)
        single = np.flatnonzero(arrays.valid_flags(values) & (np.diff(offsets) == 1))
        found = np.zeros(len(values), np.bool_)
        if len(single):
            keys = values.keys.take(arrays.numbers(pa.int64(), offsets[single]))
            found[single] = _are_in(keys, arrays.texts([self._key]))
        return found


def _are_in(values: Array, known: Array) -> Flags:
    found: Flags = pc.is_in(values, value_set=known).to_numpy(zero_copy_only=False)
    return found


def names_of(columns: dict[str, Flags], count: int) -> Array:
    """The lists of the names of columns that are marked in each row."""
    kind = pa.list_(pa.field("element", pa.string()))
    marked = {name: rows for name, rows in columns.items() if rows.any()}
    if not marked:
        return arrays.lists(kind, np.zeros(count, np.int64), arrays.nulls(pa.string(), 0))
    places = np.stack(list(marked.values()), axis=1)
    which = np.nonzero(places)[1]
    names = arrays.texts(list(marked)).take(arrays.numbers(pa.int64(), which))
    return arrays.lists(kind, places.sum(axis=1), names)


_MOST_BYTE = 127
