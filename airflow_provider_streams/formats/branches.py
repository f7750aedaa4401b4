"""Which branch of one union takes the values of which branch of another, by Avro's rules of resolution.

A branch is taken by the one of its name, or of a name that one of both had before; else by the first that its numbers
may become: int, long, float, double, in this order. The same branch goes before a wider one, as no digit is lost there.

A type beside a union is a union of one branch. Its column does not say whether it was bytes or fixed, an enum or text;
there a branch of the same column will do.
"""

from __future__ import annotations

from typing import Final

from airflow_provider_streams.model.row_type import ArrayOf, Decimal, Field, MapOf, Simple, StructOf, Type


def is_union(type_: Type) -> bool:
    """Whether its values are of several branches."""
    return isinstance(type_, StructOf) and type_.union


def as_union(type_: Type) -> StructOf:
    """The union itself, or one whose only branch is the type."""
    if isinstance(type_, StructOf) and type_.union:
        return type_
    return StructOf((_alone(type_),), union=True)


def branch_of(branch: Field, union: StructOf, *, exactly: bool) -> Field | None:
    """The branch that takes the values of another; None: there is none.

    Args:
        branch: of another union.
        union: which may take its values.
        exactly: both have names of branches; otherwise a column of the same type will do.
    """
    return _of_name(branch, union) or _wider(branch, union) or (None if exactly else _of_type(branch, union))


def shown(branch: Field) -> str:
    """A branch's name, as its schema has it."""
    return branch.name.removeprefix(_MEMBER)


def _of_name(branch: Field, union: StructOf) -> Field | None:
    found = next((one for one in union.fields if one.name == branch.name), None)
    names = {branch.name, *branch.aliases}
    return found or next((one for one in union.fields if names & {one.name, *one.aliases}), None)


def _wider(branch: Field, union: StructOf) -> Field | None:
    if not _is_number(branch):
        return None
    wider = _NUMBERS[_NUMBERS.index(shown(branch)) :]
    return next((one for one in union.fields if _is_number(one) and shown(one) in wider), None)


def _of_type(branch: Field, union: StructOf) -> Field | None:
    if not isinstance(branch.type, Simple | Decimal) or _is_number(branch):
        return None
    return next((one for one in union.fields if one.type == branch.type), None)


def _is_number(branch: Field) -> bool:
    return shown(branch) in _NUMBERS and isinstance(branch.type, Simple) and branch.type.word in _NUMBERS


def _alone(type_: Type) -> Field:
    match type_:
        case StructOf(_, _, (name, *former)):
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


_MEMBER: Final = "member_"
_NUMBERS: Final = ("int", "long", "float", "double")
