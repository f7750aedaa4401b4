"""Payloads as options of Spark and the command line name them: `value_format`, `value_schema`, .."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.change_payload import Canal, Debezium, Maxwell
from airflow_provider_streams.model.schema.payload import (
    PAYLOADS,
    WORDS,
    Auto,
    Avro,
    Json,
    Payload,
    Protobuf,
    Registry,
    payload_from,
)

_SCHEMA_OPTIONAL: Final[dict[str, Callable[..., Payload]]] = {
    kind.format: kind for kind in (Auto, Registry, Debezium, Canal, Maxwell)
}
_SCHEMAS: Final = {
    "json": """its columns, `id long, customer string` or `{"id": "long", "customer": "string"}`""",
    "avro": "its schema as JSON",
    "protobuf": "`<full name>:<descriptor set as base64>`",
}

PAYLOAD_FLAGS: Final = ("as_text", "refuse_unmatched")
"""The parts of payloads that options set to true or false."""
_OF_SCHEMAS: Final = ("type", "types", "version", *PAYLOAD_FLAGS, "placeholder")
PAYLOAD_PARTS: Final = ("format", "schema", *_OF_SCHEMAS)
"""The parts of payloads that options set: `value_format` is the format of values."""


_KINDS: Final = "|".join(kind.__name__ for kind in PAYLOADS.values())
PAYLOAD_IN_TEXT: Final = re.compile(rf"\b(value|key)=({_KINDS})\(((?:[^()]|\([^()]*\))*)\)")
"""A payload in an error, as Python writes it: of what, its class and its arguments."""
FIRST_IN_TEXT: Final = re.compile(r"'([^'\n]*)'")
"""The columns, or the schema, at the beginning of its arguments."""
ARGUMENT_IN_TEXT: Final = re.compile(r"""\b([a-z][a-z_]*)=(True|\.\.|'[^'\n]*'|"[^"\n]*")""")
"""An argument in an error: its name and its value."""


def payload_of_options(what: str, given: Mapping[str, Any]) -> Payload | None:
    """A payload of `value_format`, `value_schema` and the other options of Spark and the command line.

    Args:
        what: `value` or `key`, for messages.
        given: by the names of `PAYLOAD_PARTS`, of which empty ones do not count.
            format: `auto`, `bytes`, `utf8`, `json`, `avro`, `protobuf`, `registry`, `debezium`, `canal` or `maxwell`;
            None: not decoded.
            schema: json: its columns; auto: the fields whose type its JSON schema does not tell; avro: its JSON;
            protobuf: `<full name>:<descriptor set as base64>`; registry: the connection; changes of a database: columns
            that no message tells.
            The others: the payload's arguments of these names. Commas separate several names of a type.

    Raises:
        InvalidSchema: the format is unknown, a schema is missing, or the format has no use for a part.
    """
    plain = _plain_of_options(what, given.get("format"), given.get("schema"))
    told: dict[str, Any] = {name: given[name] for name in _OF_SCHEMAS if given.get(name)}
    for name in told:
        formats = [kind.format for kind in PAYLOADS.values() if name in {one.name for one in fields(kind)}]
        if plain is None or plain.format not in formats:
            reason = f"it says nothing without {what}_format={' or '.join(formats)}"
            raise InvalidSchema(f"{what}_{name}", reason, "Leave it out.")
    if "type" in told:
        told["type"] = tuple(told["type"].split(","))
    return None if plain is None else replace(plain, **told)


def _plain_of_options(what: str, format_: str | None, schema: str | None) -> Payload | None:
    if format_ is None:
        if schema is not None:
            raise InvalidSchema(f"{what}_schema", f"it says nothing without {what}_format")
        return None
    if format_ in _SCHEMA_OPTIONAL:
        return _SCHEMA_OPTIONAL[format_](schema) if schema else _SCHEMA_OPTIONAL[format_]()
    if format_ in WORDS and schema is None:
        return payload_from(format_)
    if format_ in WORDS:
        raise InvalidSchema(f"{what}_schema", f"{what}_format={format_!r} needs none", "Leave it out.")
    if format_ not in PAYLOADS:
        raise InvalidSchema(f"{what}_format", f"{format_!r:.40} is none of {', '.join(PAYLOADS)}", "Write one of them.")
    if not schema:
        raise InvalidSchema(f"{what}_schema", f"{what}_format={format_!r} needs it: {_SCHEMAS[format_]}", "Add it.")
    if format_ == "protobuf":
        message, _, descriptor = schema.partition(":")
        return Protobuf(descriptor, message)
    return Json(schema) if format_ == "json" else Avro(schema)
