"""One version of a schema: its payloads become the plan's columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import Array, nulls, numbers, spread, valid_flags
from airflow_provider_streams.formats.arrow_types import arrow_type
from airflow_provider_streams.formats.causes import GOOD, Causes, Codes, blame
from airflow_provider_streams.formats.key_value import split
from airflow_provider_streams.formats.lost import can_lose, lost
from airflow_provider_streams.formats.project import differences, project
from airflow_provider_streams.formats.reader import Column, Reader
from airflow_provider_streams.formats.readers import reader_of
from airflow_provider_streams.formats.row_types import parts_of
from airflow_provider_streams.model.decoding import ANY_VERSION, Decoding, WriterSchema
from airflow_provider_streams.model.row_type import Type


class Read(NamedTuple):
    """Rows of one version, in the plan's types."""

    values: Array
    keys: Array | None
    """None: keys are not decoded."""
    codes: Codes


class Projected:
    """Reads payloads of one schema as a type of the plan; nulls stay null.

    Args:
        schema: of the writer.
        wanted: the plan's type.
        causes: where causes get their numbers.
        version: of the schema, for the cause of rows that cannot have the plan's type.
    """

    def __init__(self, schema: WriterSchema, wanted: Type, causes: Causes, version: str = ANY_VERSION) -> None:
        self._wanted, self.kind = wanted, arrow_type(wanted)
        self._reader: Reader = reader_of(schema, causes)
        self._causes, self._version = causes, version
        found = differences(self._reader.type, wanted)
        self._can_lose = not found and can_lose(self._reader.type, wanted)
        self._unfit = GOOD
        if found:
            text = f"its schema version {version} does not fit the plan's columns: {'; '.join(found)}"
            self._unfit = causes.code(text)

    def read(self, payloads: Array) -> Column:
        """Never raises for what payloads hold."""
        if self._unfit:
            codes = np.where(valid_flags(payloads), np.int16(self._unfit), np.int16(GOOD))
            return Column(nulls(self.kind, len(payloads)), codes)
        if not payloads.null_count:
            return self._whole(payloads)
        there = np.flatnonzero(valid_flags(payloads))
        values, found = self._whole(payloads.take(numbers(pa.int64(), there)))
        codes = np.zeros(len(payloads), np.int16)
        codes[there] = found
        return Column(spread(values, there, len(payloads)), codes)

    def _whole(self, payloads: Array) -> Column:
        values, codes = self._reader.read(payloads)
        if self._can_lose:
            self._blame_lost(values, codes)
        return Column(project(values, self._reader.type, self._wanted), codes)

    def _blame_lost(self, values: Array, codes: Codes) -> None:
        """Rows that hold a value of a branch that the plan's union has not."""
        for path, branch, rows in lost(values, self._reader.type, self._wanted):
            if rows.any():
                where = path or "the value"
                text = f"{where}: the plan's columns have no branch for its {branch} (schema version {self._version})"
                blame(codes, rows, self._causes.code(text))


class VersionReader:
    """Reads values, and keys where they are decoded.

    Args:
        schema: of this version.
        version: its number, for causes.
        decoding: what the plan pinned.
        causes: where causes get their numbers.
    """

    def __init__(self, schema: WriterSchema, version: str, decoding: Decoding, causes: Causes) -> None:
        self._causes = causes
        pair = parts_of(schema) if schema.format == "key_value" else None
        self._inline = pair is not None and schema.inline
        self._values = Projected(pair[1] if pair else schema, decoding.value, causes, version)
        of_key = decoding.key_schema or (pair[0] if pair else None)
        self._keys: Projected | None = None
        if decoding.key is not None and of_key is not None:
            self._keys = Projected(of_key, decoding.key, causes.below("the key: "), version)

    def read(self, values: Array, keys: Array | None) -> Read:
        """Never raises for what payloads hold.

        Args:
            values: binary; null: a tombstone.
            keys: of the messages, as many; null: there is none.
        """
        codes = np.zeros(len(values), np.int16)
        if self._inline:
            values, keys = self._split(values, codes)
        column, found = self._values.read(values)
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
        if len(there) < len(values):
            pairs = split(values.take(numbers(pa.int64(), there)), self._causes)
            codes[there] = pairs.codes
            return spread(pairs.values, there, len(values)), spread(pairs.keys, there, len(values))
        pairs = split(values, self._causes)
        codes[:] = pairs.codes
        return pairs.values, pairs.keys


def first_cause(codes: Codes, found: Codes) -> None:
    """Rows that are good so far get the cause that another reader found."""
    if found.any():
        np.copyto(codes, found, where=codes == GOOD)
