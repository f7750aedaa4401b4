"""Random row types and JSON texts: right ones, nearly right ones, and what producers write by mistake."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, Field, MapOf, Simple, StructOf, Type

Dice = random.Random

_SHARED, _ALIKE = 0.15, 0.8
"""How often two fields of a struct read one key, and how often they then have one type."""

_UNITS = {"date": ("d", "ms"), "time": ("ms", "us"), "timestamp": ("s", "ms", "us", "ns"), "timestamp_ntz": ("ms",)}
_WORDS = ("boolean", "byte", "short", "int", "long", "float", "double", "string", "string", "binary")
_TEXTS = ("", "a", "é😀", "\0", "a\nb", "\t", "Infinity", 'q"', "{", "}{", "x" * 50, "\ud800", "1", "null")
_TIMES = {
    "date": ("2026-01-01", "2026-1-1", "0001-01-01", "0000-12-31", "9999-12-31", "10000-01-01",
    "20260101", "2026-02-30"),
    "time": ("10:11:12", "10:11", "23:59:59.999999999", "24:00:00", "10:11:12.1234567891", "10:11:12.5"),
    "timestamp": (
        "2026-01-01T00:00:00Z", "2026-01-01 10:11:12.123456+02:00", "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.123456789Z",
        "2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2026-01-01T00:00:00.1-0130",
        "2026-01-01T23:59:60Z", "2026-01-01T00:00:00z", "0001-01-01T00:00:00+01:00", "2026-01-01T00:00:00.12345678Z",
    ),
    "timestamp_ntz": (
        "2026-01-01T00:00:00", "2026-01-01 01:02:03.5", "2026-01-01",
        "2026-01-01T00:00:00.1234567", "2026-01-01T00:00:00Z",
    ),
}  # fmt: skip
_ODD = (True, 1, 1.5, "x", {}, [], 1e300, "NaN", 10**25, float("nan"), float("inf"), -0.0, "2026-01-01", "", [[[]]])
PIECES = (
    b"e-77", b"E-999999999", b"\\u0065-999999999", b"0" * 76,
    b"NaN", b"Inf", b"\0", b"{", b"}", b"]", b"[", b",", b'"', b"\\", b"\n", b"\r", b"1", b"e",
    b"-", b".", b"\xff", b" ",
    b"null", b"true", b":", b"\\ud800", b"\\u0000", b"{}", b"}{", b"0", b"\xef\xbb\xbf", b"//",
    b"\t", b"9" * 21, b"[" * 120,
    b"Infinity", b"'", b"\\u00e9", b"1e400", b"\xed\xa0\x80", b'"f1":1', b"}\n{",
)  # fmt: skip


def row_type(dice: Dice) -> StructOf:
    """A struct of a few fields."""
    return _struct(dice, [_field(dice, f"f{number}", 0) for number in range(dice.choice((1, 2, 4, 8)))])


def _struct(dice: Dice, fields: list[Field]) -> StructOf:
    """The fields, of which two may read one key, mostly as the same type."""
    if len(fields) > 1 and dice.random() < _SHARED:
        first, *_, last = fields
        fields[-1] = replace(last, keys=(first.name,), type=first.type if dice.random() < _ALIKE else last.type)
    return StructOf(tuple(fields))


def _field(dice: Dice, name: str, depth: int) -> Field:
    return Field(name, _type(dice, depth), nullable=dice.random() < 0.85)


def _type(dice: Dice, depth: int) -> Type:
    pick = dice.random()
    if depth < 3 and pick < 0.1:
        return _struct(dice, [_field(dice, f"g{number}", depth + 1) for number in range(dice.randint(1, 3))])
    if depth < 3 and pick < 0.2:
        return ArrayOf(_type(dice, depth + 1))
    if depth < 3 and pick < 0.23:
        return MapOf(Simple("string"), _type(dice, depth + 1))
    if pick < 0.33:
        precision = dice.choice((3, 10, 18, 38))
        return Decimal(precision, dice.randint(0, min(precision, 6)))
    if pick < 0.53:
        word = dice.choice(list(_UNITS))
        return Simple(word, dice.choice((None, *_UNITS[word])))
    return Simple(dice.choice(_WORDS))


def text(dice: Dice, type_: StructOf) -> bytes:
    """A text that is more often right than not."""
    odd = dice.choice((0, 0, 0, 0.1))
    made = _value(dice, type_, odd)
    said = json.dumps(made, ensure_ascii=dice.random() < 0.5, indent=1 if dice.random() < 0.05 else None)
    return said.encode("utf-8", "surrogatepass")


def _value(dice: Dice, type_: Type, odd: float) -> Any:
    if odd and dice.random() < odd:
        return dice.choice((None, *_ODD))
    match type_:
        case StructOf(fields):
            shown = [one for one in fields if not one.nullable or dice.random() < 0.8]
            made = {one.in_objects[0]: _value(dice, one.type, odd) for one in shown}
            if dice.random() < 0.1:
                made["other"] = dice.choice((1, {"a": [1]}, "NaN", None, [[[]]], 1e308))
            items = list(made.items())
            dice.shuffle(items)
            return dict(items)
        case ArrayOf(element):
            return [_value(dice, element, odd) for _ in range(dice.randrange(4))]
        case MapOf(_, item):
            return {dice.choice("abc"): _value(dice, item, odd) for _ in range(dice.randrange(4))}
        case Decimal(precision, scale):
            return _decimal(dice, precision, scale, odd)
        case Simple(word, unit):
            return _simple(dice, word, unit, odd)


def _decimal(dice: Dice, precision: int, scale: int, odd: float) -> Any:
    whole = dice.randrange(10 ** (precision - scale)) if precision > scale else 0
    said = f"{whole}.{'1' * min(scale, 2)}" if scale else str(whole)
    if odd and dice.random() < 0.3:
        return dice.choice(("1e2", "+1", ".5", "5.", "0e5", "1e99", "1.23456789", 1e30, "x", " 1", "0E998"))
    return said if dice.random() < 0.6 or precision > 15 else float(said) if scale else int(said)


def _simple(dice: Dice, word: str, unit: str | None, odd: float) -> Any:
    match word:
        case "boolean":
            return dice.random() < 0.5
        case "byte" | "short" | "int" | "long":
            most = 1 << ({"byte": 8, "short": 16, "int": 32, "long": 64}[word] - 1)
            return dice.choice((0, -1, most - 1, -most, dice.randrange(most), most if odd else 0))
        case "float" | "double":
            return dice.choice(
                (0.0, -0.0, dice.random(), 5e-324, 1e38, 16777217, 0.1 + dice.random() * 1e-9, 3.5e38 if odd else 1)
            )
        case "string":
            return dice.choice(_TEXTS if odd else [one for one in _TEXTS if one != "\ud800"])
        case "binary":
            return dice.choice(("", "AA==", "AAA=", "/+8=", *(("A", "AA==AA==", "_-8=", "A A==") if odd else ())))
    if unit and dice.random() < 0.9:
        return dice.choice((0, -1, 1_700_000_000_123, 20_000, dice.randrange(1 << 40)) if odd else (0, 20_000, 1000))
    return dice.choice(_TIMES[word] if odd else _TIMES[word][:1])
