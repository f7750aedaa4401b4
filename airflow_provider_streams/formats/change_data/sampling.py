"""What a plan pins of a few messages: the columns, the key, and how messages are written. No Arrow, no numpy.

A plan reads the first and the last message of each split. It also knows the columns of the reader's former window.
Where a reader then meets another column, it fails with `UnplannedColumns`, and the next plan has the column: no row is
landed without one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.change_data.messages.connect_json import split_message
from airflow_provider_streams.formats.change_data.messages.layouts import IMAGES, has_documents, is_metadata
from airflow_provider_streams.formats.change_data.row_types.connect_schema import fields_of, meaning_of
from airflow_provider_streams.formats.change_data.row_types.json_types import shown_type, shows_type
from airflow_provider_streams.formats.change_data.row_types.mysql_types import mysql_type
from airflow_provider_streams.formats.change_data.row_types.uniting import united
from airflow_provider_streams.model.schema.change_payload import Canal, ChangePayload, Debezium, Maxwell
from airflow_provider_streams.model.schema.change_rows import UNAVAILABLE, ChangeFormat, DecimalText, Envelope
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.types import Decimal, Field, StructOf, Type


class Sample(NamedTuple):
    """A message that a plan looked at."""

    value: bytes | None
    key: bytes | None = None


class _Message(NamedTuple):
    """The same message, parsed."""

    body: Mapping[str, Any]
    schema: Mapping[str, Any] | None
    key: Sample


def planned_format(
    payload: ChangePayload, samples: Sequence[Sample], former: ChangeFormat | None = None
) -> ChangeFormat:
    """How the messages of a window become change rows.

    Args:
        payload: what the user declared.
        samples: messages of the window, in any order.
        former: what the reader's former window pinned; its columns stay.

    Raises:
        InvalidSchema: nothing tells the columns, or messages have one column as different types.
    """
    messages = [one for one in map(_parsed, samples) if one is not None]
    envelope = _envelope(payload, messages, former)
    changes = [one for one in messages if _is_change(one, envelope)]
    declared = parse_columns(payload.columns) if payload.columns else StructOf(())
    row, inferred = _row(changes, envelope, declared, former)
    if not row.fields:
        raise InvalidSchema(
            f"value={payload.format}",
            "no message tells the columns of the table",
            f"Declare them: value={type(payload).__name__}('id long, name string'), or plan a window that has changes.",
        )
    keys = tuple(name for name in _keys(changes, samples, former) if name in {one.name for one in row.fields})
    placeholder = payload.placeholder if isinstance(payload, Debezium) else UNAVAILABLE
    text = _decimal_text(changes, row, envelope) or (former.decimal_text if former else "")
    own = tuple(one.name for one in declared.fields)
    return ChangeFormat(row, envelope, keys, placeholder, text, inferred, own)


def is_silent(payload: ChangePayload, samples: Sequence[Sample], former: ChangeFormat | None) -> bool:
    """Whether no message tells the columns and the key. Declared columns do not tell the key, nor all columns."""
    if former:
        return False
    messages = [one for one in map(_parsed, samples) if one is not None]
    envelope = _envelope(payload, messages, former)
    return not any(_is_change(one, envelope) for one in messages)


def without_pair(sample: Sample) -> Sample:
    """The key and the value of a payload that holds both, each after its length."""
    payload, parts = sample.value or b"", []
    for _ in ("key", "value"):
        length = int.from_bytes(payload[:_LENGTH], "big", signed=True)
        parts.append(payload[_LENGTH : _LENGTH + length] if length >= 0 else None)
        payload = payload[_LENGTH + max(0, length) :]
    return Sample(parts[1], parts[0])


def _parsed(sample: Sample) -> _Message | None:
    """A message that is an object; None: it tells nothing."""
    if not sample.value:
        return None
    schema, body = split_message(sample.value)
    try:
        found = json.loads(body)
        told = json.loads(schema) if schema else None
    except (ValueError, RecursionError):
        return None
    return _Message(found, told, sample) if isinstance(found, dict) else None


def _envelope(payload: ChangePayload, messages: Sequence[_Message], former: ChangeFormat | None) -> Envelope:
    match payload:
        case Canal():
            return "canal"
        case Maxwell():
            return "maxwell"
    found = {one for one in map(_debezium_envelope, messages) if one}
    if len(found) > 1:
        raise InvalidSchema(
            "value=Debezium()",
            "some messages have Debezium's envelope, and others are flattened by ExtractNewRecordState",
            "Read a topic that is written in one way.",
        )
    return found.pop() if found else former.envelope if former else "debezium"


def _debezium_envelope(message: _Message) -> Envelope | None:
    """None: the message is of no table."""
    names = message.body.keys()
    if {"op", "source"} <= names:
        return "debezium"
    if names <= {"ts_ms", "ts_us", "ts_ns"} or ("status" in names and "event_count" in names):
        return None
    if ("ddl" in names or "tableChanges" in names) and ("source" in names or "databaseName" in names):
        return None
    return "flat"


def _is_change(message: _Message, envelope: Envelope) -> bool:
    body = message.body
    match envelope:
        case "debezium":
            return "op" in body and any(name in body for name in IMAGES[envelope])
        case "flat":
            return _debezium_envelope(message) == "flat"
    return bool(body.get("data"))


def _row(
    changes: Sequence[_Message], envelope: Envelope, declared: StructOf, former: ChangeFormat | None
) -> tuple[StructOf, tuple[str, ...]]:
    """The columns, and those whose type is only what JSON shows."""
    own = {one.name: one for one in declared.fields}
    told, shown = StructOf(()), StructOf(())
    is_shown = dict.fromkeys(former.inferred, True) if former else {}
    for message in changes:
        columns, is_told = _columns_of(message, envelope)
        if _is_document(message, envelope):
            return (declared, ()) if own else (DOCUMENT, ())
        others = StructOf(tuple(one for one in columns if one.name not in own))
        if is_told:
            told = united(told, others)
        else:
            shown = united(shown, others)
    _refuse_numbers([one for one in changes if one.schema is None], envelope, own)
    nothing = _untold(changes, envelope, own)
    kept = StructOf(tuple(one for one in former.row.fields if one.name not in own)) if former else StructOf(())
    nothing = StructOf(
        tuple(
            one
            for one in nothing.fields
            if one.name not in {f.name for f in (*kept.fields, *shown.fields, *told.fields)}
        )
    )
    row = united(united(united(kept, told), shown), nothing)
    for one in (*shown.fields, *nothing.fields):
        is_shown[one.name] = True
    for one in told.fields:
        is_shown.pop(one.name, None)
    fields = (*declared.fields, *row.fields)
    return StructOf(fields), tuple(name for name in is_shown if name not in own)


def _columns_of(message: _Message, envelope: Envelope) -> tuple[list[Field], bool]:
    """The columns that a message shows, except those whose value shows no type, and whether a schema tells them."""
    if message.schema is not None:
        fields = fields_of(message.schema)
        if envelope == "flat":
            return [Field(name, meaning_of(one).type) for name, one in fields.items() if not is_metadata(name)], True
        image = next((fields[name] for name in IMAGES[envelope][::-1] if name in fields), None)
        type_: Type = meaning_of(image).type if image is not None else StructOf(())
        return (list(type_.fields) if isinstance(type_, StructOf) else []), True
    if envelope == "canal":
        types = message.body.get("mysqlType")
        told = types if isinstance(types, Mapping) else {}
        names = dict.fromkeys(name for row in _rows(message, envelope) for name in row)
        return [Field(name, mysql_type(str(told.get(name, "")))) for name in names], bool(told)
    values = {name: value for row in _rows(message, envelope) for name, value in row.items() if shows_type(value)}
    return [Field(name, shown_type(value)) for name, value in values.items()], False


def _rows(message: _Message, envelope: Envelope) -> list[Mapping[str, Any]]:
    """The rows inside a message."""
    if envelope == "flat":
        return [{name: value for name, value in message.body.items() if not is_metadata(name)}]
    found: list[Mapping[str, Any]] = []
    for name in IMAGES[envelope]:
        image = message.body.get(name)
        found += [one for one in (image if isinstance(image, list) else [image]) if isinstance(one, Mapping)]
    return found


def _untold(changes: Sequence[_Message], envelope: Envelope, own: Mapping[str, Field]) -> StructOf:
    """Columns whose values show no type in any message: text, or lists of text, until something else is known."""
    types: dict[str, Type] = {}
    for one in changes:
        for row in _rows(one, envelope) if one.schema is None else ():
            for name, value in row.items():
                if name not in own and (name not in types or value is not None):
                    types[name] = shown_type(value if isinstance(value, list) else None)
    return StructOf(tuple(Field(name, type_) for name, type_ in types.items()))


def _is_document(message: _Message, envelope: Envelope) -> bool:
    return envelope == "debezium" and has_documents(message.body, IMAGES[envelope])


def _refuse_numbers(messages: Sequence[_Message], envelope: Envelope, own: Mapping[str, Field]) -> None:
    """Refuse text that may be a number in base64, whose scale nothing tells.

    Raises:
        InvalidSchema: there is such a column, and the user did not declare it.
    """
    if envelope in ("canal", "maxwell"):
        return
    for message in messages:
        for row in _rows(message, envelope):
            for name, value in row.items():
                if name not in own and isinstance(value, str) and _SHORT_BASE64.fullmatch(value):
                    raise InvalidSchema(
                        name,
                        "its values are base64, which may be numbers of unknown scale, or bytes",
                        "Set decimal.handling.mode=string in the connector, write schemas into the messages "
                        "(value.converter.schemas.enable=true), or declare it: "
                        f"value=Debezium('{name} decimal(12, 2)')",
                    )


def _keys(changes: Sequence[_Message], samples: Sequence[Sample], former: ChangeFormat | None) -> Sequence[str]:
    """The names of the key's fields, by the last message that tells them."""
    for message in reversed(changes):
        named = message.body.get("primary_key_columns") or message.body.get("pkNames")
        if isinstance(named, list) and all(isinstance(name, str) for name in named):
            return named
    return key_names(samples, former)


