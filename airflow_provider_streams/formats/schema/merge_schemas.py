"""Row types made one: the columns that the records of several schemas have in common, or why they have none.

Fields are matched by name. `field_aliases` has renamed the older versions' fields before.

- Versions of one schema: the newest one decides. Fields that it dropped are dropped. Added ones get their default, or
  null.
- Schemas of several topics are equals: a field of any of them is a column.
- Record types say nothing about each other: a field that a type lacks is null, never another type's default. Names that
  a field had before do not count between types.

A branch of a union is taken by the branch of its name, or of an alias that is its name. Otherwise it is taken by the
first one that its number may become: int, long, float, double, in this order. The same branch comes before a wider one,
which might lose digits. A type outside a union is a union of one branch. A plan's column does not say whether it was
bytes or fixed, an enum or text, so a branch of the same column suffices there. These are Avro's rules of resolution.

Numbers become the narrowest type that holds both exactly. If the newest version has a float or a double, older integers
become one, as Avro promotes them. If it has an integer, older floats do not fit it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from airflow_provider_streams.errors import IncompatibleSchemas, InvalidSchema
from airflow_provider_streams.model.schema.type_table import MOST_DIGITS, NUMBERS
from airflow_provider_streams.model.schema.types import (
    MISSING,
    ArrayOf,
    Decimal,
    Field,
    MapOf,
    Simple,
    StructOf,
    Type,
    below,
)

TYPE_COLUMN: Final = "_type"
"""The field that says which type a row is of."""

Relation: TypeAlias = Literal["versions", "equals", "record types"]


def by_newest(newest: Type, older: Type) -> tuple[Type, tuple[str, ...]]:
    """The newest's columns, wide enough for the older's values, and the differences that nothing can hold."""
    return _made_one(newest, older, "versions")


def as_equals(first: Type, second: Type) -> tuple[Type, tuple[str, ...]]:
    """The columns of both, those that only the second has last, and what differs."""
    return _made_one(first, second, "equals")


def united_types(columns: Mapping[str, Type], *, with_column: bool) -> StructOf:
    """The fields of all record types, and perhaps a last column for the type's name.

    Args:
        columns: by type.
        with_column: whether rows say their type.

    Raises:
        IncompatibleSchemas: fields of the same name have no type in common.
        InvalidSchema: values of some type are no records, or one has a field of the column's name.
    """
    for name, type_ in columns.items():
        if not isinstance(type_, StructOf) or is_union(type_):
            raise InvalidSchema(f"type {name or 'without a name'}", f"its values are {type_}, not records with fields")
    (names, united), *others = ((name, bare(type_)) for name, type_ in columns.items())
    differences: list[str] = []
    for name, type_ in others:
        united, found = _made_one(united, type_, "record types")
        differences += [f"{one} ({names} and {name})" for one in found]
        names = f"{names}, {name}"
    if differences:
        raise IncompatibleSchemas(differences)
    assert isinstance(united, StructOf)  # noqa: S101  # all are
    if not with_column:
        return united
    if taken := next((one.name for one in united.fields if one.name.lower() == TYPE_COLUMN), None):
        fields = {name: one.fields for name, one in columns.items() if isinstance(one, StructOf)}
        having = ", ".join(name for name, own in fields.items() if any(one.name == taken for one in own))
        raise InvalidSchema(taken, f"{having} has this field, but types='all' adds a column {TYPE_COLUMN}")
    return replace(united, fields=(*united.fields, Field(TYPE_COLUMN, Simple("string"))))


def bare(type_: Type) -> Type:
    """The same columns, without defaults and former names."""
    match type_:
        case StructOf(fields):
            return replace(type_, fields=tuple(Field(one.name, bare(one.type), one.nullable) for one in fields))
        case ArrayOf(element):
            return ArrayOf(bare(element))
        case MapOf(key, value):
            return MapOf(key, bare(value))
    return type_


def is_union(type_: Type) -> bool:
    """Whether a type is a union of several branches."""
    return isinstance(type_, StructOf) and type_.union


def as_union(type_: Type) -> StructOf:
    """The union itself, or one whose only branch is the type."""
    if isinstance(type_, StructOf) and type_.union:
        return type_
    return StructOf((_alone(type_),), union=True)


def _branch_of(branch: Field, union: StructOf, *, exactly: bool) -> Field | None:
    """The branch of a union that takes the values of another union's branch; None: there is none.

    Args:
        branch: of another union.
        union: the union that may take its values.
        exactly: whether both have names of branches; otherwise a column of the same type suffices.
    """
    names = {branch.name, *branch.aliases}
    found = next((one for one in union.fields if one.name == branch.name), None)
    found = found or next((one for one in union.fields if names & {one.name, *one.aliases}), None)
    if found or _is_number(branch):
        return found or _wider(branch, union)
    if exactly or not isinstance(branch.type, Simple | Decimal):
        return None
    return next((one for one in union.fields if one.type == branch.type), None)


def shown(branch: Field) -> str:
    """A branch's name, as its schema has it."""
    return branch.name.removeprefix(_MEMBER)


