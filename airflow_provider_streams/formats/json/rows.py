"""One JSON text after the other, by Python's own parser: the rules, which the way in blocks may only make faster.

| column | JSON |
|---|---|
| boolean | true, false |
| byte, short, int, long | a number without a fraction or an exponent that fits |
| float, double | a number that is not beyond its type; NaN, Infinity and -Infinity, as Python writes them or quoted |
| decimal | a number, or text of one, that fits without rounding |
| string | text |
| binary | text: base64 |
| date, time, timestamp, timestamp_ntz | ISO 8601, a timestamp with its zone, others without; with a unit: a number |
| array, map, struct | an array, an object, an object |

null is null. A field that is lacking is null; where it may not be, the object is refused. A key of a column that comes
twice, and anything behind the value, is refused. Keys that are no columns are passed over.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from airflow_provider_streams.formats.arrow_types import SIMPLE
from airflow_provider_streams.formats.times import Scale, scale_of
from airflow_provider_streams.model.row_type import (
    TIMES,
    ArrayOf,
    Decimal,
    MapOf,
    Simple,
    StructOf,
    Type,
    leaves,
)

MOST_DEPTH: Final = 100
"""Values within values."""

MOST_DIGITS: Final = 4000
"""Bytes of a text whose numbers may all be read by Python, which takes long for longer ones and refuses them."""

Convert: TypeAlias = Callable[[Any], Any]


class Refused(Exception):  # caught by those who call: a cause, no error of the package
    """Why a text is no row, and where in it."""

    def __init__(self, rule: str, path: str = "") -> None:
        super().__init__(rule)
        self.rule, self.path = rule, path

    def below(self, name: str) -> Refused:
        """The same, seen from the value around."""
        return Refused(self.rule, f"{name}{'.' if self.path and not self.path.startswith('[') else ''}{self.path}")

    def __str__(self) -> str:
        return f"{self.path or 'the value'}: {self.rule}"


class Number(str):
    """A number's own digits."""

    __slots__ = ()


class RowReader:
    """Reads single texts as values of a type."""

    def __init__(self, type_: Type) -> None:
        self.convert = converter(type_)
        """Makes what was parsed, and is not null, what `pa.array` takes for the type; raises Refused."""
        exact = any(isinstance(one, Decimal) or one == Simple("float") for one in leaves(type_))
        self._scan = _SCANNERS["fractions as text" if exact else "numbers as Python's"]

    def quickly(self, data: bytes) -> Any:
        """What `parsed` gives, of a text that `plain_rows` has found.

        Raises:
            Refused: it is no JSON.
        """
        try:
            text = data.decode()
            parsed, end = self._scan(text, 0)
            if end == len(text):
                return parsed
        except (ValueError, StopIteration, RecursionError):
            pass
        return self.parsed(data)  # which says why

    def parsed(self, data: bytes) -> Any:
        """What the text says: an object is a tuple of its keys and values, as they came.

        Raises:
            Refused: it is no JSON.
        """
        if len(data) > 2 * MOST_DEPTH and data.count(b"{") + data.count(b"[") > MOST_DEPTH and _is_deep(data):
            raise Refused(f"is nested deeper than {MOST_DEPTH} levels")
        try:
            # Python's whole numbers have no -0, and those of thousands of digits are refused by it, as they take long
            odd = len(data) > MOST_DIGITS or (b"-0" in data and _MINUS_ZERO.search(data))
            text = data.decode().strip(_SPACE)
            parsed, end = (_SCANNERS["numbers as text"] if odd else self._scan)(text, 0)
        except UnicodeDecodeError:
            raise Refused("is not UTF-8") from None
        except (ValueError, StopIteration, RecursionError):
            raise Refused("is not JSON") from None
        if end < len(text):
            raise Refused("more follows its JSON")
        return parsed


def converter(type_: Type) -> Convert:
    """The function that makes a parsed value, which is not null, one of the type."""
    match type_:
        case Decimal():
            return _decimal(type_)
        case ArrayOf(element):
            return _array(converter(element))
        case MapOf(key, item):
            return _map(converter(key), converter(item))
        case StructOf():
            return _struct(type_)
        case Simple(word, unit) if word in TIMES:
            return _time(word) if unit is None else _counted(word, Scale.of(word, unit))
    return _SIMPLE[str(type_)]


