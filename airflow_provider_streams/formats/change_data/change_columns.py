"""Changes to the plan's columns: rows by their meanings, and the columns that every change has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.change_data.message_parts import Parts, as_moments
from airflow_provider_streams.formats.change_data.positions import log_positions
from airflow_provider_streams.formats.change_data.row_types.column_meanings import Meaning
from airflow_provider_streams.formats.change_data.values import text_columns
from airflow_provider_streams.formats.change_data.values.conversion import SHORT_BASE64, convert
from airflow_provider_streams.formats.change_data.values.faults import Faults
from airflow_provider_streams.formats.change_data.values.unavailable import Placeholder, names_of
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.types import StructOf

NULL_KEY: Final = "its key is null"
NO_ROW: Final = "has no row, though its op needs one"
MAYBE_NUMBER: Final = (
    "holds base64, which may be a number of unknown scale, or bytes. Set decimal.handling.mode=string (or double) and "
    "binary.handling.mode=hex in the connector, write schemas into the messages with "
    "value.converter.schemas.enable=true, or declare the column"
)


class Image(NamedTuple):
    """Rows as columns of the plan."""

    columns: Mapping[str, Array]
    there: Flags
    unavailable: Mapping[str, Flags]


class ChangeColumns:
    """Makes the columns of change rows.

    Args:
        change_format: what the plan pinned.
    """

    def __init__(self, change_format: ChangeFormat) -> None:
        self._format = change_format
        self._placeholder = Placeholder(change_format.placeholder)
        self.kind = cast("pa.StructType", arrow_type(change_format.type))
        self._row_kind = cast("pa.StructType", arrow_type(change_format.row))

    def rows(self, parts: Parts, positions: Array, keys: Image | None, faults: Faults) -> Array:
        """The change rows, null where `parts.op` is.

        Args:
            parts: what the messages say.
            positions: each message's place in the stream.
            keys: the keys of messages, for rows that have nothing else.
            faults: collects rows that no column holds.
        """
        count = len(parts.op)
        is_row = arrays.valid_flags(parts.op)
        after, before = self._image(parts, parts.after, faults), self._image(parts, parts.before, faults)
        deleted = text_columns.equal(parts.op, "d")
        truncated = text_columns.equal(parts.op, "t")
        columns, there = self._chosen(after, before, keys, deleted)
        faults.add(is_row & ~truncated & ~there, NO_ROW)
        self._check_keys(columns, is_row & ~truncated, faults)
        unavailable = {name: rows & ~deleted for name, rows in after.unavailable.items()}
        made = {
            **columns,
            "_op": parts.op,
            "_before": arrays.structs(self._row_kind, list(before.columns.values()), count, before.there),
            "_source_ts": as_moments(parts.source_us, count),
            "_ts": as_moments(parts.seen_us, count),
            **parts.metadata,
            "_position": positions,
            "_log_position": log_positions(parts.source, count),
            "_unavailable": names_of(unavailable, count),
        }
        fields = [_as(made[one.name], one.type) for one in self.kind]
        return arrays.structs(self.kind, fields, count, is_row)

    def _chosen(
        self, after: Image, before: Image, keys: Image | None, deleted: Flags
    ) -> tuple[dict[str, Array], Flags]:
        """The row of each change: of a delete the row before it, or else its key."""
        if not deleted.any():
            return dict(after.columns), after.there
        is_deleted = arrays.booleans(deleted)
        chosen = {
            name: column if column.null_count == len(column) == before.columns[name].null_count
            else _where(is_deleted, before.columns[name], column)
            for name, column in after.columns.items()
        }  # fmt: skip
        there = np.where(deleted, before.there, after.there)
        by_key = deleted & ~before.there
        if keys is not None and by_key.any():
            with_keys = arrays.booleans(by_key & keys.there)
            chosen |= {name: _where(with_keys, column, chosen[name]) for name, column in keys.columns.items()}
            there |= by_key & keys.there
        return chosen, there

    def _check_keys(self, columns: Mapping[str, Array], rows: Flags, faults: Faults) -> None:
        for name in self._format.keys:
            faults.add(rows & ~arrays.valid_flags(columns[name]), NULL_KEY)

    def _image(self, parts: Parts, values: Array | None, faults: Faults) -> Image:
        count = len(parts.op)
        if values is None or parts.row is None or values.null_count == count:
            columns = {one.name: arrays.nulls(arrow_type(one.type), count) for one in self._format.row.fields}
            return Image(columns, np.zeros(count, np.bool_), {})
        found = self.convert(parts.row, values, faults)
        return found._replace(there=arrays.valid_flags(values))

    def convert(self, row: Meaning, values: Array, faults: Faults) -> Image:
        """Structs of a meaning as columns of the plan; columns that they do not have are null."""
        meanings = dict(zip([one.name for one in cast("StructOf", row.wire).fields], row.parts, strict=True))
        places = {one.name: place for place, one in enumerate(values.type)}
        columns: dict[str, Array] = {}
        unavailable: dict[str, Flags] = {}
        for want in self._format.row.fields:
            if want.name not in places or want.name not in meanings:
                columns[want.name] = arrays.nulls(arrow_type(want.type), len(values))
                continue
            part = meanings[want.name]
            own = pc.struct_field(values, places[want.name])
            missing = self._placeholder.rows(part, own)
            if missing.any():
                unavailable[want.name] = missing
                own = _where(arrays.booleans(~missing), own, arrays.nulls(own.type, len(own)))
            column_faults = Faults()
            if want.name in self._format.inferred and pa.types.is_string(own.type):
                column_faults.add(_is_base64(own), MAYBE_NUMBER)
            columns[want.name] = convert(part, own, want.type, column_faults, self._format.decimal_text)
            for rows, reason in column_faults.found:
                faults.add(rows, f"{want.name}: {reason}")
        return Image(columns, arrays.valid_flags(values), unavailable)


def _is_base64(values: Array) -> Flags:
    pattern = f"^{SHORT_BASE64.pattern}$"
    found: Flags = text_columns.matches(values, pattern)
    return found


def _where(mask: Array, yes: Array, no: Array) -> Array:
    """One of two values for each row, of any type."""
    if not pa.types.is_nested(yes.type):
        found: Array = pc.if_else(mask, yes, no)
        return found
    places = np.arange(len(yes)) + np.where(mask.to_numpy(zero_copy_only=False), 0, len(yes))
    return pa.concat_arrays([yes, no]).take(arrays.numbers(pa.int64(), places))


def _as(values: Array, kind: pa.DataType) -> Array:
    """The same values; lists may name their items in another way."""
    return values if values.type == kind else cast("Array", values.cast(kind))
