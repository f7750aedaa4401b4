"""Row types made one: what the records of several schemas have in common as columns, or why they have nothing.

Of the versions of one schema the newest decides, by Avro's rules of resolution: fields that it dropped are dropped,
renamed ones are found by their aliases, added ones get their default, or null. Schemas of several topics are equals:
a field that any of them has is a column.

Numbers become the narrowest type that holds both exactly, but for a long beside a float or a double: that is a double.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from airflow_provider_streams.formats.branches import as_union, branch_of, is_union
from airflow_provider_streams.model.row_type import (
    MISSING,
    MOST_DIGITS,
    ArrayOf,
    Decimal,
    Field,
    MapOf,
    Simple,
    StructOf,
    Type,
)


def by_newest(newest: Type, older: Type) -> tuple[Type, tuple[str, ...]]:
    """The newest's columns, wide enough for the older's values too; and the differences that nothing can hold."""
    return _made_one(newest, older, keep=False)


def as_equals(first: Type, second: Type) -> tuple[Type, tuple[str, ...]]:
    """The columns of both, the first's before those that only the second has; and what differs."""
    return _made_one(first, second, keep=True)


def counterpart(field: Field, among: Sequence[Field]) -> Field | None:
    """The same field in another schema: of its name, or of a name that one of both had before."""
    named = {one.name: one for one in among}
    if field.name in named:
        return named[field.name]
    for alias in field.aliases:
        if alias in named:
            return named[alias]
    return next((one for one in among if field.name in one.aliases), None)


def taker(branch: Field, want: Type, have: Type) -> tuple[Field, Type] | None:
    """The branch of `want` that takes the values of a branch of `have`, and the type that holds both; None: none does.

    Either of `want` and `have` may be no union.
    """
    found = branch_of(branch, as_union(want), exactly=is_union(want) and is_union(have))
    if found is None:
        return None
    both, differences = by_newest(found.type, branch.type)
    return None if differences else (found, both)


def _made_one(first: Type, second: Type, *, keep: bool) -> tuple[Type, tuple[str, ...]]:
    uniting = _Uniting(keep=keep)
    return uniting.type(first, second, ""), tuple(uniting.differences)


class _Uniting:
    """Collects what differs; where something does, the first's type stands."""

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self.differences: list[str] = []

    def type(self, first: Type, second: Type, path: str) -> Type:  # noqa: PLR0911  # one for each kind of type
        if first == second and not isinstance(first, StructOf | ArrayOf | MapOf):
            return first
        if not self._keep and (is_union(first) or is_union(second)):
            return self._branches(first, second, path)
        match first, second:
            case ArrayOf(one), ArrayOf(other):
                return ArrayOf(self.type(one, other, f"{path}[]"))
            case MapOf(key, one), MapOf(other_key, other) if key == other_key:
                return MapOf(key, self.type(one, other, f"{path}{{}}"))
            case StructOf(), StructOf() if first.union == second.union:
                return self._struct(first, second, path)
        if found := _number(first, second):
            return found
        return self._differ(first, second, path)

    def _struct(self, first: StructOf, second: StructOf, path: str) -> StructOf:
        fields = [self._field(one, counterpart(one, second.fields), path) for one in first.fields]
        if self._keep:
            matched = {other.name for one in first.fields if (other := counterpart(one, second.fields))}
            names = {one.name.lower(): one.name for one in fields}
            for one in second.fields:
                if one.name in matched:
                    continue
                if one.name.lower() in names:
                    taken = names[one.name.lower()]
                    self.differences.append(f"{_below(path, one.name)} differs from {taken} by case only")
                else:
                    fields.append(_lacking(one))
        return replace(first, fields=tuple(fields))

    def _branches(self, first: Type, second: Type, path: str) -> Type:
        """The first's branches, wide enough for those of the second that it takes; no row is bad for the others yet."""
        taken: dict[str, Type] = {}
        wanted = as_union(first)
        for branch in as_union(second).fields:
            if found := taker(branch, first, second):
                one, both = found
                taken[one.name] = by_newest(taken[one.name], branch.type)[0] if one.name in taken else both
        if not taken and not (is_union(first) and is_union(second)):
            return self._differ(first, second, path)
        fields = tuple(replace(one, type=taken.get(one.name, one.type)) for one in wanted.fields)
        return replace(wanted, fields=fields) if is_union(first) else fields[0].type

    def _differ(self, first: Type, second: Type, path: str) -> Type:
        self.differences.append(f"{path or 'the value'} is {_named(first)} and {_named(second)}")
        return first

    def _field(self, field: Field, other: Field | None, path: str) -> Field:
        if other is None:
            return _lacking(field)
        type_ = self.type(field.type, other.type, _below(path, field.name))
        names = dict.fromkeys((*field.aliases, other.name, *other.aliases))
        aliases = tuple(name for name in names if name != field.name)
        return replace(field, type=type_, nullable=field.nullable or other.nullable, aliases=aliases)


def _lacking(field: Field) -> Field:
    """Of a field that another schema has not: its default is there, or null."""
    return field if field.default is not MISSING else replace(field, nullable=True, default=None)


def _number(first: Type, second: Type) -> Type | None:
    if isinstance(first, Decimal) and isinstance(second, Decimal):
        scale = max(first.scale, second.scale)
        digits = max(first.precision - first.scale, second.precision - second.scale) + scale
        return Decimal(digits, scale) if digits <= MOST_DIGITS else None
    if not isinstance(first, Simple) or not isinstance(second, Simple):
        return None
    words = {first.word, second.word}
    if words <= set(_INTEGERS):
        return Simple(max(words, key=_INTEGERS.index))
    if words <= {*_INTEGERS, "float", "double"}:
        return Simple("float" if words <= {"byte", "short", "float"} else "double")
    return None


def _named(type_: Type) -> str:
    text = str(type_)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + ".."


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


_INTEGERS: Final = ("byte", "short", "int", "long")
_SHOWN: Final = 120