def key_names(samples: Sequence[Sample], former: ChangeFormat | None) -> Sequence[str]:
    """The names of the key's fields, by the last key that tells them; else those of the former window."""
    for sample in reversed(samples):
        if sample.key and (found := _key_names(sample.key)):
            return found
    return former.keys if former else ()


def _key_names(key: bytes) -> list[str]:
    _, body = split_message(key)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return []
    return [name.removeprefix("pk.") for name in found] if isinstance(found, dict) else []


def _decimal_text(changes: Sequence[_Message], row: StructOf, envelope: Envelope) -> DecimalText:
    """How texts hold decimals, by texts that can be one of both only."""
    if envelope in ("canal", "maxwell"):
        return "digits"
    names = {one.name for one in row.fields if isinstance(one.type, Decimal)}
    texts = [
        value for one in changes if one.schema is None for held in _rows(one, envelope)
        for name, value in held.items() if name in names and isinstance(value, str)
    ]  # fmt: skip
    is_number = [bool(_NUMBER.fullmatch(text)) for text in texts]
    is_base64 = [bool(_BASE64.fullmatch(text)) for text in texts]
    digits = any(one and not other for one, other in zip(is_number, is_base64, strict=True))
    base64 = any(other and not one for one, other in zip(is_number, is_base64, strict=True))
    return "" if digits == base64 else "digits" if digits else "base64"


def with_columns(change_format: ChangeFormat, columns: StructOf) -> ChangeFormat:
    """The format with columns that `UnplannedColumns` told."""
    row = united(change_format.row, columns)
    new = [one.name for one in columns.fields if one.name not in change_format.names]
    # where some columns are inferred or declared, no schema tells the new ones
    is_untold = bool(change_format.inferred or change_format.declared)
    inferred = (*change_format.inferred, *new) if is_untold else change_format.inferred
    return replace(change_format, row=row, inferred=inferred)


_LENGTH: Final = 4
"""Bytes of the length of a key or a value in a pair."""
DOCUMENT: Final = parse_columns("_id string, document string")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,4})?")
_BASE64: Final = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)")
_SHORT_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4}){0,5}(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)")
