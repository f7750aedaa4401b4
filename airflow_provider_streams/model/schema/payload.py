"""What users say about payloads: `value="auto"`, `key=Utf8()`. Values only; a plan pins their meaning (`decoding`)."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Literal

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.parse_time_value import ParseTimeValue
from airflow_provider_streams.model.schema.avro_schema import parse as parse_avro
from airflow_provider_streams.model.schema.change_payload import Canal, ChangePayload, Debezium, Maxwell
from airflow_provider_streams.model.schema.columns_text import Columns, columns_text


def _set(payload: Payload, **values: object) -> None:
    """Set the fields of a frozen payload, in its constructor."""
    for name, value in values.items():
        object.__setattr__(payload, name, value)


@dataclass(frozen=True, slots=True)
class Auto(ParseTimeValue):
    """By the system's own schema, with all its versions.

    Args:
        fields: JSON fields whose type the schema does not tell, written as in `Json`: `price decimal(12,2), at
            timestamp(ms), unitPrice double from unit_price`. They override the schema, which decides other fields. A
            declared field may be null, unless it says `not null`. A value that is no object is the field `value`.
        refuse_unmatched: as in `Json`.
        type: the record type to read, for a topic with several: its full name, or the last part of it. Events of others
            are counted (`other_type`), and are no rows. Several names are former names of one type.
        types: `all` reads every type: rows have the fields of all types, and `_type`.
        version: the version whose columns the table has; empty: the newest one. Events of versions that do not fit it
            are undecodable.
        as_text: whether fields become text if no type holds them in all versions.

    Raises:
        InvalidSchema: it is no such list of fields, both `type` and `types` are given, or a word is unknown.
    """

    format: ClassVar[str] = "auto"

    fields: str
    refuse_unmatched: bool
    type: str | Sequence[str]
    types: Literal["", "all"]
    version: str
    as_text: bool

    def __init__(
        self,
        fields: Columns = "",
        *,
        refuse_unmatched: bool = False,
        type: str | Sequence[str] = (),  # noqa: A002 - the users' word
        types: Literal["", "all"] = "",
        version: str | int = "",
        as_text: bool = False,
    ) -> None:
        _set(self, fields=columns_text(fields) if fields else "", refuse_unmatched=refuse_unmatched, types=types)
        _set(self, type=_type_names(type, types), version=str(version), as_text=as_text)


@dataclass(frozen=True, slots=True)
class Bytes(ParseTimeValue):
    """The bytes as they are: a column `value` of binary."""

    format: ClassVar[str] = "bytes"


@dataclass(frozen=True, slots=True)
class Utf8(ParseTimeValue):
    """Text: a column `value` of string. Bytes that are not UTF-8 cannot be decoded."""

    format: ClassVar[str] = "utf8"


@dataclass(frozen=True, slots=True)
class Json(ParseTimeValue):
    """JSON objects.

    Args:
        columns: the columns, as Spark writes them: `id long, customer string, tags array<string>`; or by name:
            `{"id": "long", "tags": "array<string>"}`. A field that an object lacks is null, unless it says `not null`.
            A column may also say what JSON holds for it: `at timestamp(ms)`, `price string(number)`, `rest json`,
            `total int from sum`.
        refuse_unmatched: whether an event is bad if its object has keys without a column, and lacks a column's key.

    Raises:
        InvalidSchema: it is no such list.
    """

    format: ClassVar[str] = "json"

    columns: str
    refuse_unmatched: bool

    def __init__(self, columns: Columns, *, refuse_unmatched: bool = False) -> None:
        _set(self, columns=columns_text(columns), refuse_unmatched=refuse_unmatched)


@dataclass(frozen=True, slots=True)
class Avro(ParseTimeValue):
    """Avro's binary form, without a header.

    Args:
        schema: the writer's schema: Avro's JSON, as text or as values.

    Raises:
        InvalidSchema: it is no Avro schema.
    """

    format: ClassVar[str] = "avro"

    schema: str

    def __init__(self, schema: str | Mapping[str, Any] | list[Any]) -> None:
        text = schema if isinstance(schema, str) else json.dumps(schema, separators=(",", ":"))
        parse_avro(text)
        _set(self, schema=text)


@dataclass(frozen=True, slots=True)
class Protobuf(ParseTimeValue):
    """Messages of one type.

    Args:
        descriptor: a `FileDescriptorSet` with all imports (`protoc --include_imports --descriptor_set_out`), as bytes
            or base64.
        message: the message's full name, `shop.Order`.

    Raises:
        InvalidSchema: there are no such bytes, or no name.
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
        _set(self, descriptor=text, message=message)


