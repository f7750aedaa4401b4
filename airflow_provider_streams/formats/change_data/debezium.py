"""What Debezium's messages say: with their envelope, or as `ExtractNewRecordState` leaves the row alone."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags
from airflow_provider_streams.formats.change_data.message_parts import KIND, FieldsOf, Kinds, Parts
from airflow_provider_streams.formats.change_data.messages.layouts import Layout, is_metadata
from airflow_provider_streams.formats.change_data.values import text_columns

NO_CHANGE: Final = (
    "is no message of Debezium: it has no op. Is it flattened by ExtractNewRecordState, or of another connector?"
)
UNKNOWN_OP: Final = "has an op that Debezium does not document"
NO_DOCUMENT: Final = (
    "has no whole document after the update. Set capture.mode=change_streams_update_full in the MongoDB connector"
)


def of_envelope(values: Array, layout: Layout) -> Parts:
    """Changes in Debezium's envelope: `before`, `after`, `source`, `op`."""
    fields = FieldsOf(values)
    count = len(fields)
    op = fields.text("op")
    kinds, wrong = _kinds(fields, op)
    is_row = text_columns.among(op, _ROWS)
    source, transaction = fields.inside("source"), fields.inside("transaction")
    after, before = fields.get("after"), fields.get("before")
    if layout.row is None and after is not None and not pa.types.is_string(after.type):
        after = before = None
    lacking = _lacking_document(layout, op, after)
    return Parts(
        kinds,
        text_columns.only(op, is_row),
        layout.row,
        after,
        before,
        source.microseconds(),
        fields.microseconds(),
        source.named(),
        {
            "_transaction_id": text_columns.first_of(transaction.text("id"), source.text("txId"), source.text("gtid")),
            "_total_order": transaction.number("total_order"),
            "_snapshot": snapshot(source.text("snapshot")),
            "_table": table(source),
            "_source_life": life(source, count),
        },
        wrong | ({NO_DOCUMENT: lacking} if lacking.any() else {}),
    )


def of_flat(values: Array, layout: Layout) -> Parts:
    """Rows without an envelope. A row that does not say what happened to it is `u`: it is there from then on."""
    row_fields = FieldsOf(values)
    count = len(row_fields)
    names = [one.name for one in layout.wire.fields]
    source = FieldsOf(_renamed(values, {name: name[2:].removeprefix("source_") for name in names if is_metadata(name)}))
    deleted = np.zeros(count, np.bool_)
    if "deleted" in source:
        deleted = text_columns.equal(source.text("deleted"), "true")
    stated = text_columns.or_text(source.text("op"), "u")
    op = text_columns.or_text(text_columns.only(stated, ~deleted), "d")
    known = text_columns.among(op, _ROWS)
    kinds = np.full(count, KIND["change"])
    kinds[text_columns.equal(op, "t")] = KIND["truncate"]
    rows = _renamed(values, {name: name for name in sorted(layout.row_names, key=names.index)})
    return Parts(
        kinds,
        text_columns.only(op, known),
        layout.row,
        rows,
        rows,
        source.microseconds(),
        None,
        source.named(),
        {
            "_transaction_id": text_columns.first_of(
                source.text("transaction_id"), source.text("txId"), source.text("gtid")
            ),
            "_total_order": source.number("transaction_total_order"),
            "_snapshot": snapshot(source.text("snapshot")),
            "_table": table(source),
            "_source_life": life(source, count),
        },
        {} if known.all() else {UNKNOWN_OP: ~known},
    )


def _renamed(values: Array, names: dict[str, str]) -> Array:
    """A struct of some fields under other names; the first one of a name counts."""
    kept: dict[str, Array] = {}
    for old, new in names.items():
        kept.setdefault(new, pc.struct_field(values, old))
    if not kept:
        return arrays.nulls(pa.struct([]), len(values))
    made: Array = pa.StructArray.from_arrays(list(kept.values()), names=list(kept))
    return made


def _kinds(fields: FieldsOf, op: Array) -> tuple[Kinds, dict[str, Flags]]:
    """What each message is, and which are nothing that is known."""
    kinds: Kinds = np.full(len(fields), KIND["change"])
    has_op = arrays.valid_flags(op)
    for letter, kind in (("t", "truncate"), ("m", "logical_message")):
        kinds[text_columns.equal(op, letter)] = KIND[kind]
    known = text_columns.among(op, (*_ROWS, "m"))
    transaction = ~has_op & fields.there("status")
    ddl = ~has_op & ~transaction & (fields.there("ddl") | fields.there("databaseName") | fields.there("tableChanges"))
    heartbeat = ~has_op & ~transaction & ~ddl & fields.there("ts_ms") & ~_has_more(fields)
    kinds[transaction], kinds[ddl], kinds[heartbeat] = KIND["transaction"], KIND["schema_change"], KIND["heartbeat"]
    wrong = {
        NO_CHANGE: ~has_op & ~transaction & ~ddl & ~heartbeat,
        UNKNOWN_OP: has_op & ~known,
    }
    return kinds, {text: rows for text, rows in wrong.items() if rows.any()}


def _has_more(fields: FieldsOf) -> Flags:
    """Which messages have something other than times."""
    found = np.zeros(len(fields), np.bool_)
    for name in fields.names:
        if name not in ("ts_ms", "ts_us", "ts_ns"):
            found |= fields.there(name)
    return found


def _lacking_document(layout: Layout, op: Array, after: Array | None) -> Flags:
    """MongoDB's updates say what changed alone, unless the connector looks the document up."""
    if layout.row is not None:
        return np.zeros(len(op), np.bool_)
    needs = text_columns.among(op, ("c", "r", "u"))
    found: Flags = needs if after is None else needs & ~arrays.valid_flags(after)
    return found


def snapshot(values: Array) -> Array:
    """What part of a snapshot rows are from; null for live changes."""
    return text_columns.only(values, ~text_columns.equal(values, "false"))


def table(source: FieldsOf) -> Array:
    """The table's name, with its schema; of databases without schemas, with its database."""
    holder = text_columns.first_of(source.text("schema"), source.text("db"))
    name = text_columns.first_of(source.text("table"), source.text("collection"))
    return text_columns.first_of(text_columns.joined([holder, name], "."), name)


def life(source: FieldsOf, count: int) -> Array:
    """The connector, its name, the database and the server. Rows of MySQL's snapshots do not know their server."""
    connector = source.text("connector")
    if connector.null_count == count:
        return connector
    server = source.text("server_id")
    server = text_columns.only(server, ~text_columns.equal(server, "0"))
    database = text_columns.only(source.text("db"), _is_per_database(source, connector))
    parts = [text_columns.or_text(one, "") for one in (source.text("name"), database, server)]
    return text_columns.joined([connector, *parts], "/")


def _is_per_database(source: FieldsOf, connector: Array) -> Flags:
    """Of each row, whether its log is of one database: Postgres has a schema within it; MySQL's log is of the server.

    Whatever else is in the batch: a topic may have the changes of several connectors.
    """
    has_lsn = arrays.valid_flags(source.text("lsn")) | text_columns.equal(connector, "postgresql")
    found: Flags = arrays.valid_flags(source.text("schema")) & has_lsn
    return found


_ROWS: Final = ("r", "c", "u", "d", "t")
