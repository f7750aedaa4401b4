"""What an Avro schema becomes as columns.

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
| any other union | struct of `member_<type>`, one of them not null |
| a record inside itself | string: the inner value as JSON |
"""

from __future__ import annotations

import base64
import decimal
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.times import Scale
from airflow_provider_streams.model.avro_schema import (
    Array,
    Enum,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    RecordField,
    Recursive,
    Schema,
    Union,
    branch_name,
)
from airflow_provider_streams.model.row_type import (
    MISSING,
    MOST_DIGITS,
    MOST_LEAVES,
    ArrayOf,
    Decimal,
    Field,
    MapOf,
    Simple,
    StructOf,
    Type,
    Unit,
)


def row_type(schema: Schema) -> Type:
    """The type of its values.

    Raises:
        InvalidSchema: it unfolds to more columns than `MOST_LEAVES`.
    """
    return _Unfolding().type(schema)


def is_nullable(schema: Schema) -> bool:
    """Whether its values may be null."""
    return _is_null(schema) or (isinstance(schema, Union) and any(map(_is_null, schema.branches)))


def branches_with_values(union: Union) -> tuple[Schema, ...]:
    """Its branches but null."""
    return tuple(branch for branch in union.branches if not _is_null(branch))


def widened(branches: tuple[Schema, ...]) -> Simple | None:
    """The type that int and long, or float and double, have in common as branches; None: there is none."""
    kinds = {branch.kind if isinstance(branch, Primitive) and not branch.logical else "" for branch in branches}
    if kinds == {"int", "long"}:
        return Simple("long")
    return Simple("double") if kinds == {"float", "double"} else None


def member_names(branches: tuple[Schema, ...]) -> list[str]:
    """The fields of the struct that a union becomes: `member_<type>`, with the namespace only if it is needed."""
    short = [f"member_{branch_name(branch).rpartition('.')[2].lower()}" for branch in branches]
    if len(set(short)) == len(short):
        return short
    return [f"member_{branch_name(branch).replace('.', '_').lower()}" for branch in branches]


def former_names(branch: Schema) -> tuple[str, ...]:
    """By which names else a branch is known: with its namespace, and by its aliases, each as a member is named."""
    if not isinstance(branch, Record | Enum | Fixed):
        return ()
    short = [f"member_{alias.rpartition('.')[2].lower()}" for alias in branch.aliases]
    full = [f"member_{name.replace('.', '_').lower()}" for name in (branch.name, *branch.aliases)]
    return tuple(dict.fromkeys((*full, *short)))


def is_decimal(logical: Logical | None) -> bool:
    """A decimal that a column can hold."""
    return logical is not None and logical.name == "decimal" and logical.precision <= MOST_DIGITS


class _Unfolding:
    """Counts the columns that it makes."""

    def __init__(self) -> None:
        self._left = MOST_LEAVES

    def type(self, schema: Schema) -> Type:
        match schema:
            case Array(items):
                return ArrayOf(self.type(items))
            case Map(values):
                return MapOf(Simple("string"), self.type(values))
            case Record(_, fields):
                names = dict.fromkeys((*member_names((schema,)), *former_names(schema)))
                return StructOf(tuple(map(self._field, fields)), names=tuple(names))
            case Union():
                return self._union(schema)
        self._left -= 1
        if self._left < 0:
            raise InvalidSchema("Avro", f"it unfolds to more than {MOST_LEAVES} columns")
        return _leaf(schema)

    def _union(self, union: Union) -> Type:
        branches = branches_with_values(union)
        if not branches:
            return Simple("string")
        if len(branches) == 1:
            return self.type(branches[0])
        if found := widened(branches):
            return found
        names = member_names(branches)
        return StructOf(tuple(map(self._member, names, branches)), union=True)

    def _member(self, name: str, branch: Schema) -> Field:
        aliases = tuple(one for one in former_names(branch) if one != name)
        return Field(name, self.type(branch), aliases=aliases)

    def _field(self, field: RecordField) -> Field:
        type_ = self.type(field.schema)
        return Field(field.name, type_, is_nullable(field.schema), _default(field), field.aliases)


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Primitive) and schema.kind == "null"


def _leaf(schema: Schema) -> Type:
    match schema:
        case Primitive(_, Logical() as logical) | Fixed(_, _, Logical() as logical):
            return _logical(logical)
        case Primitive(kind):
            return Simple({"bytes": "binary", "null": "string"}.get(kind, kind))
        case Fixed():
            return Simple("binary")
        case Enum() | Recursive() | _:
            return Simple("string")


def _logical(logical: Logical) -> Type:
    if logical.name == "decimal":
        fits = is_decimal(logical)
        return Decimal(logical.precision, logical.scale) if fits else Simple("binary")
    if logical.name == "uuid":
        return Simple("string")
    word, unit = LOGICAL_TIMES[logical.name]
    return Simple(word, unit)


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
"""The column of a time, and what its numbers count."""


def _default(field: RecordField) -> Any:
    """The default as `Field` has it; one that does not fit its type is none."""
    if field.default is MISSING:
        return MISSING
    try:
        return _stored(field.schema, field.default)
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError):
        return MISSING


def _stored(schema: Schema, value: Any) -> Any:  # noqa: PLR0911  # one for each kind of type
    match schema:
        case Union():
            return _stored_branch(schema, value)
        case Array(items):
            return [_stored(items, one) for one in value]
        case Map(values):
            return {str(name): _stored(values, one) for name, one in value.items()}
        case Record(_, fields):
            return {one.name: _stored(one.schema, value.get(one.name, one.default)) for one in fields}
        case Primitive(kind) if kind != "bytes":
            return _stored_primitive(schema, value)
        case Primitive(_, logical) | Fixed(_, _, logical):
            raw = value.encode("latin-1")
            return _decimal_text(raw, logical) if logical and is_decimal(logical) else base64.b64encode(raw).decode()
        case Enum(_, symbols) if value in symbols:
            return value
    raise ValueError


def _stored_branch(union: Union, value: Any) -> Any:
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


def _stored_primitive(schema: Primitive, value: Any) -> Any:
    if type(value) not in _JSON_TYPES[schema.kind]:
        raise ValueError
    if schema.kind in _BITS and not -(1 << _BITS[schema.kind]) <= value < 1 << _BITS[schema.kind]:
        raise ValueError
    if schema.logical and schema.logical.name in LOGICAL_TIMES:
        return _time(value, *LOGICAL_TIMES[schema.logical.name])
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


def _time(value: int, word: str, unit: Unit) -> int:
    found = Scale.of(word, unit).one(value)
    if found is None:
        raise ValueError
    return found


def _decimal_text(raw: bytes, logical: Logical) -> str:
    number = int.from_bytes(raw, "big", signed=True)
    if abs(number) >= 10**logical.precision:
        raise ValueError
    return str(decimal.Decimal(number).scaleb(-logical.scale, decimal.Context(prec=MOST_DIGITS)))
