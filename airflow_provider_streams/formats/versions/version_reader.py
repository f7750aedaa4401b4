"""Payloads of one schema version as the plan's columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_streams.errors import NO_BRANCH, UNFIT
from airflow_provider_streams.formats.arrow.arrays import Array, at_rows, nulls, spread, structs_like, valid_flags
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.decode_failures import GOOD, Causes, Codes, Column, Reader, blame
from airflow_provider_streams.formats.framing import split_pairs
from airflow_provider_streams.formats.reader_selection import reader_of
from airflow_provider_streams.formats.schema.field_aliases import Ambiguous
from airflow_provider_streams.formats.schema.merge_schemas import bare
from airflow_provider_streams.formats.schema.row_types import parts_of, type_of
from airflow_provider_streams.formats.schema.types_as_text import written_out
from airflow_provider_streams.formats.versions.column_casts import can_lose, differences, lost, project
from airflow_provider_streams.formats.versions.values_as_text import to_text
from airflow_provider_streams.model.schema.decoding import ANY_VERSION, Decoding, WriterSchema
from airflow_provider_streams.model.schema.types import StructOf, Type


class Read(NamedTuple):
    """Rows of one version, in the plan's types."""

    values: Array
    keys: Array | None
    """None: keys are not decoded."""
    codes: Codes


class Projected:
    """Reads payloads of one schema as a type of the plan; nulls stay null.

    Args:
        schema: the writer's schema.
        wanted: the plan's type.
        causes: numbers the causes.
        version: the schema's version, for the cause of rows that cannot have the plan's type.
        newest: the schema whose names the plan's columns have; None: the writer's own.
        as_text: whether values become text if the plan's column is text.
    """

    def __init__(
        self,
        schema: WriterSchema,
        wanted: Type,
        causes: Causes,
        version: str = ANY_VERSION,
        newest: WriterSchema | None = None,
        *,
        as_text: bool = False,
    ) -> None:
        self._wanted, self.kind = wanted, arrow_type(wanted)
        self._causes, self._version = causes, version
        self._unfit = GOOD
        try:
            self._reader: Reader = reader_of(schema, causes, newest, as_text=as_text)
            self._read_type = type_of(schema, newest)
            self._type = written_out(self._read_type, wanted) if as_text else self._read_type
            self._differences = "; ".join(differences(self._type, wanted))
            self._can_lose = can_lose(self._type, wanted)
        except Ambiguous as error:
            self._unfit = causes.code(self._misfit(str(error)))

    def read(self, payloads: Array) -> Column:
        """Never raises for what payloads hold."""
        if self._unfit:
            codes = np.where(valid_flags(payloads), np.int16(self._unfit), np.int16(GOOD))
            return Column(nulls(self.kind, len(payloads)), codes)
        if not payloads.null_count:
            return self._whole(payloads)
        there = np.flatnonzero(valid_flags(payloads))
        values, found = self._whole(at_rows(payloads, there))
        codes = np.zeros(len(payloads), np.int16)
        codes[there] = found
        return Column(spread(values, there, len(payloads)), codes)

    def _whole(self, payloads: Array) -> Column:
        values, codes = self._reader.read(payloads)
        values = to_text(values, self._read_type, self._type)
        if self._can_lose:
            self._blame_lost(values, codes)
        return Column(project(values, self._type, self._wanted), codes)

    def _blame_lost(self, values: Array, codes: Codes) -> None:
        """Blame rows with a value that the plan's columns cannot hold."""
        for path, branch, rows in lost(values, self._type, self._wanted):
            if rows.any():
                missing = f"{path or 'the value'}: {NO_BRANCH} {branch} (schema version {self._version})"
                text = missing if branch else self._misfit(self._differences)
                blame(codes, rows, self._causes.code(text))

    def _misfit(self, why: str) -> str:
        return f"its schema version {self._version} {UNFIT}: {why}"


class Newest(NamedTuple):
    """The newest versions of a name."""

    values: WriterSchema
    """Of the value's record type."""
    keys: WriterSchema
    """Of all types."""


class VersionReader:
    """Reads values, and keys if they are decoded.

    Args:
        schema: the schema of this version.
        version: its number.
        decoding: what the plan pinned.
        causes: numbers the causes.
        newest: the versions whose names the columns have.
        name: the source's name, which finds the record type of the values.
    """

    def __init__(
        self, schema: WriterSchema, version: str, decoding: Decoding, causes: Causes, *, newest: Newest, name: str
    ) -> None:
        self._causes, self._rows = causes, decoding.value
        key, value = _pair(schema)
        newest_key, newest_value = _pair(newest.keys)[0], _pair(newest.values)[1]
        self._inline = key is not None and schema.inline
        types = decoding.types
        self._type_name = types.of.get(name, {}).get(version, "") if types else ""
        self._columns = types.columns.get(self._type_name, decoding.value) if types else decoding.value
        self._is_type_column = types is not None and types.is_column
        self._values = Projected(value, self._columns, causes, version, newest_value, as_text=decoding.as_text)
        self._keys: Projected | None = None
        of_key, newest_key = (decoding.key_schema, None) if decoding.key_schema else (key, newest_key)
        if decoding.key is not None and of_key is not None:
            self._keys = Projected(of_key, decoding.key, causes.below("the key: "), version, newest_key)

    def read(self, values: Array, keys: Array | None) -> Read:
        """Never raises for what payloads hold.

        Args:
            values: binary; null: a tombstone.
            keys: the messages' keys, as many; null: no key.
        """
        codes = np.zeros(len(values), np.int16)
        if self._inline:
            values, keys = self._split(values, codes)
        column, found = self._values.read(values)
        column = column if self._columns == self._rows else self._as_rows(column)
        first_cause(codes, found)
        if self._keys is None:
            return Read(column, None, codes)
        if keys is None:
            return Read(column, nulls(self._keys.kind, len(values)), codes)
        key_column, found = self._keys.read(keys)
        first_cause(codes, found)
        return Read(column, key_column, codes)

    def _split(self, values: Array, codes: Codes) -> tuple[Array, Array]:
        """Values and keys of payloads that hold both; a tombstone has neither."""
        there = np.flatnonzero(valid_flags(values))
        pairs = split_pairs(at_rows(values, there), self._causes)
        codes[there] = pairs.codes
        if len(there) == len(values):
            return pairs.values, pairs.keys
        return spread(pairs.values, there, len(values)), spread(pairs.keys, there, len(values))

    def _as_rows(self, values: Array) -> Array:
        """Values of one record type as rows of all types: fields of other types are null, and nulls stay null."""
        rows = project(values, bare(self._columns), self._rows)
        if not self._is_type_column or not isinstance(self._rows, StructOf) or not isinstance(rows, pa.StructArray):
            return rows
        named = pa.repeat(pa.scalar(self._type_name or None, pa.string()), len(rows))
        fields = [rows.field(place) for place in range(len(self._rows.fields) - 1)]
        return structs_like(rows, arrow_type(self._rows), [*fields, named])


def _pair(schema: WriterSchema) -> tuple[WriterSchema | None, WriterSchema]:
    """The schemas of keys, if there is one, and of values."""
    return parts_of(schema) if schema.format == "key_value" else (None, schema)


def first_cause(codes: Codes, found: Codes) -> None:
    """Give rows that are good so far the cause that another reader found."""
    if found.any():
        np.copyto(codes, found, where=codes == GOOD)