def _wider(branch: Field, union: StructOf) -> Field | None:
    wider = _BRANCH_NUMBERS[_BRANCH_NUMBERS.index(shown(branch)) :]
    return next((one for one in union.fields if _is_number(one) and shown(one) in wider), None)


def _is_number(branch: Field) -> bool:
    return shown(branch) in _BRANCH_NUMBERS and isinstance(branch.type, Simple) and branch.type.word in _BRANCH_NUMBERS


def _alone(type_: Type) -> Field:
    match type_:
        case StructOf(names=(name, *former)) | Simple(names=(name, *former)):
            return Field(name, type_, aliases=tuple(former))
        case StructOf():
            return Field(f"{_MEMBER}record", type_)
        case ArrayOf():
            return Field(f"{_MEMBER}array", type_)
        case MapOf():
            return Field(f"{_MEMBER}map", type_)
        case Simple(word):
            return Field(_MEMBER + ("bytes" if word == "binary" else word), type_)
    return Field(f"{_MEMBER}bytes", type_)


def counterpart(field: Field, among: Sequence[Field]) -> Field | None:
    """The field of the same name in another schema."""
    return next((one for one in among if one.name == field.name), None)


def taker(branch: Field, want: Type, have: Type) -> Field | None:
    """The branch of `want` that takes the values of a branch of `have`; None: none does.

    Either of them may be no union. A record, an array or a map is taken even if its inner types differ.
    """
    found = _branch_of(branch, as_union(want), exactly=is_union(want) and is_union(have))
    if found is None or have_parts(found.type, branch.type):
        return found
    return None if by_newest(found.type, branch.type)[1] else found


def have_parts(one: Type, other: Type) -> bool:
    """Whether both are records, arrays, or maps with the same keys, whose inner values are resolved one by one."""
    match one, other:
        case (ArrayOf(), ArrayOf()) | (StructOf(union=False), StructOf(union=False)):
            return True
        case MapOf(key, _), MapOf(other_key, _):
            return key == other_key
    return False


def is_certain(newest: Type, older: Type) -> bool:
    """Whether the newest type cannot hold some part of every value of the older type, except null."""
    if is_union(newest) or is_union(older):
        takers = [(taker(branch, newest, older), branch.type) for branch in as_union(older).fields]
        return all(found is None or is_certain(found.type, type_) for found, type_ in takers)
    match newest, older:
        case StructOf(), StructOf():
            pairs = ((one, counterpart(one, older.fields)) for one in newest.fields)
            return any(found and not found.nullable and is_certain(one.type, found.type) for one, found in pairs)
    return not have_parts(newest, older) and bool(by_newest(newest, older)[1])


def _made_one(first: Type, second: Type, relation: Relation) -> tuple[Type, tuple[str, ...]]:
    merging = _Merging(relation)
    return merging.type(first, second, ""), tuple(merging.differences)


