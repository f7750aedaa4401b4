"""Columns of parsed messages, field by field."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from airflow_provider_streams.errors import UNFIT
from airflow_provider_streams.formats.arrow.arrays import Array, Ints, lists, numbers, spread, structs
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type, entry_type
from airflow_provider_streams.formats.arrow.times import instants
from airflow_provider_streams.formats.decode_failures import GOOD, Causes, Codes
from airflow_provider_streams.formats.protobuf.columns import (
    SPECIAL,
    TIMESTAMP,
    UNSIGNED,
    WRAPPERS,
    FieldPair,
    MessagePair,
)
from airflow_provider_streams.formats.protobuf.enums import Enums
from airflow_provider_streams.formats.protobuf.retyped_fields import ENUM, Misfit, conversion, shown
from airflow_provider_streams.model.schema.types import ArrayOf, MapOf, StructOf, Type, below

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor


class Columns:
    """Makes columns of fields. `rows` are the rows of the values, to blame them."""

    def __init__(self, codes: Codes, causes: Causes, enums: Enums) -> None:
        self._codes, self._causes, self._enums = codes, causes, enums

    def struct(self, message: MessagePair, type_: StructOf, messages: list[Any], rows: Ints, path: str) -> Array:
        """Messages as structs."""
        columns = [
            self._field(pair, one.type, messages, rows, below(path, pair.field.name))
            for pair, one in zip(message.fields(), type_.fields, strict=True)
        ]
        return structs(arrow_type(type_), columns, len(messages))  # type: ignore[arg-type]

    def _field(self, pair: FieldPair, type_: Type, messages: list[Any], rows: Ints, path: str) -> Array:
        field = pair.field
        name = field.name
        get = attrgetter(name)
        match type_:
            case MapOf():
                return self._map(pair, type_, list(map(get, messages)), rows, path)
            case ArrayOf(element):
                several = list(map(get, messages)) if field.is_repeated else _listed(field, messages)
                counts = np.array([len(one) for one in several], np.int64)
                flat = [item for one in several for item in one]
                items = self._values(pair, element, flat, np.repeat(rows, counts), path)
                return lists(arrow_type(type_), counts, items)
        if field.is_repeated:
            return self._only(pair, type_, list(map(get, messages)), rows, path)
        if not field.has_presence:
            return self._values(pair, type_, list(map(get, messages)), rows, path)
        places = np.array([at for at, one in enumerate(messages) if one.HasField(name)], np.int64)
        values = [getattr(messages[place], name) for place in places.tolist()]
        column = self._values(pair, type_, values, rows[places], path)
        return column if len(places) == len(messages) else spread(column, places, len(messages))

    def _only(self, pair: FieldPair, type_: Type, values: list[Any], rows: Ints, path: str) -> Array:
        """The value of each list with one value, null for an empty list."""
        places = np.array([at for at, one in enumerate(values) if len(one)], np.int64)
        several = np.array([at for at, one in enumerate(values) if len(one) > 1], np.int64)
        if len(several):
            text = f"{path}: {UNFIT}: it has several values, and in the newest version one"
            self._blame(rows[several], self._causes.code(text))
        column = self._values(pair, type_, [values[place][-1] for place in places.tolist()], rows[places], path)
        return spread(column, places, len(values))

    def _map(self, pair: FieldPair, type_: MapOf, values: list[Any], rows: Ints, path: str) -> Array:
        assert pair.entry  # noqa: S101  # its type is a map
        keys, items = pair.entry
        counts = np.array([len(one) for one in values], np.int64)
        owners = np.repeat(rows, counts)
        kind, key_kind = arrow_type(type_), arrow_type(type_.key)
        found: list[Any] = [key for one in values for key in one]
        if keys.known is not None and keys.type_differs():
            zero: Any = pa.scalar(0).cast(key_kind).as_py()
            converted = self._converted(keys.known, type_.key, found, owners, path)
            found = [zero if one is None else one for one in converted]
        elif keys.field.type in UNSIGNED:
            found = [str(key) for key in found]
        column = self._values(items, type_.value, [one[key] for one in values for key in one], owners, path)
        both = structs(entry_type(kind), [pa.array(found, key_kind), column], len(found))
        return lists(kind, counts, both)

    def _values(self, pair: FieldPair, type_: Type, values: list[Any], rows: Ints, path: str) -> Array:
        """Single values of a field, none of them missing."""
        if (message := pair.message) is not None:
            return self._messages(message, type_, values, rows, path)
        names = self._enums.names(pair.field)
        if pair.known is not None and pair.type_differs(None if names is None else ENUM):
            values = self._converted(pair.known, type_, values, rows, path)
        elif names is not None:
            values = [names.get(one) or str(one) for one in values]
        return pa.array(values, arrow_type(type_))

    def _converted(self, known: FieldDescriptor, type_: Type, values: list[Any], rows: Ints, path: str) -> list[Any]:
        """Values of an older type as values of the newest type, None for misfits."""
        convert = conversion(type_, known)
        found: list[Any] = []
        for value, row in zip(values, rows.tolist(), strict=True):
            try:
                found.append(convert(value))
            except Misfit:
                text = f"{path}: {UNFIT}: it is no {shown(known)}, which the newest version has"
                self._blame(np.array([row]), self._causes.code(text))
                found.append(None)
        return found

    def _messages(self, message: MessagePair, type_: Type, values: list[Any], rows: Ints, path: str) -> Array:
        name = message.own.full_name
        if name in WRAPPERS:
            return pa.array([one.value for one in values], arrow_type(type_))
        if name == TIMESTAMP:
            return self._timestamps(values, rows, path)
        if name in SPECIAL or not isinstance(type_, StructOf):
            return self._texts(values, rows, path)
        return self.struct(message, type_, values, rows, path)

    def _timestamps(self, values: list[Any], rows: Ints, path: str) -> Array:
        seconds = np.array([one.seconds for one in values], np.int64)
        counts, outside = instants(seconds, np.array([one.nanos for one in values], np.int64))
        if outside.any():
            self._blame(rows[outside], self._causes.code(f"{path}: is no time of the years 1 to 9999"))
        return numbers(pa.timestamp("us", tz="UTC"), counts)

    def _texts(self, values: list[Any], rows: Ints, path: str) -> Array:
        from google.protobuf.json_format import MessageToJson  # noqa: PLC0415  # an extra

        texts: list[str] = []
        for value, row in zip(values, rows.tolist(), strict=True):
            try:
                named = self._enums.named(value)
                texts.append(MessageToJson(named, indent=None, preserving_proto_field_name=True))
            except Exception:  # noqa: BLE001  # it has errors of many kinds for what JSON cannot say
                self._blame(np.array([row]), self._causes.code(f"{path}: cannot be said as JSON"))
                texts.append("")
        return pa.array(texts, pa.string())

    def _blame(self, rows: Ints, code: int) -> None:
        self._codes[rows[self._codes[rows] == GOOD]] = code


def _listed(field: FieldDescriptor, messages: list[Any]) -> list[list[Any]]:
    """The written value of each message, alone in a list."""
    return [[value for one, value in message.ListFields() if one.number == field.number] for message in messages]
