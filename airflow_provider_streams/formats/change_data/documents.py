"""MongoDB's changes: whole documents as JSON in a text, and an id in the message's key."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Ints
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.change_data.message_parts import Parts
from airflow_provider_streams.formats.change_data.messages.message_reading import MessageReader
from airflow_provider_streams.formats.change_data.row_types.column_meanings import TEXT, plain, struct_of
from airflow_provider_streams.formats.change_data.values import text_columns
from airflow_provider_streams.formats.change_data.values.faults import Faults
from airflow_provider_streams.formats.change_data.values.text_values import of_text
from airflow_provider_streams.formats.decode_failures import GOOD, Causes
from airflow_provider_streams.formats.json.reader import JsonReader
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.type_json import to_json
from airflow_provider_streams.model.schema.types import Field, StructOf

ID: Final = "_id"
"""The column of the document's id, as MongoDB's JSON writes it."""
DOCUMENT: Final = "document"
"""The column of the whole document, if it is text."""
ROW: Final = StructOf((Field(ID, TEXT), Field(DOCUMENT, TEXT)))
"""The columns of documents if the user declares none."""


class Documents:
    """Makes rows of documents.

    Args:
        change_format: what the plan pinned.
    """

    def __init__(self, change_format: ChangeFormat) -> None:
        self._row = change_format.row
        self._is_whole = any(one.name == DOCUMENT and one.type == TEXT for one in self._row.fields)
        self._fields = tuple(one for one in self._row.fields if one.name not in (ID, DOCUMENT) or not self._is_whole)
        self._inner = tuple(one for one in self._fields if one.name != ID)
        id_row = ChangeFormat(StructOf((Field("id", TEXT),)), "flat")
        self._ids = MessageReader(id_row, Causes(), has_others=True)
        schema = json.dumps(to_json(StructOf(self._inner)))
        self._causes = Causes()
        self._reader = JsonReader(WriterSchema("json", schema), self._causes) if self._inner else None

    def rows_of(self, parts: Parts, keys: Array | None, rows: Ints, faults: Faults) -> Parts:
        """The changes, with documents as rows. A deleted document has its id alone.

        Args:
            parts: changes, of which `after` is the document's text.
            keys: of all messages; None: the system has none.
            rows: the message of each change.
            faults: collects documents that are no such rows.
        """
        if parts.after is None or not pa.types.is_string(parts.after.type):
            return parts
        count = len(rows)
        columns: dict[str, Array] = {}
        for one, column in zip(self._inner, self._read(parts.after, faults), strict=True):
            columns[one.name] = column
        ids = self._read_ids(keys, rows)
        for one in self._row.fields:
            if one.name == ID:
                id_faults = Faults()
                columns[ID] = of_text(one.type, ids, id_faults)
                for wrong, text in id_faults.found:
                    faults.add(wrong, f"{ID}: {text}")
            elif one.name == DOCUMENT and self._is_whole:
                columns[DOCUMENT] = parts.after
        meaning = struct_of({one.name: plain(one.type) for one in self._row.fields})
        kind = arrow_type(self._row)
        after = [columns[one.name] for one in self._row.fields]
        deleted = [
            columns[ID] if one.name == ID else arrays.nulls(arrow_type(one.type), count) for one in self._row.fields
        ]
        is_deleted = text_columns.equal(parts.op, "d")
        return replace(
            parts,
            row=meaning,
            after=arrays.structs(kind, after, count, arrays.valid_flags(parts.after)),  # type: ignore[arg-type]  # a struct
            before=arrays.structs(kind, deleted, count, is_deleted & arrays.valid_flags(ids)),  # type: ignore[arg-type]  # a struct
        )

    def _read(self, texts: Array, faults: Faults) -> list[Array]:
        """The declared columns of documents."""
        if self._reader is None or not self._inner:
            return []
        there = np.flatnonzero(arrays.valid_flags(texts))
        column = self._reader.read(arrays.at_rows(texts.drop_null().cast(pa.binary()), np.arange(len(there))))
        for code in np.unique(column.codes[column.codes != GOOD]).tolist():
            wrong = np.zeros(len(texts), np.bool_)
            wrong[there[column.codes == code]] = True
            faults.add(wrong, f"the document: {self._causes.text(code)}")
        values = arrays.spread(column.values, there, len(texts))
        return [pc.struct_field(values, place) for place in range(len(self._inner))]

    def _read_ids(self, keys: Array | None, rows: Ints) -> Array:
        count = len(rows)
        if keys is None:
            return arrays.nulls(pa.string(), count)
        taken = keys.take(arrays.numbers(pa.int64(), rows))
        there = np.flatnonzero(arrays.valid_flags(taken))
        codes = np.zeros(len(there), np.int16)
        found = [
            (there[part.rows], pc.struct_field(part.values, "id"))
            for part in self._ids.read(arrays.at_rows(taken, there), codes)
            if "id" in part.layout.row_names
        ]
        if not found:
            return arrays.nulls(pa.string(), count)
        places = np.concatenate([rows for rows, _ in found])
        return arrays.spread(pa.concat_arrays([values.cast(pa.string()) for _, values in found]), places, count)
