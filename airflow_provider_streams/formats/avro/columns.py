"""The columns of an Avro schema.

| Avro | column |
|---|---|
| boolean, int, long, float, double, bytes, string | boolean, int, long, float, double, binary, string |
| null | string, always null |
| enum, uuid | string |
| fixed | binary |
| decimal of up to 38 digits; of more | decimal; binary |
| date; time-millis, time-micros | date; time |
| timestamp-*; local-timestamp-* | timestamp; timestamp_ntz, nanoseconds cut to microseconds |
| array, map, record | array, map of string, struct |
| union of null and one type | that type |
| union of int and long, of float and double | long, double |
| any other union | struct of `member_<type>`, of which one is not null |
| a record inside itself | string: the inner value as JSON |
"""

from __future__ import annotations

import base64
import decimal
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.arrow.times import Scale
from airflow_provider_streams.model.schema import avro_schema as avro
from airflow_provider_streams.model.schema.type_table import MOST_DIGITS, MOST_LEAVES, Unit
from airflow_provider_streams.model.schema.types import MISSING, ArrayOf, Decimal, Field, MapOf, Simple, StructOf, Type

Instead: TypeAlias = Callable[[avro.Schema, Callable[[avro.Schema], Type]], Type | None]
"""The type of a schema in another format than Avro's; None: Avro's own. The second function gives inner types."""


def row_type(schema: avro.Schema, instead: Instead | None = None) -> Type:
    """The type of a schema's values, some of which `instead` may give.

    Raises:
        InvalidSchema: it unfolds to more columns than `MOST_LEAVES`.
    """
    return _Unfolding(instead).type(schema)


def is_nullable(schema: avro.Schema) -> bool:
    """Whether a schema's values may be null."""
    return _is_null(schema) or (isinstance(schema, avro.Union) and any(map(_is_null, schema.branches)))


def branches_with_values(union: avro.Union) -> tuple[avro.Schema, ...]:
    """The branches of a union except null."""
    return tuple(branch for branch in union.branches if not _is_null(branch))


def widened(branches: tuple[avro.Schema, ...]) -> Simple | None:
    """The common type of the branches int and long, or float and double; None: they are others."""
    kinds = {branch.kind if isinstance(branch, avro.Primitive) and not branch.logical else "" for branch in branches}
    if kinds == {"int", "long"}:
        return Simple("long")
    return Simple("double") if kinds == {"float", "double"} else None


def member_names(branches: tuple[avro.Schema, ...]) -> list[str]:
    """The field names of a union's struct: `member_<type>`, with the namespace only if it is needed."""
    short = [f"member_{avro.branch_name(branch).rpartition('.')[2].lower()}" for branch in branches]
    if len(set(short)) == len(short):
        return short
    return [f"member_{avro.branch_name(branch).replace('.', '_').lower()}" for branch in branches]


def own_names(named: avro.Named) -> tuple[str, ...]:
    """The names that match a type outside a union with a branch, the current one first."""
    return tuple(dict.fromkeys((*member_names((named,)), *former_names(named))))


def former_names(branch: avro.Schema) -> tuple[str, ...]:
    """Further names of a branch, written as members are: with its namespace, and its aliases."""
    if not isinstance(branch, avro.Named):
        return ()
    short = [f"member_{alias.rpartition('.')[2].lower()}" for alias in branch.aliases]
    full = [f"member_{name.replace('.', '_').lower()}" for name in (branch.name, *branch.aliases)]
    return tuple(dict.fromkeys((*full, *short)))


def is_decimal(logical: avro.Logical | None) -> bool:
    """Whether it is a decimal that a column can hold."""
    return logical is not None and logical.name == "decimal" and logical.precision <= MOST_DIGITS


class _Unfolding:
    """Counts the columns that it makes."""

    def __init__(self, instead: Instead | None) -> None:
        self._left, self._instead = MOST_LEAVES, instead

    def type(self, schema: avro.Schema) -> Type:
        if self._instead and (found := self._instead(schema, self.type)):
            self._count()
            return found
        match schema:
            case avro.Array(items):
                return ArrayOf(self.type(items))
            case avro.Map(values):
                return MapOf(Simple("string"), self.type(values))
            case avro.Record(_, fields):
                return StructOf(tuple(map(self._field, fields)), names=own_names(schema))
            case avro.Union():
                return self._union(schema)
        self._count()
        return _leaf(schema)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise InvalidSchema("Avro", f"it unfolds to more than {MOST_LEAVES} columns")

    def _union(self, union: avro.Union) -> Type:
        branches = branches_with_values(union)
        if not branches:
            return Simple("string")
        if len(branches) == 1:
            return self.type(branches[0])
        if found := widened(branches):
            return found
        members = [
            Field(name, self.type(branch), aliases=tuple(one for one in former_names(branch) if one != name))
            for name, branch in zip(member_names(branches), branches, strict=True)
        ]
        return StructOf(tuple(members), union=True)

    def _field(self, field: avro.RecordField) -> Field:
        type_ = self.type(field.schema)
        return Field(field.name, type_, is_nullable(field.schema), _default(field), field.aliases)


