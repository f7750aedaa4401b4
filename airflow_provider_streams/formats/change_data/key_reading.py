"""Rows of which only the message's key is left: deletes without a row, and tombstones of flattened tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags, Ints
from airflow_provider_streams.formats.change_data.change_columns import ChangeColumns, Image
from airflow_provider_streams.formats.change_data.message_parts import Parts
from airflow_provider_streams.formats.change_data.messages.message_reading import MessageReader
from airflow_provider_streams.formats.change_data.row_types.column_meanings import plain, struct_of
from airflow_provider_streams.formats.change_data.values import text_columns
from airflow_provider_streams.formats.change_data.values.faults import Faults
from airflow_provider_streams.formats.decode_failures import Causes
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.types import StructOf

NO_KEY: Final = "is a delete without a row, and its key does not say which row it deletes"


class KeyReader:
    """Reads messages' keys as columns of rows.

    Args:
        change_format: what the plan pinned.
        columns: makes columns.
        typed: the type of keys that a registry's schema has decoded; None: they are JSON.
    """

    def __init__(self, change_format: ChangeFormat, columns: ChangeColumns, typed: StructOf | None = None) -> None:
        self._columns, self._typed = columns, typed
        fields = tuple(one for one in change_format.row.fields if one.name in change_format.keys)
        # the key is an object of its columns, without anything around it
        alone = replace(change_format, row=StructOf(fields), envelope="flat", inferred=())
        self._reader = MessageReader(alone, Causes(), has_others=True) if fields else None

    def of_deletes(self, parts: Parts, keys: Array | None, rows: Ints) -> Image | None:
        """The keys of deletes that have no row; None: there are none, or no keys."""
        deleted = text_columns.equal(parts.op, "d")
        if parts.before is not None:
            deleted = deleted & ~arrays.valid_flags(parts.before)
        wanted = np.flatnonzero(deleted)
        return self.read(keys, rows, wanted) if len(wanted) else None

    def read(self, keys: Array | None, rows: Ints, wanted: Ints) -> Image | None:
        """The columns of some of the rows' keys; None: there are no keys.

        Args:
            keys: of all messages.
            rows: the message of each row.
            wanted: the rows to read.
        """
        if self._reader is None or keys is None:
            return None
        taken = keys.take(arrays.numbers(pa.int64(), rows[wanted]))
        known = np.flatnonzero(arrays.valid_flags(taken))
        if self._typed is not None:
            meaning = struct_of({one.name: plain(one.type) for one in self._typed.fields})
            return _joined([(wanted, self._columns.convert(meaning, taken, Faults()))], len(rows))
        codes = np.zeros(len(known), np.int16)
        found: list[tuple[Ints, Image]] = []
        for part in self._reader.read(arrays.at_rows(taken, known), codes):
            faults = Faults()
            if part.layout.row is not None:
                image = self._columns.convert(part.layout.row, part.values, faults)
                there = image.there.copy()
                for wrong, _ in faults.found:
                    there &= ~wrong
                found.append((wanted[known[part.rows]], image._replace(there=there)))
        return _joined(found, len(rows)) if found else None


def _joined(parts: list[tuple[Ints, Image]], count: int) -> Image:
    places = np.concatenate([rows for rows, _ in parts])
    names = list(parts[0][1].columns)
    columns = {
        name: arrays.spread(pa.concat_arrays([image.columns[name] for _, image in parts]), places, count)
        for name in names
    }
    there: Flags = np.zeros(count, np.bool_)
    there[places] = np.concatenate([image.there for _, image in parts])
    return Image(columns, there, {})
