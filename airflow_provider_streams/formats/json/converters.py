"""Parsed JSON values to column values, one by one: the rules. Reading in blocks only makes them faster.

| column | JSON |
|---|---|
| boolean | true, false |
| byte, short, int, long | a number without a fraction or an exponent that fits |
| float, double | a number that is not beyond its type; NaN, Infinity and -Infinity, as Python writes them or quoted |
| decimal | a number, or text of one, that fits without rounding |
| string | text; with a form, a number's digits or any value as JSON; for an enum see `_enum` |
| binary | text: base64 |
| date, time, timestamp, timestamp_ntz | ISO 8601, a timestamp with its zone, others without; with a unit, a number |
| array, map, struct | an array, an object, an object |

Times may also be as Jackson writes them. null is null. A missing field is null; if it may not be null, the object is
refused. A column's key that occurs twice, and anything after the value, is refused. Keys without a column are ignored.
Several columns may read one key.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrow_types import SIMPLE
from airflow_provider_streams.formats.arrow.times import OUTSIDE, Scale, scale_of
from airflow_provider_streams.formats.json import jackson
from airflow_provider_streams.formats.json.jackson import Number, Refused
from airflow_provider_streams.formats.json.unmatched_keys import OTHERS
from airflow_provider_streams.model.schema.type_table import TIMES
from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, MapOf, Simple, StructOf, Type

Convert: TypeAlias = Callable[[Any], Any]


def converter(type_: Type, *, strict: bool = False) -> Convert:  # noqa: PLR0911  # one for each kind of type
    """The function that makes a column value, as `pa.array` takes it, of a parsed value other than null.

    It raises `Refused`.

    Args:
        type_: the column's type.
        strict: whether an object is refused that has keys without a column, and lacks a column's key.
    """
    match type_:
        case Decimal():
            return _decimal(type_)
        case ArrayOf(element):
            return _array(converter(element, strict=strict))
        case MapOf(key, item):
            return _map(_key(str(key)), converter(item, strict=strict))
        case StructOf():
            return _struct(type_, strict=strict)
        case Simple(word, unit) if word in TIMES:
            return _time(word, None if unit is None else Scale.of(word, unit))
        case Simple(form="number" | "json" as form):
            return _digits if form == "number" else jackson.as_text
        case Simple(symbols=(_, *_) as symbols):
            return _enum(symbols)
    return _SIMPLE[str(type_)]


def needs_digits(type_: Type) -> bool:
    """Whether the digits of fractions count, not the nearest number that Python has."""
    return isinstance(type_, Decimal) or (
        isinstance(type_, Simple) and (type_.word in ("float", "timestamp") or type_.form is not None)
    )


def _struct(type_: StructOf, *, strict: bool) -> Convert:
    takers: dict[str, list[_Taker]] = {}
    several: dict[str, tuple[str, ...]] = {}
    for one in type_.fields:
        convert_one = converter(one.type, strict=strict)
        has_several = len(one.in_objects) > 1
        for key in one.in_objects:
            slot = (one.name, key if has_several else "")
            takers.setdefault(key, []).append(_Taker(slot, key if has_several else one.name, convert_one))
        if has_several:
            several[one.name] = one.in_objects
    check = _check_of(type_, strict=strict)

    def convert(value: Any) -> Mapping[str, Any]:
        if type(value) is not tuple:
            raise Refused("is no object")
        held: dict[_Slot, Any] = {}
        others = False
        for key, inner in value:
            if key not in takers:
                others = others or inner is not None
            for taker in takers.get(key, ()):
                taker.take(inner, held)
        found = {name: one for (name, key), one in held.items() if not key}
        for name, keys in several.items():
            _join(found, held, name, keys)
        check(found, others)
        return found

    return convert


_Slot: TypeAlias = tuple[str, str]
"""A field's name, and one of its keys if it has several."""


class _Taker(NamedTuple):
    """A field that takes the value of a key, which other fields may take as well."""

    slot: _Slot
    path: str
    convert: Convert

    def take(self, value: Any, held: dict[_Slot, Any]) -> None:
        """Hold the field's value. Raises Refused if there is one, or it is none of its type."""
        if self.slot in held:
            raise Refused("is there twice", self.path)
        try:
            held[self.slot] = None if value is None else self.convert(value)
        except Refused as refused:
            raise refused.below(self.path) from None


