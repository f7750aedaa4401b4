"""What the messages of Maxwell and Canal say, which read MySQL's log."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags, Ints
from airflow_provider_streams.formats.change_data.message_parts import KIND, FieldsOf, Parts
from airflow_provider_streams.formats.change_data.messages.layouts import Layout
from airflow_provider_streams.formats.change_data.values import text_columns

NO_CHANGE: Final = "is no message of this connector: its type is unknown, or it has no row"


def of_maxwell(values: Array, layout: Layout) -> Parts:
    """Changes as Maxwell writes them: `data` is the row, and `old` has the columns that an update changed."""
    fields = FieldsOf(values)
    count, word = len(fields), fields.text("type")
    op = _op(word, _MAXWELL)
    kinds = np.full(count, KIND["change"])
    is_bootstrap = text_columns.among(word, _BOOTSTRAP)
    is_ddl = text_columns.matches(word, _DDL)
    kinds[is_bootstrap], kinds[is_ddl] = KIND["bootstrap"], KIND["schema_change"]
    is_row = arrays.valid_flags(op)
    data = fields.get("data")
    lacking = is_row & ~(arrays.valid_flags(data) if data is not None else np.zeros(count, np.bool_))
    wrong = (~is_row & ~is_bootstrap & ~is_ddl) | lacking
    place = fields.text("position")
    source = {
        "file": text_columns.replaced(place, r"^(.*):[0-9]+$", r"\1"),
        "pos": text_columns.replaced(place, r"^.*:([0-9]+)$", r"\1"),
        "row": fields.number("xoffset"),
    }
    deleted = text_columns.equal(op, "d")
    return Parts(
        kinds,
        op,
        layout.row,
        data,
        _before(deleted, data, fields.get("old")),
        pc.multiply(fields.number("ts"), pa.scalar(1_000_000, pa.int64())),
        None,
        source if place.null_count < count else {},
        {
            "_transaction_id": fields.text("xid"),
            "_total_order": fields.number("xoffset"),
            "_snapshot": text_columns.replaced(text_columns.only(op, text_columns.equal(op, "r")), "r", "true"),
            "_table": _table(fields),
            "_source_life": _life("maxwell", fields.text("server_id")),
        },
        {NO_CHANGE: wrong} if wrong.any() else {},
    )


class Exploded(NamedTuple):
    """Changes of messages with several rows each."""

    parts: Parts
    messages: Ints
    """The message of each row; a message without rows has one."""
    places: Ints
    """The row's place in its message."""


def of_canal(values: Array, layout: Layout) -> Exploded:
    """Changes as Canal writes them: `data` has the rows of a statement, and `old` the columns that they changed."""
    fields = FieldsOf(values)
    word = fields.text("type")
    op = _op(text_columns.upper(word), _CANAL)
    data = cast("pa.ListArray[Any]", fields.get("data"))
    offsets = arrays.offsets_of(data)
    counts = np.where(arrays.valid_flags(data), np.diff(offsets), 0)
    is_row = arrays.valid_flags(op) & (counts > 0)
    is_ddl = ~is_row & (text_columns.equal(fields.text("isDdl"), "true"))
    sizes = np.where(is_row, counts, 1)
    messages = np.repeat(np.arange(len(fields)), sizes)
    places = np.arange(len(messages)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    has_row = is_row[messages]
    rows = data.values.take(arrays.numbers(pa.int64(), offsets[messages] + places, has_row))
    old = _old(fields, messages, places)
    each = FieldsOf(values.take(arrays.numbers(pa.int64(), messages)))
    op = op.take(arrays.numbers(pa.int64(), messages, has_row))
    kinds = np.full(len(messages), KIND["change"])
    kinds[is_ddl[messages]] = KIND["schema_change"]
    wrong = ~has_row & ~is_ddl[messages]
    deleted = text_columns.equal(op, "d")
    parts = Parts(
        kinds,
        op,
        layout.row,
        rows,
        _before(deleted, rows, old),
        pc.multiply(each.number("es"), pa.scalar(1000, pa.int64())),
        pc.multiply(each.number("ts"), pa.scalar(1000, pa.int64())),
        {},
        {
            "_transaction_id": text_columns.first_of(each.text("gtid"), each.text("transactionId")),
            "_total_order": arrays.nulls(pa.int64(), len(messages)),
            "_snapshot": arrays.nulls(pa.string(), len(messages)),
            "_table": _table(each),
            "_source_life": _life("canal", arrays.nulls(pa.string(), len(messages))),
        },
        {NO_CHANGE: wrong} if wrong.any() else {},
    )
    return Exploded(parts, messages, places)


def _old(fields: FieldsOf, messages: Ints, places: Ints) -> Array:
    """The changed columns of each row; null: there are none."""
    old = cast("pa.ListArray[Any]", fields.get("old"))
    offsets = arrays.offsets_of(old)
    starts, sizes = offsets[:-1][messages], np.diff(offsets)[messages]
    there = arrays.valid_flags(old)[messages] & (places < sizes)
    return old.values.take(arrays.numbers(pa.int64(), np.where(there, starts + places, 0), there))


def _before(deleted: Flags, row: Array | None, old: Array | None) -> Array | None:
    """The row of a delete, and what an update changed."""
    if row is None or old is None or not deleted.any():
        return row if old is None and deleted.any() else old
    places = np.arange(len(row)) + np.where(deleted, 0, len(row))
    return pa.concat_arrays([row, old]).take(arrays.numbers(pa.int64(), places))


def _op(words: Array, known: dict[str, str]) -> Array:
    index = pc.index_in(words, value_set=arrays.texts(list(known)))
    return arrays.texts(list(known.values())).take(index)


def _table(fields: FieldsOf) -> Array:
    return text_columns.joined([fields.text("database"), fields.text("table")], ".")


def _life(connector: str, server: Array) -> Array:
    return text_columns.joined([connector, text_columns.or_text(server, "")], "/")


_MAXWELL: Final = {"insert": "c", "update": "u", "delete": "d", "bootstrap-insert": "r"}
_BOOTSTRAP: Final = ("bootstrap-start", "bootstrap-complete")
_DDL: Final = "^(table|database)-(create|alter|drop)$"
_CANAL: Final = {"INSERT": "c", "UPDATE": "u", "DELETE": "d"}