@dataclass(frozen=True, slots=True)
class Registry(ParseTimeValue):
    """By the schemas of a Pravega Schema Registry: each event names its schema.

    Args:
        conn_id: the registry's Airflow connection.
        group: the schemas' group; by default the stream's name.
        namespace: the group's namespace; by default the stream's scope.
        codecs: functions of your own that decompress, `package.module:function`, by the codec's name in the registry.
            `airflow_provider_streams.formats.codecs:lz4` is a ready one.
        type: as in `Auto`, for a group with several record types.
        types: as in `Auto`.
        version: the id of the encoding whose columns the table has, as in `Auto`.
        as_text: as in `Auto`.
        refuse_unmatched: as in `Json`, for a group of JSON schemas.

    Raises:
        InvalidSchema: a function is not written so; or as in `Auto`.
    """

    format: ClassVar[str] = "registry"

    conn_id: str = "registry_default"
    group: str | None = None
    namespace: str | None = None
    codecs: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    type: str | Sequence[str] = ()
    types: Literal["", "all"] = ""
    version: str = ""
    as_text: bool = False
    refuse_unmatched: bool = False

    def __post_init__(self) -> None:
        given: object = self.codecs
        if isinstance(given, str):
            raise InvalidSchema(f"codecs={given!r:.{_SHOWN}}", "they are functions by the names of codecs")
        pairs = tuple(sorted(dict(self.codecs).items()))
        for name, function in pairs:
            if not _FUNCTION.fullmatch(function):
                raise InvalidSchema(f"codecs[{name!r}]", f"{function!r:.80} is not written package.module:function")
        _set(self, type=_type_names(self.type, self.types), codecs=pairs, version=str(self.version))


def _type_names(given: str | Sequence[str], types: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    if any(not isinstance(name, str) or not name.strip(".") for name in names):
        raise InvalidSchema(f"type={given!r}"[:_SHOWN], "it is no name of a record type", "Write type='shop.Order'.")
    if types not in ("", "all"):
        raise InvalidSchema(f"types={types!r}"[:_SHOWN], "it is not 'all'", "Write types='all', or type='<name>'.")
    if names and types:
        raise InvalidSchema("type and types", "one of them says which types are read", "Leave one of them out.")
    return names


Payload = Auto | Bytes | Utf8 | Json | Avro | Protobuf | Registry | ChangePayload
PayloadLike = Payload | Literal["auto", "bytes", "utf8", "debezium", "canal", "maxwell"]
"""A payload as users write it; a word means what needs no arguments."""

_SHOWN: Final = 80
_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

PAYLOADS: Final[dict[str, type[Payload]]] = {
    kind.format: kind for kind in (Auto, Bytes, Utf8, Json, Avro, Protobuf, Registry, Debezium, Canal, Maxwell)
}
WORDS: Final[dict[str, Payload]] = {kind.format: kind() for kind in (Auto, Bytes, Utf8, Debezium, Canal, Maxwell)}
"""Payloads that need no arguments."""


def payload_from(given: object, field: str = "value") -> Payload | None:
    """A payload that a user wrote, or that JSON holds, for a field of a source; None: the stored bytes are a column.

    Raises:
        InvalidSchema: it is something else.
    """
    if given is None or isinstance(given, Payload):
        return given
    if isinstance(given, str) and given in WORDS:
        return WORDS[given]
    if isinstance(given, Mapping) and given.get("format") in PAYLOADS:
        arguments = {name: value for name, value in given.items() if name != "format"}
        try:
            return PAYLOADS[given["format"]](**arguments)
        except TypeError as error:
            raise InvalidSchema(str(given["format"]), f"these are not its arguments: {error}") from error
    raise InvalidSchema(
        f"{field}={given!r:.{_SHOWN}}",
        "it is none of 'auto', Json(..), Avro(..), Protobuf(..), Registry(..), Utf8(), Bytes(), Debezium(), "
        "Canal() and Maxwell()",
    )


def payload_to_json(payload: Payload | None) -> dict[str, Any] | None:
    """Plain JSON values, without defaults, for `payload_from`."""
    if payload is None:
        return None
    shapes = {"codecs": dict, "type": list}
    told = {one.name: getattr(payload, one.name) for one in fields(payload)}
    plain = {name: shapes[name](value) if name in shapes else value for name, value in told.items() if value}
    return {"format": payload.format, **plain}