def _check_of(type_: StructOf, *, strict: bool) -> Callable[[Mapping[str, Any], bool], None]:
    """The function that refuses an object without a field that it needs."""
    names = tuple(one.name for one in type_.fields)
    required = tuple(one.name for one in type_.fields if not one.nullable)

    def check(found: Mapping[str, Any], others: bool) -> None:  # noqa: FBT001  # one of its facts
        for name in required:
            if found.get(name) is None:
                raise Refused(f"is lacking, or null; {OTHERS}" if others else "is lacking, or null", name)
        if strict and others and len(found) < len(names):
            raise Refused(f"is lacking; {OTHERS}", next(name for name in names if name not in found))

    return check


def _join(found: dict[str, Any], held: Mapping[_Slot, Any], name: str, keys: tuple[str, ...]) -> None:
    """Join the values of a field's keys, which must be the same."""
    there = [held[name, key] for key in keys if (name, key) in held]
    values = [value for value in there if value is not None]
    if any(value != values[0] for value in values):
        raise Refused("is there twice, with different values", name)
    if there:
        found[name] = values[0] if values else None


def _array(element: Convert) -> Convert:
    def convert(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Refused("is no array")
        try:
            return [None if one is None else element(one) for one in value]
        except Refused as refused:
            raise refused.below("[]") from None

    return convert


def _map(key: Convert, item: Convert) -> Convert:
    def convert(value: Any) -> list[tuple[Any, Any]]:
        if type(value) is not tuple:
            raise Refused("is no object")
        try:
            found = [(key(name), None if one is None else item(one)) for name, one in value]
        except Refused as refused:
            raise refused.below("{}") from None
        if len({name for name, _ in found}) < len(found):
            raise Refused("a key is there twice")
        return found

    return convert


def _key(word: str) -> Convert:
    """Keys are texts: JSON's text of a number or a boolean, ISO 8601's of a time."""
    if word == "boolean":
        return lambda value: _boolean({"true": True, "false": False}.get(value))
    of_number = converter(Simple(word))
    if word not in _NUMBER_WORDS:
        return of_number

    def convert(value: Any) -> Any:
        if not _NUMBER.fullmatch(value) and value not in _NOT_FINITE:
            raise Refused("is no number")
        return of_number(Number(value))

    return convert


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Refused("is neither true nor false")


def _integer(bits: int) -> Convert:
    most = 1 << (bits - 1)

    def convert(value: Any) -> int:
        if type(value) is not int and (type(value) is not Number or not _INTEGER.fullmatch(value)):
            raise Refused("is no whole number")
        if (type(value) is Number and len(value) > _LONGEST) or not -most <= int(value) < most:
            raise Refused(f"does not fit into {bits} bits")
        return int(value)

    return convert


def _float32(text: str) -> float:
    found: float = pa.scalar(text).cast(pa.float32()).as_py()
    return found


def _float(parse: Callable[[str], float], value: Any) -> float:
    if type(value) in _WORDS and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if type(value) not in _NUMBERS:
        raise Refused("is no number")
    number = value if type(value) is float else parse(str(value))
    if math.isinf(number):
        raise Refused("is beyond its type")
    return number


def _decimal(type_: Decimal) -> Convert:
    most = 10**type_.precision

    def convert(value: Any) -> decimal.Decimal:
        if type(value) is not int and (type(value) not in _WORDS or not _DECIMAL.fullmatch(value)):
            raise Refused("is no number")
        try:
            number = _EXACT.create_decimal(value)
            unscaled = number.scaleb(type_.scale, _EXACT)
            whole = int(unscaled.to_integral_exact(context=_WHOLE))
        except decimal.DecimalException:
            raise Refused(f"does not fit into {type_}") from None
        if abs(whole) >= most:
            raise Refused(f"does not fit into {type_}")
        return decimal.Decimal(whole).scaleb(-type_.scale, _EXACT)

    return convert


def _string(value: Any) -> str:
    if type(value) is not str:
        raise Refused("is no text")
    return jackson.utf8(value)


def _binary(value: Any) -> bytes:
    if type(value) is not str:
        raise Refused("is no text")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Refused("is not base64") from None


def _digits(value: Any) -> str:
    """Text, or a number's digits as text."""
    if type(value) is int or (type(value) is Number and _DECIMAL.fullmatch(value)):
        return str(value)
    return _string(value)


def _enum(symbols: tuple[str, ...]) -> Convert:
    """Any text. pulsar-client writes the number of a Python enum, and its schema has the names."""
    shown = ", ".join(symbols[:_MOST_SYMBOLS]) + (", .." if len(symbols) > _MOST_SYMBOLS else "")

    def convert(value: Any) -> str:
        if type(value) not in (int, Number):
            return _string(value)
        if len(symbols) > 1:
            raise Refused(f"is the number of an enum, and its schema does not say of which of its symbols: {shown}")
        return symbols[0]

    return convert


def _time(word: str, scale: Scale | None) -> Convert:
    """Text of a time, or what Jackson writes. A number only if its unit is known."""
    of_text, long, own = _text_time(word), _integer(64), scale_of(Simple(word))

    def convert(value: Any) -> int:
        if type(value) is str:
            return int(of_text(value))
        if word == "timestamp" and jackson.is_seconds(value):
            found = own.one(jackson.moment(value))
        elif word != "timestamp" and type(value) is list:
            return jackson.time_of_parts(word, list(map(long, value)))
        elif scale is None:
            raise Refused("is no text of a time")
        else:
            found = scale.one(long(value))
        if found is None:
            raise Refused(OUTSIDE)
        return found

    return convert


def _text_time(word: str) -> Convert:
    kind = SIMPLE[word]
    scale = scale_of(Simple(word))

    def convert(value: Any) -> int:
        if not value.isascii() or len(value) > _LONGEST_TIME:
            raise Refused(_NO_TIME[word])
        if word in ("timestamp", "timestamp_ntz"):
            value = _FINER.sub(r"\1", value)
        try:
            found: int = time_of_day(value) if word == "time" else pa.scalar(value).cast(kind).value
        except (pa.ArrowInvalid, ValueError):
            raise Refused(_NO_TIME[word]) from None
        if scale.one(found) is None:
            raise Refused(OUTSIDE)
        return found

    return convert


def time_of_day(text: str) -> int:
    """Nanoseconds since midnight: `10:11`, `10:11:12`, `10:11:12.123456789`.

    Raises:
        ValueError: otherwise.
    """
    found = _TIME_OF_DAY.fullmatch(text)
    if not found:
        raise ValueError
    hours, minutes, seconds, fraction = found.groups(default="0")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000_000 + int(fraction.ljust(9, "0"))


_INTEGER: Final = re.compile(r"-?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TIME_OF_DAY: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,9}))?)?")
_FINER: Final = re.compile(r"(\.[0-9]{6})[0-9]{1,3}(?![0-9])")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_WORDS: Final = ("byte", "short", "int", "long", "float", "double")
_MOST_SYMBOLS: Final = 20
_LONGEST, _LONGEST_TIME = 40, 40
_WORDS: Final = (str, Number)
_NUMBERS: Final = (Number, int, float)
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_EXACT: Final = decimal.Context(
    prec=400, Emax=1000, Emin=-1000, traps=[decimal.InvalidOperation, decimal.Overflow, decimal.Inexact]
)
_WHOLE: Final = decimal.Context(prec=400, traps=[decimal.InvalidOperation, decimal.Inexact])
_NO_TIME: Final = {
    "date": "is no date as ISO 8601 writes it",
    "time": "is no time of day as ISO 8601 writes it",
    "timestamp": "is no moment as ISO 8601 writes it, with its zone",
    "timestamp_ntz": "is no time as ISO 8601 writes it without a zone",
}
_SIMPLE: Final[dict[str, Convert]] = {
    "boolean": _boolean,
    "byte": _integer(8),
    "short": _integer(16),
    "int": _integer(32),
    "long": _integer(64),
    "float": partial(_float, _float32),
    "double": partial(_float, float),
    "string": _string,
    "binary": _binary,
}
