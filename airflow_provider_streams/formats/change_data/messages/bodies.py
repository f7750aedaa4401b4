"""Reads messages' JSON in blocks by a layout. It also finds columns that a plan does not have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array
from airflow_provider_streams.formats.change_data.messages.layouts import INSIDE, Layout, has_documents, is_metadata
from airflow_provider_streams.formats.change_data.row_types.column_meanings import TEXT
from airflow_provider_streams.formats.change_data.row_types.json_types import is_shown_by, shown_type, takes_others
from airflow_provider_streams.formats.change_data.row_types.mysql_types import mysql_type
from airflow_provider_streams.formats.change_data.values import text_columns
from airflow_provider_streams.formats.decode_failures import GOOD, Causes, Codes, Column
from airflow_provider_streams.formats.json.block_reader import BlockReader
from airflow_provider_streams.formats.json.jackson import Number
from airflow_provider_streams.formats.json.reader import JsonReader
from airflow_provider_streams.formats.json.unmatched_keys import Unmatched
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.type_json import to_json
from airflow_provider_streams.model.schema.types import StructOf, Type

_MOST_DIGITS = 1_000
"""Of whole numbers: Python refuses to make one of more than 4,300 digits, and takes long for many."""
OTHER_FIELDS = "has a field, or a type of value in one, that messages like it do not have"


class BodyReader(JsonReader):
    """Reads messages of one layout.

    Args:
        layout: how they are written.
        images: the fields that hold rows; none: the message is the row.
        causes: numbers the causes.
    """

    def __init__(self, layout: Layout, images: tuple[str, ...], causes: Causes) -> None:
        schema = json.dumps(to_json(layout.wire), separators=(",", ":"))
        super().__init__(WriterSchema("json", schema), Causes().below(""))
        self._causes = causes
        self._unmatched = Unmatched(StructOf(()))  # not counted here
        self._layout, self._images = layout, images
        self._row_names = layout.row_names
        self._names = frozenset(one.name for one in layout.wire.fields)
        self._inside = {
            one.name: frozenset(inner.name for inner in one.type.fields)
            for one in layout.wire.fields
            if one.name in INSIDE and isinstance(one.type, StructOf)
        }
        own = set(images) or layout.row_names
        self._loose = {
            one.name: one.type
            for one in layout.wire.fields
            if not layout.has_schema and one.name not in own and takes_others(one.type)
        }
        if self._loose:
            self._blocks = None
        if self._blocks is not None:
            self._blocks = BlockReader(layout.wire, self._unmatched, strict=not layout.has_schema)
        self._unlike = causes.code(OTHER_FIELDS)
        self.unplanned: dict[str, Type] = {}
        """The types of columns that the layout does not have, by name."""

    def read(self, payloads: Array) -> Column:
        """As `JsonReader`, but messages that another layout must read have a cause."""
        if not self._layout.numbers:
            return super().read(payloads)
        texts = arrays.as_text(payloads) if not arrays.not_utf8(payloads).any() else None
        if texts is None:
            return super().read(payloads)
        other = text_columns.matches(texts, self._layout.numbers)
        if not other.any():
            return super().read(payloads)
        rows = np.flatnonzero(~other)
        column = super().read(arrays.at_rows(payloads, rows))
        codes = np.full(len(payloads), self._unlike, np.int16)
        codes[rows] = column.codes
        return Column(arrays.spread(column.values, rows, len(payloads)), codes)

    def _parsed(self, texts: list[bytes], plain: list[bool], rows: arrays.Ints, codes: Codes) -> list[Any]:
        values = super()._parsed(texts, plain, rows, codes)
        if self._layout.has_schema:
            return values
        good = iter(np.flatnonzero(codes[rows] == GOOD).tolist())
        kept: list[Any] = []
        for value in values:
            place = next(good)
            if isinstance(value, tuple) and self._is_unlike(value):
                codes[rows[place]] = self._unlike
            else:
                kept.append(value)
        return kept

    def _is_unlike(self, message: tuple[tuple[str, Any], ...]) -> bool:
        """Whether a message has other fields, or other types of them. Columns that the layout lacks are noted."""
        return self._has_others(message) or self._has_other_types(message)

    def _has_other_types(self, message: tuple[tuple[str, Any], ...]) -> bool:
        """Whether a field outside the row has another type than in the sample, and would be read as that one."""
        if not self._loose:
            return False
        return not all(is_shown_by(self._loose[name], _plain(value)) for name, value in message if name in self._loose)

    def _has_others(self, message: tuple[tuple[str, Any], ...]) -> bool:
        if not self._images:
            others = [(name, value) for name, value in message if name not in self._names]
            self._note([one for one in others if not is_metadata(one[0])], {})
            return bool(others)
        fields = dict(message)
        if (self._layout.row is None) != has_documents(_plain_source(fields), self._images):
            return True
        types = dict(found) if isinstance(found := fields.get("mysqlType"), tuple) else {}
        unlike = any(name not in self._names for name in fields)
        for name, known in self._inside.items():
            if isinstance(inner := fields.get(name), tuple):
                unlike |= any(one not in known for one, _ in inner)
        for name in self._images:
            image = fields.get(name)
            for row in image if isinstance(image, list) else [image]:
                if isinstance(row, tuple) and self._layout.row is not None:
                    others = [one for one in row if one[0] not in self._row_names]
                    self._note(others, types)
                    unlike |= bool(others)
        return unlike

    def _note(self, others: list[tuple[str, Any]], types: Mapping[str, Any]) -> None:
        """Note columns that the layout lacks."""
        for name, value in others:
            if isinstance(types.get(name), str):
                self.unplanned.setdefault(name, mysql_type(types[name]))
            elif self.unplanned.get(name) in (None, TEXT):  # null is text, as long as nothing else is known
                self.unplanned[name] = shown_type(_plain(value))


def _plain_source(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """A parsed message, as far as it shows whether its rows are documents."""
    source = fields.get("source")
    return {**fields, "source": dict(source)} if isinstance(source, tuple) else fields


def _plain(value: Any) -> Any:
    """A value of `JsonParser` as Python's own parser has it."""
    match value:
        case Number() if value.removeprefix("-").isdecimal() and len(value) <= _MOST_DIGITS:
            return int(value)
        case Number():
            return float(value)
        case tuple():
            return {name: _plain(one) for name, one in value}
        case list():
            return [_plain(one) for one in value]
    return value