class _Merging:
    """Collects what differs, and keeps the first type there."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self.differences: list[str] = []

    def type(self, first: Type, second: Type, path: str) -> Type:  # noqa: PLR0911  # one for each kind of type
        if first == second and not isinstance(first, StructOf | ArrayOf | MapOf):
            return first
        if self._relation != "equals" and (is_union(first) or is_union(second)):
            return self._unions(first, second, path)
        match first, second:
            case ArrayOf(one), ArrayOf(other):
                return ArrayOf(self.type(one, other, f"{path}[]"))
            case MapOf(key, one), MapOf(other_key, other) if key == other_key:
                return MapOf(key, self.type(one, other, f"{path}{{}}"))
            case StructOf(), StructOf() if first.union == second.union:
                return self._struct(first, second, path)
        if found := _number(first, second, exactly=self._relation != "versions"):
            return found
        return self._differ(first, second, path)

    def _struct(self, first: StructOf, second: StructOf, path: str) -> StructOf:
        fields = [self._field(one, counterpart(one, second.fields), path) for one in first.fields]
        names = {one.name.lower(): one.name for one in fields}
        for one in second.fields if self._relation != "versions" else ():
            taken = names.get(one.name.lower())
            if taken is None:
                fields.append(self._lacking(one))
            elif taken != one.name:
                self.differences.append(f"{below(path, one.name)} differs from {taken} by case only")
        return replace(first, fields=tuple(fields))

    def _unions(self, first: Type, second: Type, path: str) -> Type:
        """The first's branches, wide enough for those of the second that it takes; no row is bad for the others yet."""
        if self._relation == "record types":
            return first if first == second else self._differ(first, second, path)
        taken: dict[str, Type] = {}
        wanted = as_union(first)
        for branch in as_union(second).fields:
            if found := taker(branch, first, second):
                taken[found.name] = self.type(taken.get(found.name, found.type), branch.type, path)
        if not taken and not (is_union(first) and is_union(second)):
            return self._differ(first, second, path)
        fields = tuple(replace(one, type=taken.get(one.name, one.type)) for one in wanted.fields)
        return replace(wanted, fields=fields) if is_union(first) else fields[0].type

    def _differ(self, first: Type, second: Type, path: str) -> Type:
        self.differences.append(f"{path or 'the value'} is {_named(first)} and {_named(second)}")
        return first

    def _field(self, field: Field, other: Field | None, path: str) -> Field:
        if other is None:
            return self._lacking(field)
        type_ = self.type(field.type, other.type, below(path, field.name))
        return replace(field, type=type_, nullable=field.nullable or other.nullable)

    def _lacking(self, field: Field) -> Field:
        return replace(field, nullable=True) if self._relation == "record types" else lacking(field)


def lacking(field: Field) -> Field:
    """A field that another schema lacks: it has its default there, or null."""
    return field if field.default is not MISSING else replace(field, nullable=True, default=None)


def _number(first: Type, second: Type, *, exactly: bool) -> Type | None:
    """The type that holds the numbers of both. A float as `first` may round them, unless `exactly`."""
    if isinstance(first, Decimal) and isinstance(second, Decimal):
        scale = max(first.scale, second.scale)
        digits = max(first.precision - first.scale, second.precision - second.scale) + scale
        return Decimal(digits, scale) if digits <= MOST_DIGITS else None
    if not isinstance(first, Simple) or not isinstance(second, Simple):
        return None
    integers, floats = NUMBERS
    words = {first.word, second.word}
    if words <= set(integers):
        return Simple(max(words, key=integers.index))
    if not words <= {*integers, *floats}:
        return None
    is_mixed = not words <= set(floats)
    if is_mixed and ("long" in words if exactly else first.word in integers):
        return None
    return Simple("float" if words <= {"byte", "short", "float"} else "double")


def _named(type_: Type) -> str:
    text = str(type_)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + ".."


_SHOWN: Final = 120
_MEMBER: Final = "member_"
_BRANCH_NUMBERS: Final = ("int", "long", "float", "double")
