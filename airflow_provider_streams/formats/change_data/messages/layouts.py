"""How one kind of message is written: the types to read its JSON by, and the meanings of the row inside.

A layout is made of a schema and of one message, or of a message alone. The message shows what no schema tells, such as
whether decimals are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.change_data.row_types.column_meanings import LONG, TEXT, Meaning, plain, struct_of
from airflow_provider_streams.formats.change_data.row_types.connect_schema import fields_of, meaning_of
from airflow_provider_streams.formats.change_data.row_types.json_types import shown_type, written
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.type_json import to_json
from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, Field, Simple, StructOf, Type

IMAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "debezium": ("before", "after"),
    "flat": (),
    "canal": ("data", "old"),
    "maxwell": ("data", "old"),
}
"""The fields that hold rows; none: the message is the row."""

_ALWAYS: Final[Mapping[str, dict[str, Type]]] = {
    "debezium": {"op": TEXT, "ts_ms": LONG, "status": TEXT, "ddl": TEXT, "databaseName": TEXT},
    "flat": {},
    "canal": {"type": TEXT, "isDdl": Simple("boolean")},
    "maxwell": {"type": TEXT, "xoffset": LONG},
}
"""Fields that decide what a message is: they are read even if no message has them."""

INSIDE: Final = ("source", "transaction")
"""Fields of Debezium's envelope of which the fields inside are read: connectors have different ones."""

_SOURCE: Final = frozenset({
    "version", "connector", "name", "ts_ms", "ts_us", "ts_ns", "snapshot", "db", "sequence", "schema", "table", "txId",
    "lsn", "xmin", "server_id", "gtid", "file", "pos", "row", "thread", "query", "collection", "ord", "change_lsn",
    "commit_lsn", "event_serial_no", "scn", "commit_scn", "rs_id", "ssn", "redo_thread", "user_name", "lcr_position",
})  # fmt: skip
"""Fields of Debezium's `source`, which flattened rows have with `__` before."""


@dataclass(frozen=True)
class Layout:
    """One way to read messages.

    Args:
        wire: the type of a message's JSON.
        row: the meaning of the row inside; None: the messages hold none.
        has_schema: whether a schema tells all fields; otherwise a field that is not here is another layout's.
        numbers: finds messages with text for a decimal, where this layout reads numbers.
    """

    wire: StructOf
    row: Meaning | None
    has_schema: bool
    numbers: str = ""

    def reads_as(self, other: Layout) -> bool:
        """Whether another layout is the same, also in the form of its texts, which types are compared without."""
        return self == other and to_json(self.wire) == to_json(other.wire)

    @property
    def row_names(self) -> frozenset[str]:
        """The names of the row's columns."""
        return frozenset(one.name for one in self.row.wire.fields) if self.row else frozenset()  # type: ignore[union-attr]  # a struct


def of_schema(schema: Any, sample: Mapping[str, Any], change_format: ChangeFormat) -> Layout:
    """The layout of messages with Kafka Connect's schema.

    Raises:
        InvalidSchema: the schema describes no message.
    """
    fields = fields_of(schema)
    if change_format.envelope == "flat":
        row = {name: meaning_of(one) for name, one in fields.items() if not is_metadata(name)}
        others = {name: meaning_of(one).wire for name, one in fields.items() if is_metadata(name)}
        return _flat(row, others, sample, has_schema=True)
    images = [name for name in IMAGES[change_format.envelope] if name in fields]
    row_schema = fields[images[0]] if images else None
    meaning = meaning_of(row_schema) if row_schema is not None else None
    if meaning is not None and meaning.how != "struct":
        return _documents({name: meaning_of(one).wire for name, one in fields.items()}, has_schema=True)
    others = {name: meaning_of(one).wire for name, one in fields.items() if name not in images}
    return _enveloped(meaning, others, sample, change_format, has_schema=True)


def of_message(sample: Mapping[str, Any], change_format: ChangeFormat) -> Layout:
    """The layout of messages without a schema, like one of them."""
    declared = {one.name: one.type for one in change_format.row.fields}
    if change_format.envelope == "flat":
        row = {name: written(type_, sample.get(name)) for name, type_ in declared.items()}
        others = {name: shown_type(value) for name, value in sample.items() if is_metadata(name)}
        return _flat(row, others, sample, has_schema=False)
    if change_format.envelope == "canal":
        return _canal(sample, declared)
    images = IMAGES[change_format.envelope]
    others = {name: shown_type(value) for name, value in sample.items() if name not in images}
    if has_documents(sample, images):
        return _documents(others | dict.fromkeys(images, TEXT), has_schema=False)
    values = _values(sample, images)
    meaning = struct_of({name: written(type_, values.get(name)) for name, type_ in declared.items()})
    return _enveloped(meaning, others, sample, change_format, has_schema=False)


