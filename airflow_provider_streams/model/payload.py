"""What users say of payloads: `value="auto"`, `key=Utf8()`. Values only; a plan pins what they mean (`decoding`)."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Literal

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.avro_schema import parse as parse_avro
from airflow_provider_streams.model.ddl import parse_columns


@dataclass(frozen=True, slots=True)
class Auto:
    """By the schema that the system itself knows, with all its versions."""

    format: ClassVar[str] = "auto"


@dataclass(frozen=True, slots=True)
class Bytes:
    """The bytes as they are: a column `value` of binary."""

    format: ClassVar[str] = "bytes"


@dataclass(frozen=True, slots=True)
class Utf8:
    """Text: a column `value` of string. Bytes that are no UTF-8 cannot be decoded."""

    format: ClassVar[str] = "utf8"


@dataclass(frozen=True, slots=True)
class Json:
    """JSON objects.

    Args:
        columns: those that become columns, as Spark writes them: `id long, customer string, tags array<string>`.
            A field that an object lacks is null, unless it says `not null`.

    Raises:
        InvalidSchema: not such a list.
    """

    format: ClassVar[str] = "json"

    columns: str

    def __post_init__(self) -> None:
        parse_columns(self.columns)


@dataclass(frozen=True, slots=True)
class Avro:
    """Avro's binary form, without a header.

    Args:
        schema: of the writer: Avro's JSON, as text or as values.

    Raises:
        InvalidSchema: not one.
    """

    format: ClassVar[str] = "avro"

    schema: str

    def __init__(self, schema: str | Mapping[str, Any] | list[Any]) -> None:
        text = schema if isinstance(schema, str) else json.dumps(schema, separators=(",", ":"))
        parse_avro(text)
        object.__setattr__(self, "schema", text)


@dataclass(frozen=True, slots=True)
class Protobuf:
    """Messages of one type.

    Args:
        descriptor: a `FileDescriptorSet` with all that it imports (`protoc --include_imports --descriptor_set_out`):
            its bytes, or these as base64.
        message: the message's full name, `shop.Order`.

    Raises:
        InvalidSchema: no bytes, or no name.
    """

    format: ClassVar[str] = "protobuf"

    descriptor: str
    message: str

    def __init__(self, descriptor: bytes | str, message: str) -> None:
        text = descriptor if isinstance(descriptor, str) else base64.b64encode(descriptor).decode()
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidSchema("Protobuf", "its descriptor is neither bytes nor base64") from error
        if not text or not message:
            raise InvalidSchema("Protobuf", "it needs a descriptor and the name of a message")
        object.__setattr__(self, "descriptor", text)
        object.__setattr__(self, "message", message)


@dataclass(frozen=True, slots=True)
class Registry:
    """By the schemas of a Pravega Schema Registry: each event says which one it was written with.

    Args:
        conn_id: the registry's Airflow connection.
        group: of the schemas; by default the stream's name.
        namespace: of the group; by default the stream's scope.
        codecs: what undoes codecs that are not built in: by the codec's name in the registry a function of one's own,
            `package.module:function`. `airflow_provider_streams.formats.codecs:lz4` is a ready one.

    Raises:
        InvalidSchema: a function that is not written so.
    """

    format: ClassVar[str] = "registry"

    conn_id: str = "registry_default"
    group: str | None = None
    namespace: str | None = None
    codecs: Mapping[str, str] | tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        pairs = tuple(sorted(dict(self.codecs).items()))
        for name, function in pairs:
            if not _FUNCTION.fullmatch(function):
                raise InvalidSchema(f"codec {name!r}", f"{function!r:.80} is not written package.module:function")
        object.__setattr__(self, "codecs", pairs)


Payload = Auto | Bytes | Utf8 | Json | Avro | Protobuf | Registry
PayloadLike = Payload | Literal["auto", "bytes", "utf8"]
"""A payload as users write it; a word means what needs no arguments."""

_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

_KINDS: Final[dict[str, type[Payload]]] = {
    kind.format: kind for kind in (Auto, Bytes, Utf8, Json, Avro, Protobuf, Registry)
}
_WORDS: Final[dict[str, Payload]] = {"auto": Auto(), "bytes": Bytes(), "utf8": Utf8()}


def payload_from(given: object) -> Payload | None:
    """What a user wrote, or what stands in JSON, as a value; None: bytes in a column, as they were stored.

    Raises:
        InvalidSchema: something else.
    """
    if given is None or isinstance(given, Payload):
        return given
    if isinstance(given, str) and given in _WORDS:
        return _WORDS[given]
    if isinstance(given, Mapping) and given.get("format") in _KINDS:
        arguments = {name: value for name, value in given.items() if name != "format"}
        try:
            return _KINDS[given["format"]](**arguments)
        except TypeError as error:
            raise InvalidSchema(str(given["format"]), f"these are not its arguments: {error}") from error
    raise InvalidSchema(
        repr(given)[:80], "it is none of 'auto', Json(..), Avro(..), Protobuf(..), Registry(..), Utf8() and Bytes()"
    )


def payload_to_json(payload: Payload | None) -> dict[str, Any] | None:
    """As plain JSON values, for `payload_from`."""
    if payload is None:
        return None
    values = {one.name: getattr(payload, one.name) for one in fields(payload)}
    plain = {name: dict(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {"format": payload.format, **plain}


_SCHEMAS: Final = {
    "json": "its columns, `id long, customer string`",
    "avro": "its schema as JSON",
    "protobuf": "`<full name>:<descriptor set as base64>`",
}


def payload_of_options(what: str, format_: str | None, schema: str | None) -> Payload | None:
    """A payload from texts: `value_format` and `value_schema` of Spark's options and the command line.

    Args:
        what: `value` or `key`, for messages.
        format_: `auto`, `bytes`, `utf8`, `json`, `avro`, `protobuf` or `registry`; None: not decoded.
        schema: of json its columns; of avro its JSON; of protobuf `<full name>:<descriptor set as base64>`; of
            registry the connection.

    Raises:
        InvalidSchema: an unknown format, a schema that it needs and lacks, or one that it has no use for.
    """
    if format_ is None:
        if schema is not None:
            raise InvalidSchema(f"{what}_schema", f"it says nothing without {what}_format")
        return None
    if format_ in _WORDS and schema is None:
        return payload_from(format_)
    if format_ == "registry":
        return Registry(schema) if schema else Registry()
    if format_ in _WORDS:
        raise InvalidSchema(f"{what}_schema", f"{what}_format={format_!r} needs none", "Leave it out.")
    if format_ not in _KINDS:
        raise InvalidSchema(f"{what}_format", f"{format_!r:.40} is none of {', '.join(_KINDS)}", "Write one of them.")
    if not schema:
        raise InvalidSchema(f"{what}_schema", f"{what}_format={format_!r} needs it: {_SCHEMAS[format_]}", "Add it.")
    if format_ == "protobuf":
        message, _, descriptor = schema.partition(":")
        return Protobuf(descriptor, message)
    return Json(schema) if format_ == "json" else Avro(schema)