def _is_null(schema: avro.Schema) -> bool:
    return isinstance(schema, avro.Primitive) and schema.kind == "null"


def _leaf(schema: avro.Schema) -> Type:  # noqa: PLR0911  # one for each kind of type
    match schema:
        case avro.Primitive(_, avro.Logical() as logical) | avro.Fixed(_, _, avro.Logical() as logical):
            if logical.name in LOGICAL_TIMES:
                return Simple(*LOGICAL_TIMES[logical.name])
            if logical.name == "uuid":
                return Simple("string")
            return Decimal(logical.precision, logical.scale) if is_decimal(logical) else Simple("binary")
        case avro.Primitive(kind):
            return Simple({"bytes": "binary", "null": "string"}.get(kind, kind))
        case avro.Fixed():
            return Simple("binary", names=own_names(schema))
        case avro.Enum():
            return Simple("string", names=own_names(schema))
    return Simple("string")


LOGICAL_TIMES: Final[dict[str, tuple[str, Unit]]] = {
    "date": ("date", "d"),
    "time-millis": ("time", "ms"),
    "time-micros": ("time", "us"),
    "timestamp-millis": ("timestamp", "ms"),
    "timestamp-micros": ("timestamp", "us"),
    "timestamp-nanos": ("timestamp", "ns"),
    "local-timestamp-millis": ("timestamp_ntz", "ms"),
    "local-timestamp-micros": ("timestamp_ntz", "us"),
    "local-timestamp-nanos": ("timestamp_ntz", "ns"),
}
"""The column of a time, and its unit."""


def _default(field: avro.RecordField) -> Any:
    """The default as `Field` has it; `MISSING` if it does not fit its type."""
    if field.default is MISSING:
        return MISSING
    try:
        return _stored(field.schema, field.default)
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError):
        return MISSING


def _stored(schema: avro.Schema, value: Any) -> Any:  # noqa: PLR0911  # one for each kind of type
    match schema:
        case avro.Union():
            return _stored_branch(schema, value)
        case avro.Array(items):
            return [_stored(items, one) for one in value]
        case avro.Map(values):
            return {str(name): _stored(values, one) for name, one in value.items()}
        case avro.Record(_, fields):
            return {one.name: _stored(one.schema, value.get(one.name, one.default)) for one in fields}
        case avro.Primitive(kind) if kind != "bytes":
            return _stored_primitive(schema, value)
        case avro.Primitive(_, logical) | avro.Fixed(_, _, logical):
            raw = value.encode("latin-1")
            return _decimal_text(raw, logical) if logical and is_decimal(logical) else base64.b64encode(raw).decode()
        case avro.Enum(_, symbols) if value in symbols:
            return value
    raise ValueError


def _stored_branch(union: avro.Union, value: Any) -> Any:
    if value is None:
        if is_nullable(union):
            return None
        raise ValueError
    branches = branches_with_values(union)
    for place, branch in enumerate(branches):
        try:
            found = _stored(branch, value)
        except (TypeError, ValueError, KeyError, AttributeError):
            continue
        return found if len(branches) == 1 or widened(branches) else {member_names(branches)[place]: found}
    raise ValueError


def _stored_primitive(schema: avro.Primitive, value: Any) -> Any:
    if type(value) not in _JSON_TYPES[schema.kind]:
        raise ValueError
    if schema.kind in _BITS and not -(1 << _BITS[schema.kind]) <= value < 1 << _BITS[schema.kind]:
        raise ValueError
    if schema.logical and schema.logical.name in LOGICAL_TIMES:
        if (found := Scale.of(*LOGICAL_TIMES[schema.logical.name]).one(value)) is None:
            raise ValueError
        return found
    return float(value) if schema.kind in ("float", "double") else value


_JSON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "string": (str,),
}
_BITS: Final = {"int": 31, "long": 63}


def _decimal_text(raw: bytes, logical: avro.Logical) -> str:
    number = int.from_bytes(raw, "big", signed=True)
    if abs(number) >= 10**logical.precision:
        raise ValueError
    return str(decimal.Decimal(number).scaleb(-logical.scale, decimal.Context(prec=MOST_DIGITS)))