def has_documents(sample: Mapping[str, Any], images: tuple[str, ...]) -> bool:
    """Whether a message's rows are texts, as MongoDB's are."""
    source = sample.get("source")
    is_mongodb = isinstance(source, Mapping) and source.get("connector") == "mongodb"
    return is_mongodb or any(isinstance(sample.get(name), str) for name in images)


def _documents(wire: dict[str, Type], *, has_schema: bool) -> Layout:
    """MongoDB's rows are JSON documents in a text."""
    return Layout(_struct(_ALWAYS["debezium"] | wire), None, has_schema)


def _enveloped(
    row: Meaning | None, others: dict[str, Type], sample: Mapping[str, Any], change_format: ChangeFormat, *,
    has_schema: bool,
) -> Layout:  # fmt: skip
    images = IMAGES[change_format.envelope]
    wire = {**_ALWAYS[change_format.envelope], **others}
    if row is None:
        return Layout(_struct(wire), None, has_schema)
    row, numbers = _as_numbers(row, _values(sample, images))
    return Layout(_struct(wire | dict.fromkeys(images, row.wire)), row, has_schema, numbers)


def _flat(row: dict[str, Meaning], others: dict[str, Type], sample: Mapping[str, Any], *, has_schema: bool) -> Layout:
    if not row:
        raise InvalidSchema("a message's schema", "its row has no columns")
    meaning, numbers = _as_numbers(struct_of(row), sample)
    fields = {one.name: one.type for one in meaning.wire.fields}  # type: ignore[union-attr]  # a struct
    return Layout(_struct(fields | others), meaning, has_schema, numbers)


def _canal(sample: Mapping[str, Any], declared: Mapping[str, Type]) -> Layout:
    """All values are texts, whatever the plan's columns are."""
    row = struct_of({name: Meaning("text", TEXT, type_) for name, type_ in declared.items()})
    others = {name: shown_type(value) for name, value in sample.items() if name not in IMAGES["canal"]}
    images: dict[str, Type] = dict.fromkeys(IMAGES["canal"], ArrayOf(row.wire))
    return Layout(_struct(_ALWAYS["canal"] | others | images), row, has_schema=False)


def _as_numbers(row: Meaning, values: Mapping[str, Any]) -> tuple[Meaning, str]:
    """The row with those decimals as numbers that a message has as numbers, and the texts that messages must not have.

    A reader of numbers takes texts of numbers as well, and these may be base64.
    """
    found: list[str] = []
    parts: dict[str, Meaning] = {}
    fields: tuple[Field, ...] = row.wire.fields  # type: ignore[union-attr]  # a struct
    for field, part in zip(fields, row.parts, strict=True):
        value = values.get(field.name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(part.type, Decimal) and is_number and part.how in ("decimal", "digits", "plain"):
            found.append(re.escape(field.name))
            parts[field.name] = plain(part.type)
        else:
            parts[field.name] = part
    return (struct_of(parts), rf'"({"|".join(found)})"\s*:\s*"') if found else (row, "")


def _values(sample: Mapping[str, Any], images: tuple[str, ...]) -> dict[str, Any]:
    """The values of a message's rows that are not null."""
    found: dict[str, Any] = {}
    for name in images:
        image = sample.get(name)
        if isinstance(image, Mapping):
            found |= {column: value for column, value in image.items() if value is not None}
    return found


def is_metadata(name: str) -> bool:
    """Whether a field of a flattened row is not the row's: `__op`, `__deleted`, `__source_ts_ms`, `__table`, .."""
    if not name.startswith("__"):
        return False
    plain_name = name[2:]
    return (
        plain_name in ("op", "deleted", "ts_ms", "ts_us", "ts_ns")
        or plain_name.removeprefix("source_") in _SOURCE
        or plain_name in ("transaction_id", "transaction_total_order", "transaction_data_collection_order")
    )


def _struct(fields: Mapping[str, Type]) -> StructOf:
    """Fields whose names differ by case only cannot be read by name: the first one is."""
    kept: dict[str, Field] = {}
    for name, type_ in fields.items():
        kept.setdefault(name.lower(), Field(name, type_))
    return StructOf(tuple(kept.values()))
