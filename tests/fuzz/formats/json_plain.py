"""JSON by `json.loads` and exact arithmetic: what the reader of blocks is held against."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
import re
from typing import Any

import numpy as np

from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, MapOf, Simple, StructOf, Type

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
DAY = "([0-9]{4})-([0-9]{2})-([0-9]{2})"
CLOCK = r"([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?"
ZONE = "(Z|[+-][0-9]{2}(?::?[0-9]{2})?)"


class Refused(Exception):
    """A text that is no row of the type."""


class Real(decimal.Decimal):
    """A number with a fraction or an exponent."""


class Beyond(str):
    """A number with an exponent beyond all that is exact."""

    __slots__ = ()


class Pairs(list[Any]):
    """An object."""


def decode(type_: Type, data: bytes) -> Any:
    """The row, as `pa.array` takes it."""
    try:
        parsed = json.loads(
            data.decode(),
            object_pairs_hook=Pairs,
            parse_float=_real,
            parse_int=decimal.Decimal,
            parse_constant=WORDS.__getitem__,
        )
    except (ValueError, RecursionError, decimal.DecimalException):
        raise Refused from None
    if parsed is None or _depth(parsed) > 100:
        raise Refused
    return _value(type_, parsed)


def _real(text: str) -> Real | Beyond:
    try:
        return Real(text)
    except decimal.DecimalException:
        return Beyond(text)


def _depth(parsed: Any) -> int:
    if type(parsed) not in (list, Pairs):
        return 0
    inner = [one[1] for one in parsed] if type(parsed) is Pairs else parsed
    return 1 + max(map(_depth, inner), default=0)


def _value(type_: Type, value: Any) -> Any:
    if value is None:
        return None
    match type_:
        case StructOf(fields):
            return _struct(fields, value)
        case ArrayOf(element) if type(value) is list:
            return [_value(element, one) for one in value]
        case MapOf(_, item) if type(value) is Pairs:
            found = [(_text(key), _value(item, one)) for key, one in value]
            if len({key for key, _ in found}) == len(found):
                return found
        case Decimal(precision, scale):
            return _decimal(precision, scale, value)
        case Simple(word, unit):
            return _simple(word, unit, value)
    raise Refused


def _struct(fields: Any, value: Any) -> dict[str, Any]:
    if type(value) is not Pairs:
        raise Refused
    names = [key for key, _ in value]
    found = dict(value)
    for one in fields:
        (key,) = one.in_objects
        if names.count(key) > 1 or (not one.nullable and found.get(key) is None):
            raise Refused
    return {one.name: _value(one.type, found.get(one.in_objects[0])) for one in fields}


def _simple(word: str, unit: str | None, value: Any) -> Any:
    whole = type(value) is decimal.Decimal
    if word == "boolean" and type(value) is bool:
        return value
    if word in BITS and whole:
        if -(1 << (BITS[word] - 1)) <= value < 1 << (BITS[word] - 1):
            return int(value)
        raise Refused
    if word in ("float", "double"):
        return _float(word, value)
    if word == "string":
        return _text(value)
    if word == "binary" and type(value) is str:
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            raise Refused from None
    if word in ("date", "time", "timestamp", "timestamp_ntz"):
        return _counted(word, unit, value) if whole and unit else _time(word, value)
    raise Refused


def _text(value: Any) -> str:
    if type(value) is not str or re.search("[\ud800-\udfff]", value):
        raise Refused
    return value


def _float(word: str, value: Any) -> float:
    if type(value) is str and value in WORDS:
        return WORDS[value]
    if type(value) is float:
        return value
    if type(value) is Beyond:
        value = decimal.Decimal(float(value))
    if not isinstance(value, decimal.Decimal):
        raise Refused
    found = float(value) if word == "double" else _nearest(value)
    if math.isinf(found):
        raise Refused
    return found


def _nearest(value: decimal.Decimal) -> float:
    """The nearest 32-bit number; of two as near, the even one."""
    with np.errstate(over="ignore", under="ignore"):
        middle = np.float32(float(value))
        if np.isinf(middle):
            return float(middle)
        around = [middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))]
    exact = decimal.Context(prec=1000, Emin=-100_000, Emax=100_000)

    def order(one: np.float32) -> tuple[decimal.Decimal, int]:
        return abs(exact.subtract(decimal.Decimal(float(one)), value)), int(one.view(np.uint32)) & 1

    found = float(min((one for one in around if np.isfinite(one)), key=order))
    return -0.0 if found == 0 and value.is_signed() else found


def _decimal(precision: int, scale: int, value: Any) -> decimal.Decimal:
    if type(value) is str and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value):
        try:
            value = decimal.Decimal(value)
        except decimal.DecimalException:
            raise Refused from None
    if not isinstance(value, decimal.Decimal):
        raise Refused
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if not any(digits):
        return decimal.Decimal(0)
    if not -900 < exponent < 900 or len(digits) > 300:
        raise Refused
    whole = int("".join(map(str, digits)))
    shift = exponent + scale
    whole, rest = (whole * 10**shift, 0) if shift >= 0 else divmod(whole, 10**-shift)
    if rest or whole >= 10**precision:
        raise Refused
    return decimal.Decimal(-whole if sign else whole).scaleb(-scale, decimal.Context(prec=60))


def _counted(word: str, unit: str, value: decimal.Decimal) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise Refused
    nanos = int(value) * {"d": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[unit]
    count = nanos // {"date": 86_400 * 10**9, "time": 1, "timestamp": 1000, "timestamp_ntz": 1000}[word]
    return _checked(word, count)


def _checked(word: str, count: int) -> int:
    day = {"date": 1, "timestamp": 86_400_000_000, "timestamp_ntz": 86_400_000_000}.get(word)
    low, high = (0, 86_400 * 10**9) if day is None else (-719_162 * day, 2_932_897 * day)
    if not low <= count < high:
        raise Refused
    return count


def _time(word: str, value: Any) -> int:
    if type(value) is not str:
        raise Refused
    pattern = {
        "date": DAY,
        "time": CLOCK,
        "timestamp": f"{DAY}[ T]{CLOCK}{ZONE}",
        "timestamp_ntz": f"{DAY}(?:[ T]{CLOCK})?",
    }
    found = re.fullmatch(pattern[word], value)
    if not found:
        raise Refused
    parts = list(found.groups())
    zone = parts.pop() if word == "timestamp" else None
    days = 0
    if word != "time":
        try:
            days = (dt.date(*(int(one) for one in parts[:3])) - dt.date(1970, 1, 1)).days
        except ValueError:
            raise Refused from None
        if word == "date":
            return _checked("date", days)
        parts = parts[3:]
    hour, minute, second = (int(one or 0) for one in parts[:3])
    nanos = int((parts[3] or "0").ljust(9, "0"))
    if word == "time" and parts[1] is None:
        raise Refused
    if hour > 23 or minute > 59 or second > 59:
        raise Refused
    clock = ((hour * 60 + minute) * 60 + second) * 10**9 + nanos
    if word == "time":
        return clock
    return _checked(word, days * 86_400_000_000 + clock // 1000 - _offset(zone))


def _offset(zone: str | None) -> int:
    if zone in (None, "Z"):
        return 0
    assert zone
    digits = zone[1:].replace(":", "").ljust(4, "0")
    if int(digits[:2]) > 23 or int(digits[2:]) > 59:
        raise Refused
    micros = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000_000
    return micros if zone[0] == "+" else -micros