def _struct(type_: StructOf) -> Convert:
    fields = {one.name: converter(one.type) for one in type_.fields}
    known = fields.get
    required = tuple(one.name for one in type_.fields if not one.nullable)

    def convert(value: Any) -> Mapping[str, Any]:
        if type(value) is not tuple:
            raise Refused("is no object")
        found: dict[str, Any] = {}
        for name, inner in value:
            one = known(name)
            if one is None:
                continue
            if name in found:
                raise Refused("is there twice", name)
            try:
                found[name] = None if inner is None else one(inner)
            except Refused as refused:
                raise refused.below(name) from None
        for name in required:
            if found.get(name) is None:
                raise Refused("is lacking, or null", name)
        return found

    return convert


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


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Refused("is neither true nor false")


def _integer(bits: int) -> Convert:
    most = 1 << (bits - 1)

    def convert(value: Any) -> int:
        if type(value) is not int:
            value = _whole(value, bits)
        if not -most <= value < most:
            raise Refused(f"does not fit into {bits} bits")
        return int(value)

    return convert


def _whole(value: Any, bits: int) -> int:
    if type(value) is not Number or not _INTEGER.fullmatch(value):
        raise Refused("is no whole number")
    if len(value) > _LONGEST:
        raise Refused(f"does not fit into {bits} bits")
    return int(value)


def _double(value: Any) -> float:
    return _float_of(value, float)


def _float(value: Any) -> float:
    return _float_of(value, lambda text: pa.scalar(text).cast(pa.float32()).as_py())


def _float_of(value: Any, parse: Callable[[str], float]) -> float:
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
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused("is not UTF-8") from None
    return value


def _binary(value: Any) -> bytes:
    if type(value) is not str:
        raise Refused("is no text")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Refused("is not base64") from None


def _counted(word: str, scale: Scale) -> Convert:
    """A number of a unit; text of a time too."""
    long, text = _integer(64), _time(word)

    def convert(value: Any) -> int:
        if type(value) is str:
            return int(text(value))
        found = scale.one(long(value))
        if found is None:
            raise Refused(_OUTSIDE)
        return found

    return convert


def _time(word: str) -> Convert:
    kind = SIMPLE[word]
    scale = scale_of(Simple(word))

    def convert(value: Any) -> int:
        if type(value) is not str:
            raise Refused("is no text of a time")
        if not value.isascii() or len(value) > _LONGEST_TIME:
            raise Refused(_NO_TIME[word])
        if word in ("timestamp", "timestamp_ntz"):
            value = _FINER.sub(r"\1", value)
        try:
            found: int = time_of_day(value) if word == "time" else pa.scalar(value).cast(kind).value
        except (pa.ArrowInvalid, ValueError):
            raise Refused(_NO_TIME[word]) from None
        if scale.one(found) is None:
            raise Refused(_OUTSIDE)
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


def _is_deep(data: bytes) -> bool:
    depth = 0
    for token in _TOKENS.finditer(data):
        if token[0] in (b"{", b"["):
            depth += 1
            if depth > MOST_DEPTH:
                return True
        elif token[0] in (b"}", b"]"):
            depth -= 1
    return False


def _constant(word: str) -> Number:
    return Number(word)


_SCANNERS: Final = {
    name: json.JSONDecoder(
        object_pairs_hook=tuple, parse_float=fraction, parse_int=whole, parse_constant=_constant, strict=True
    ).scan_once  # type: ignore[attr-defined]  # what `raw_decode` calls
    for name, fraction, whole in (
        ("numbers as Python's", float, int),
        ("fractions as text", Number, int),
        ("numbers as text", Number, Number),
    )
}

_SPACE: Final = " \t\n\r"
_MINUS_ZERO: Final = re.compile(rb"[:,\[\s]-0")
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_INTEGER: Final = re.compile(r"-?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TIME_OF_DAY: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,9}))?)?")
_FINER: Final = re.compile(r"(\.[0-9]{6})[0-9]{1,3}(?![0-9])")
_LONGEST, _LONGEST_TIME = 40, 40
_WORDS: Final = (str, Number)
_NUMBERS: Final = (Number, int, float)
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_EXACT: Final = decimal.Context(
    prec=400, Emax=1000, Emin=-1000, traps=[decimal.InvalidOperation, decimal.Overflow, decimal.Inexact]
)
_WHOLE: Final = decimal.Context(prec=400, traps=[decimal.InvalidOperation, decimal.Inexact])
_OUTSIDE: Final = "is no time of the years 1 to 9999, or of a day"
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
    "float": _float,
    "double": _double,
    "string": _string,
    "binary": _binary,
}
