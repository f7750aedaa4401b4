"""JSON payloads of one row type."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import Array, Ints, listed, nulls, numbers, python_bytes, spread
from airflow_provider_streams.formats.arrow_types import arrow_type
from airflow_provider_streams.formats.causes import GOOD, Causes, Codes
from airflow_provider_streams.formats.json.blocks import BlockReader, NotRead, can_read
from airflow_provider_streams.formats.json.rows import Refused, RowReader
from airflow_provider_streams.formats.json.values import builder, plain_rows
from airflow_provider_streams.formats.reader import Column
from airflow_provider_streams.formats.row_types import type_of
from airflow_provider_streams.formats.text import not_utf8
from airflow_provider_streams.model.decoding import WriterSchema
from airflow_provider_streams.model.row_type import StructOf

SMALL_BLOCK: Final = 256
"""Rows; a block of no more that Arrow cannot read as a whole is parsed row by row, larger ones are split by four.

Of parsed rows no more are held at a time: Python looks at all that it holds, again and again, for what is garbage."""

FEW_ROWS: Final = 32
"""Of parsed rows, one of which is bad, no more than these are looked at one by one."""


class JsonReader:
    """Reads payloads in blocks by Arrow; what it cannot read is parsed one by one, and made columns in blocks, too.

    Args:
        schema: of the writer: a row type.
        causes: where causes get their numbers.
        padded: NULs behind the value belong to nothing (Pravega's serializers with a codec leave them).

    Raises:
        InvalidSchema: no row type.
    """

    def __init__(self, schema: WriterSchema, causes: Causes, *, padded: bool = False) -> None:
        self.type = type_of(schema)
        self._kind, self._causes, self._padded = arrow_type(self.type), causes, padded
        self._rows = RowReader(self.type)
        self._build = builder(self.type)
        usable = isinstance(self.type, StructOf) and can_read(self.type)
        self._blocks = BlockReader(self.type) if isinstance(self.type, StructOf) and usable else None

    def read(self, payloads: Array) -> Column:
        """All that blocks can hold, then the others."""
        count = len(payloads)
        codes = np.zeros(count, np.int16)
        if not count:
            return Column(nulls(self._kind, 0), codes)
        if self._padded:
            payloads = listed([one.rstrip(b"\0") for one in python_bytes(payloads)])
        parts: list[Part] = []
        single = np.arange(count)
        if self._blocks:
            fitting = self._blocks.usual(payloads) & ~not_utf8(payloads)
            left = self._read_blocks(self._blocks, np.flatnonzero(fitting), payloads, parts)
            single = np.sort(np.concatenate([np.flatnonzero(~fitting), *left]))
        self._read_rows(single, payloads, codes, parts)
        if len(parts) == 1:
            return Column(parts[0].values, codes)
        places = np.concatenate([part.rows for part in parts])
        return Column(spread(pa.concat_arrays([part.values for part in parts]), places, count), codes)

    def _read_blocks(self, blocks: BlockReader, rows: Ints, payloads: Array, parts: list[Part]) -> list[Ints]:
        """Adds the blocks that can be read; returns the rows of the others."""
        if not len(rows):
            return []
        try:
            parts.append(Part(rows, blocks.read(_some(payloads, rows))))
        except NotRead:
            if len(rows) <= SMALL_BLOCK:
                return [rows]
            pieces = np.array_split(rows, 4)
            return list(chain.from_iterable(self._read_blocks(blocks, piece, payloads, parts) for piece in pieces))
        return []

    def _read_rows(self, rows: Ints, payloads: Array, codes: Codes, parts: list[Part]) -> None:
        """Adds all rows, some at a time; those that are bad get their cause."""
        texts = _some(payloads, rows)
        plain = plain_rows(texts)
        for start in range(0, len(rows), SMALL_BLOCK):
            piece = slice(start, start + SMALL_BLOCK)
            some = rows[piece]
            values = self._parsed(python_bytes(texts[piece]), plain[piece].tolist(), some, codes)
            bad = codes[some] != GOOD
            if bad.any():
                parts.append(Part(some[bad], nulls(self._kind, int(bad.sum()))))
                some = some[~bad]
            self._build_columns(some, values, codes, parts)

    def _parsed(self, texts: list[bytes], plain: list[bool], rows: Ints, codes: Codes) -> list[Any]:
        """What the good ones say."""
        values: list[Any] = []
        quickly, slowly = self._rows.quickly, self._rows.parsed
        for place, (text, is_plain) in enumerate(zip(texts, plain, strict=True)):
            try:
                value = quickly(text) if is_plain else slowly(text)
            except Refused as refused:
                codes[rows[place]] = self._causes.code(str(refused))
                continue
            if value is None:
                codes[rows[place]] = self._causes.code("the value: is null")
            else:
                values.append(value)
        return values

    def _build_columns(self, rows: Ints, values: list[Any], codes: Codes, parts: list[Part]) -> None:
        """Parsed values to columns, in smaller and smaller pieces where one holds a bad row."""
        if not len(rows):
            return
        try:
            parts.append(Part(rows, self._build(values)))
        except NotRead:
            if len(rows) <= FEW_ROWS:
                parts.append(Part(rows, self._converted(rows, values, codes)))
                return
            for places in np.array_split(np.arange(len(rows)), 4):
                some = values[places[0] : places[-1] + 1]
                self._build_columns(rows[places], some, codes, parts)

    def _converted(self, rows: Ints, values: list[Any], codes: Codes) -> Array:
        """One by one, to name the bad ones."""
        found: list[Any] = []
        for row, value in zip(rows.tolist(), values, strict=True):
            try:
                found.append(self._rows.convert(value))
            except Refused as refused:
                found.append(None)
                codes[row] = self._causes.code(str(refused))
        return pa.array(found, self._kind)


class Part(NamedTuple):
    """Some rows, and what they hold."""

    rows: Ints
    values: Array


def _some(payloads: Array, rows: Ints) -> Array:
    """Those of these rows, which ascend."""
    if len(rows) == len(payloads):
        return payloads
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return payloads.slice(int(rows[0]), len(rows))
    return payloads.take(numbers(pa.int64(), rows))
