"""Kafka Connect's schemas, as its JSON converter writes them around each message, with Debezium's semantic types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.change_data.row_types import column_meanings
from airflow_provider_streams.formats.change_data.row_types.column_meanings import Meaning
from airflow_provider_streams.model.schema.type_table import MOST_DEPTH, MOST_LEAVES
from airflow_provider_streams.model.schema.types import Simple

_WHAT: Final = "a message's schema"


def fields_of(schema: Any) -> dict[str, Mapping[str, Any]]:
    """The schemas of a struct's fields, by name.

    Raises:
        InvalidSchema: it is no struct.
    """
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    if not isinstance(fields, list) or len(fields) > MOST_LEAVES:
        raise InvalidSchema(_WHAT, "it describes no struct of fields")
    found: dict[str, Mapping[str, Any]] = {}
    for one in fields:
        if not isinstance(one, Mapping) or not isinstance(name := one.get("field"), str) or name in found:
            raise InvalidSchema(_WHAT, "its fields have no names, or two have the same one")
        found[name] = one
    return found


def meaning_of(schema: Mapping[str, Any], depth: int = 0) -> Meaning:
    """What the values of a schema mean.

    Raises:
        InvalidSchema: it is no schema.
    """
    if depth > MOST_DEPTH:
        raise InvalidSchema(_WHAT, f"types are nested deeper than {MOST_DEPTH} levels")
    name = schema.get("name")
    if isinstance(name, str) and (found := _semantic(name, schema)):
        return found
    match schema.get("type"):
        case str() as word if word in _PLAIN:
            return column_meanings.plain(Simple(_PLAIN[word]))
        case "bytes":
            return column_meanings.BYTES
        case "array":
            return column_meanings.list_of(meaning_of(_inner(schema, "items"), depth + 1))
        case "map":
            return _map(schema, depth)
        case "struct":
            fields = fields_of(schema)
            if not fields:
                raise InvalidSchema(_WHAT, "a struct has no fields")
            return column_meanings.struct_of({field: meaning_of(one, depth + 1) for field, one in fields.items()})
    raise InvalidSchema(_WHAT, f"no type {str(schema.get('type'))[:40]!r} is known")


def _map(schema: Mapping[str, Any], depth: int) -> Meaning:
    if _inner(schema, "keys").get("type") != "string":  # JSON has no objects with other keys
        raise InvalidSchema(_WHAT, "a map's keys are no texts")
    return column_meanings.map_of(meaning_of(_inner(schema, "values"), depth + 1))


def _inner(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = schema.get(name)
    if not isinstance(found, Mapping):
        raise InvalidSchema(_WHAT, f"a type lacks its {name}")
    return found


def _semantic(name: str, schema: Mapping[str, Any]) -> Meaning | None:
    """The meaning of a name of Connect or Debezium; None: it says nothing more than the type."""
    if name == "org.apache.kafka.connect.data.Decimal":
        return _decimal(schema)
    if name in _STRUCTS:
        return _STRUCTS[name] if schema.get("type") == "struct" else None
    written, found = _NAMED.get(name, ((), None))
    return found if schema.get("type") in written else None


def _decimal(schema: Mapping[str, Any]) -> Meaning | None:
    if schema.get("type") != "bytes":
        return None
    given = schema.get("parameters")
    told: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    try:
        scale = int(told["scale"])
        precision = int(told["connect.decimal.precision"]) if "connect.decimal.precision" in told else None
    except (KeyError, TypeError, ValueError):
        raise InvalidSchema(_WHAT, "a Decimal has no scale") from None
    if not -_MOST_SCALE <= scale <= _MOST_SCALE or (precision is not None and not 0 < precision <= _MOST_SCALE):
        raise InvalidSchema(_WHAT, "a Decimal's scale or precision is out of all range")
    return column_meanings.decimal(scale, precision)


_MOST_SCALE: Final = 20_000
"""Postgres' numeric has up to 16,383 digits after the point."""

_PLAIN: Final = {
    "boolean": "boolean", "int8": "byte", "int16": "short", "int32": "int", "int64": "long", "float": "float",
    "float32": "float", "double": "double", "float64": "double", "string": "string",
}  # fmt: skip

_NUMBER: Final = ("int32", "int64")
_WRITTEN: Final = ("string",)
_NAMED: Final[dict[str, tuple[tuple[str, ...], Meaning | None]]] = {
    "io.debezium.time.Date": (_NUMBER, column_meanings.count("date", "d")),
    "org.apache.kafka.connect.data.Date": (_NUMBER, column_meanings.count("date", "d")),
    "io.debezium.time.Time": (_NUMBER, column_meanings.count("time", "ms")),
    "org.apache.kafka.connect.data.Time": (_NUMBER, column_meanings.count("time", "ms")),
    "io.debezium.time.MicroTime": (_NUMBER, column_meanings.count("time", "us")),
    "io.debezium.time.NanoTime": (_NUMBER, column_meanings.count("time", "ns")),
    "io.debezium.time.Timestamp": (_NUMBER, column_meanings.count("timestamp_ntz", "ms")),
    "org.apache.kafka.connect.data.Timestamp": (_NUMBER, column_meanings.count("timestamp_ntz", "ms")),
    "io.debezium.time.MicroTimestamp": (_NUMBER, column_meanings.count("timestamp_ntz", "us")),
    "io.debezium.time.NanoTimestamp": (_NUMBER, column_meanings.count("timestamp_ntz", "ns")),
    "io.debezium.time.ZonedTimestamp": (_WRITTEN, column_meanings.iso("timestamp")),
    "io.debezium.time.IsoDate": (_WRITTEN, column_meanings.iso("date")),
    "io.debezium.time.IsoTime": (_WRITTEN, column_meanings.iso("time")),
    "io.debezium.time.IsoTimestamp": (_WRITTEN, column_meanings.iso("timestamp_ntz")),
}
"""By name: the types that it may have, and its meaning. Names that are not here (Json, Xml, Uuid, Enum,
EnumSet, Bits, Ltree, TsVector, ZonedTime, Interval, MicroDuration, Year, ..) have the meaning of their type."""

_STRUCTS: Final = {
    "io.debezium.data.VariableScaleDecimal": column_meanings.SCALED,
    "io.debezium.data.geometry.Geometry": column_meanings.GEOMETRY,
    "io.debezium.data.geometry.Geography": column_meanings.GEOMETRY,
    "io.debezium.data.geometry.Point": column_meanings.GEOMETRY,
}
