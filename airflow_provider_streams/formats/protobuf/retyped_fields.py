"""Fields whose type changed under their number, if Protobuf calls both types compatible: their bytes are alike.

| older | newest | lands |
|---|---|---|
| int32, int64, uint32, uint64, bool, an enum | another of these | the number, if the column holds it |
| sint32, sint64; fixed32, sfixed32; fixed64, sfixed64 | the other one | the number, if the column holds it |
| any of the first row | bool; an enum | 0 and 1; the number's name, or its digits |
| string, bytes | the other one | the same bytes, if they are text |
| one value; a list | a list; one value | a list of it, if it is there; the value of a list of one, null of none |

Google's runtimes cut a number, and take the last value of a list. Here, a value that they would lose is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.model.schema.types import Decimal, Simple, Type

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor


class Misfit(ValueError):
    """The newest version's type does not hold a value."""


def differ(kind: int, newest: int) -> bool:
    """Whether values of an older type must be converted to the newest type, both by their numbers in descriptors."""
    alike = any({kind, newest} <= family for family in _FAMILIES)
    return (kind != newest and alike) or (kind, newest) == (STRING, ENUM)


def meeting(own: Type, newest: Type) -> Type:
    """The type of an older field's values, if both types `differ`. Columns of whole numbers grow by themselves."""
    if newest not in _NUMBERS:
        return newest
    return own if own in _NUMBERS else _LONG if isinstance(own, Decimal) else newest


def conversion(type_: Type, known: FieldDescriptor) -> Callable[[Any], Any]:
    """The function that converts an older value to a type: the newest version's, or the one of `meeting`.

    It raises `Misfit`, also for text that is not UTF-8.
    """
    if known.enum_type is not None:
        return _symbol({number: value.name for number, value in known.enum_type.values_by_number.items()})
    match type_:
        case Simple("binary"):
            return lambda value: value if isinstance(value, bytes) else value.encode()
        case Simple("string"):
            return _text
    least, most = _RANGES.get(str(type_), (-math.inf, math.inf))
    made = bool if type_ == Simple("boolean") else int

    def number(value: Any) -> int:
        if not least <= int(value) <= most:
            raise Misfit
        return made(value)

    return number


def _symbol(names: dict[int, str]) -> Callable[[Any], Any]:
    def symbol(value: Any) -> str:
        if not isinstance(value, int):
            raise Misfit
        return names.get(int(value)) or str(int(value))

    return symbol


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        return str(int(value)) if isinstance(value, int) else value
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Misfit from None


def shown(field: FieldDescriptor) -> str:
    """A field's type, as a `.proto` file writes it."""
    return _WORDS[field.type]


STRING, ENUM = 9, 14
_WORDS: Final = {
    3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool", 9: "string", 12: "bytes", 13: "uint32",
    14: "enum", 15: "sfixed32", 16: "sfixed64", 17: "sint32", 18: "sint64",
}  # fmt: skip
_FAMILIES: Final = ({3, 4, 5, 8, 13, 14}, {17, 18}, {7, 15}, {6, 16}, {9, 12})
"""Compatible types, by their numbers in descriptors."""
_LONG: Final = Simple("long")
_NUMBERS: Final = (Simple("int"), _LONG)
_RANGES: Final = {
    "boolean": (0, 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
}
