"""JSON payloads of one row type."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Ints
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.decode_failures import GOOD, Causes, Codes, Column
from airflow_provider_streams.formats.json.block_reader import BlockReader, NotRead, can_read
from airflow_provider_streams.formats.json.column_values import builder
from airflow_provider_streams.formats.json.converters import converter, needs_digits
from airflow_provider_streams.formats.json.jackson import Refused
from airflow_provider_streams.formats.json.json_parser import JsonParser, plain_rows
from airflow_provider_streams.formats.json.unmatched_keys import Unmatched
from airflow_provider_streams.formats.schema.row_types import type_of
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.types import StructOf, leaves

SMALL_BLOCK: Final = 256
"""Rows. If Arrow cannot read a block, a small one is parsed row by row, and a larger one is split by four.

No more parsed rows are held at a time: Python's garbage collector looks at all of them, again and again."""

MANY_ROWS: Final = 4_000
"""After a batch of more rows of which no block could be read, blocks are not tried again: each try costs time."""

FEW_ROWS: Final = 32
"""How many parsed rows are looked at one by one, if one of them is bad."""


class JsonReader:
    """Reads payloads in blocks by Arrow. It parses others one by one, and makes columns of many at once."""

    def __init__(self, schema: WriterSchema, causes: Causes, *, padded: bool = False) -> None:
        self.type = type_of(schema)
        self._kind, self._causes, self._padded = arrow_type(self.type), causes, padded
        self._parser = JsonParser(exact=any(map(needs_digits, leaves(self.type))))
        self._convert = converter(self.type, strict=schema.strict)
        self._build = builder(self.type, strict=schema.strict)
        self._unmatched = Unmatched(self.type)
        causes.counters.append(self._unmatched)
        self._blocks = (
            BlockReader(self.type, self._unmatched, strict=schema.strict)
            if isinstance(self.type, StructOf) and can_read(self.type)
            else None
        )

    def read(self, payloads: Array) -> Column:
        """Read all payloads that blocks can hold, then the others."""
        count = len(payloads)
        codes = np.zeros(count, np.int16)
        if not count:
            return Column(arrays.nulls(self._kind, 0), codes)
        if self._padded:
            payloads = arrays.listed([one.rstrip(b"\0") for one in arrays.python_bytes(payloads)])
        parts: list[Part] = []
        single = np.arange(count)
        if self._blocks:
            fitting = self._blocks.usual(payloads) & ~arrays.not_utf8(payloads)
            left = self._read_blocks(self._blocks, np.flatnonzero(fitting), payloads, parts)
            single = np.sort(np.concatenate([np.flatnonzero(~fitting), *left]))
            if count > MANY_ROWS and len(single) == count:
                self._blocks = None
        self._read_rows(single, payloads, codes, parts)
        if len(parts) == 1:
            return Column(parts[0].values, codes)
        places = np.concatenate([part.rows for part in parts])
        return Column(arrays.spread(pa.concat_arrays([part.values for part in parts]), places, count), codes)

    def _read_blocks(self, blocks: BlockReader, rows: Ints, payloads: Array, parts: list[Part]) -> list[Ints]:
        """Add the blocks that can be read. Returns the rows of the others."""
        if not len(rows):
            return []
        try:
            parts.append(Part(rows, blocks.read(arrays.at_rows(payloads, rows))))
        except NotRead:
            if len(rows) <= SMALL_BLOCK:
                return [rows]
            pieces = np.array_split(rows, 4)
            return list(chain.from_iterable(self._read_blocks(blocks, piece, payloads, parts) for piece in pieces))
        return []

    def _read_rows(self, rows: Ints, payloads: Array, codes: Codes, parts: list[Part]) -> None:
        """Add all rows, some at a time. Bad rows get their cause."""
        texts = arrays.at_rows(payloads, rows)
        plain = plain_rows(texts)
        for start in range(0, len(rows), SMALL_BLOCK):
            piece = slice(start, start + SMALL_BLOCK)
            some = rows[piece]
            values = self._parsed(arrays.python_bytes(texts[piece]), plain[piece].tolist(), some, codes)
            if self._unmatched.is_open:
                self._unmatched.add_parsed(values)
            bad = codes[some] != GOOD
            if bad.any():
                parts.append(Part(some[bad], arrays.nulls(self._kind, int(bad.sum()))))
                some = some[~bad]
            self._build_columns(some, values, codes, parts)

    def _parsed(self, texts: list[bytes], plain: list[bool], rows: Ints, codes: Codes) -> list[Any]:
        """The values of the good texts."""
        values: list[Any] = []
        quickly, slowly = self._parser.quickly, self._parser.parsed
        for place, (text, is_plain) in enumerate(zip(texts, plain, strict=True)):
            try:
                value = quickly(text) if is_plain else slowly(text)
                if value is None:
                    raise Refused("is null")  # noqa: TRY301  # a cause as the parser's
                values.append(value)
            except Refused as refused:
                codes[rows[place]] = self._causes.code(str(refused))
        return values

    def _build_columns(self, rows: Ints, values: list[Any], codes: Codes, parts: list[Part]) -> None:
        """Add columns of parsed values, in smaller and smaller pieces if one of them is bad."""
        if not len(rows):
            return
        try:
            built = self._build(values)
            self._unmatched.fill(built)
            parts.append(Part(rows, built))
        except NotRead:
            if len(rows) <= FEW_ROWS:
                parts.append(Part(rows, self._converted(rows, values, codes)))
                return
            for places in np.array_split(np.arange(len(rows)), 4):
                some = values[places[0] : places[-1] + 1]
                self._build_columns(rows[places], some, codes, parts)

    def _converted(self, rows: Ints, values: list[Any], codes: Codes) -> Array:
        """Convert values one by one, to name the bad ones."""
        found: list[Any] = []
        for row, value in zip(rows.tolist(), values, strict=True):
            try:
                found.append(self._convert(value))
            except Refused as refused:
                found.append(None)
                codes[row] = self._causes.code(str(refused))
        column: Array = pa.array(found, self._kind)
        self._unmatched.fill(column)
        return column


class Part(NamedTuple):
    """Some rows and their values."""

    rows: Ints
    values: Array
