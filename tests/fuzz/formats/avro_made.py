"""Random Avro schemas and values."""

from __future__ import annotations

import random
from typing import Any

Dice = random.Random

PRIMITIVES = ("boolean", "int", "long", "float", "double", "bytes", "string")
TIMES = {
    "date": "int", "time-millis": "int", "time-micros": "long", "timestamp-millis": "long", "timestamp-micros": "long",
    "timestamp-nanos": "long", "local-timestamp-millis": "long", "local-timestamp-micros": "long",
}  # fmt: skip
_DAY_MS = 86_400_000
_NUMBERS = (
    0,
    1,
    -1,
    63,
    64,
    -64,
    -65,
    8191,
    8192,
    1 << 20,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 33,
    (1 << 63) - 1,
    -(1 << 63),
)
_TEXTS = ("", "a", "hello", "é", "😀" * 3, "\0", "x" * 70)


def schema(dice: Dice) -> dict[str, Any]:
    """A record of a few fields."""
    return _Maker(dice).record(0)


class _Maker:
    def __init__(self, dice: Dice) -> None:
        self.dice, self.count = dice, 0

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def record(self, depth: int) -> dict[str, Any]:
        name = self.name("R")
        fields = [
            {"name": self.name("f"), "type": self.any(depth + 1)} for _ in range(self.dice.choice((1, 2, 3, 5, 8)))
        ]
        if self.dice.random() < 0.08:
            inner: Any = ["null", name] if self.dice.random() < 0.7 else {"type": "array", "items": name}
            fields.append({"name": self.name("f"), "type": inner})
        return {"type": "record", "name": name, "fields": fields}

    def any(self, depth: int, *, in_union: bool = False) -> Any:
        dice = self.dice
        pick = dice.random()
        if depth < 4 and pick < 0.12:
            return self.record(depth)
        if depth < 4 and pick < 0.2:
            return {"type": "array", "items": self.any(depth + 1)}
        if depth < 4 and pick < 0.27:
            return {"type": "map", "values": self.any(depth + 1)}
        if not in_union and pick < 0.47:
            return self.union(depth)
        return self.leaf()

    def union(self, depth: int) -> list[Any]:
        dice = self.dice
        if dice.random() < 0.1:
            return dice.choice((["int", "long"], ["null", "double", "float"], ["long", "null", "int"]))
        found: dict[str, Any] = {}
        for _ in range(1 if dice.random() < 0.7 else dice.randint(2, 4)):
            one = self.any(depth + 1, in_union=True)
            key = one if isinstance(one, str) else one.get("name", one["type"])
            if {"int", "long"} <= {*found, key} or {"float", "double"} <= {*found, key}:
                continue
            found.setdefault(key, one)
        branches = list(found.values())
        if "null" not in found and dice.random() < 0.8:
            branches.insert(dice.choice((0, 0, len(branches))), "null")
        return branches

    def leaf(self) -> Any:
        dice = self.dice
        pick = dice.random()
        if pick < 0.55:
            return dice.choice(PRIMITIVES)
        if pick < 0.62:
            return {"type": "enum", "name": self.name("E"), "symbols": [f"S{n}" for n in range(dice.randint(1, 5))]}
        if pick < 0.68:
            return {"type": "fixed", "name": self.name("F"), "size": dice.choice((1, 4, 16))}
        if pick < 0.8:
            precision = dice.choice((1, 4, 9, 18, 19, 38))
            found = {"logicalType": "decimal", "precision": precision, "scale": dice.randint(0, precision)}
            if dice.random() < 0.5:
                return {"type": "bytes", **found}
            return {"type": "fixed", "name": self.name("F"), "size": 20, **found}
        if pick < 0.84:
            return {"type": "string", "logicalType": "uuid"}
        if pick < 0.87:
            return {"type": "fixed", "name": self.name("U"), "size": 16, "logicalType": "uuid"}
        if pick < 0.9:
            return "null"
        name = dice.choice(list(TIMES))
        return {"type": TIMES[name], "logicalType": name}


def datum(dice: Dice, of: Any, named: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """A value of the schema, as fastavro writes it when no type is logical; unions as (branch, value)."""
    named = {} if named is None else named
    if isinstance(of, list):
        usable = [one for one in of if depth < 6 or one == "null"] or of
        branch = dice.choice(usable)
        return branch, datum(dice, branch, named, depth)
    if isinstance(of, str) and of in named:
        return datum(dice, named[of], named, depth + 2)
    kind = of if isinstance(of, str) else of["type"]
    match kind:
        case "record":
            inside = {**named, of["name"]: of}
            return {one["name"]: datum(dice, one["type"], inside, depth + 1) for one in of["fields"]}
        case "array":
            return [datum(dice, of["items"], named, depth + 1) for _ in range(_length(dice, depth))]
        case "map":
            keys = {dice.choice(("k", "", "é", str(dice.randrange(99)))) for _ in range(_length(dice, depth))}
            return {key: datum(dice, of["values"], named, depth + 1) for key in sorted(keys)}
        case "enum":
            return dice.choice(of["symbols"])
        case "null":
            return None
        case "boolean":
            return dice.random() < 0.5
        case "float" | "double":
            return dice.choice(
                (0.0, -0.0, 1.5, dice.random(), float("inf"), float("nan"), 1e300 if kind == "double" else 1.0)
            )
        case "fixed" | "bytes":
            return _bytes(dice, of, kind)
        case "string":
            return dice.choice(_TEXTS)
    return _number(dice, of, kind)


def _length(dice: Dice, depth: int) -> int:
    return 0 if depth > 5 else dice.choice((0, 1, 2, 3, dice.randrange(40) if depth < 2 else 1))


def _bytes(dice: Dice, of: Any, kind: str) -> bytes:
    logical = of.get("logicalType") if isinstance(of, dict) else None
    if logical == "decimal":
        most = 10 ** of["precision"] - 1
        number = dice.choice((0, 1, -1, most, -most, dice.randint(-most, most)))
        size = of["size"] if kind == "fixed" else (number.bit_length() // 8) + 1 + dice.choice((0, 0, 2))
        return number.to_bytes(size, "big", signed=True)
    return dice.randbytes(of["size"] if kind == "fixed" else dice.choice((0, 1, 5, 30)))


def _number(dice: Dice, of: Any, kind: str) -> int:
    logical = of.get("logicalType") if isinstance(of, dict) else None
    if logical is None:
        number = dice.choice((*_NUMBERS, dice.randrange(1 << 62), dice.randrange(1 << 14)))
        return number if kind == "long" else (number + (1 << 31)) % (1 << 32) - (1 << 31)
    if logical == "date":
        return dice.choice((0, -719_162, 2_932_896, 20_000))
    unit = {"millis": 1, "micros": 1000, "nanos": 1_000_000}[logical.rpartition("-")[2]]
    if logical.startswith("time-"):
        return dice.choice((0, _DAY_MS * unit - 1, dice.randrange(_DAY_MS * unit)))
    if unit == 1_000_000:
        return dice.choice((0, -1, 1_700_000_000_123_456_789, -(1 << 63), (1 << 63) - 1))
    low, high = -719_162 * _DAY_MS * unit, 2_932_897 * _DAY_MS * unit - 1
    return dice.choice((0, -1, low, high, 1_700_000_000_123 * unit, dice.randint(low, high)))


def without_logical(of: Any) -> Any:
    """The schema of the same bytes, without what they mean."""
    if isinstance(of, list):
        return [without_logical(one) for one in of]
    if isinstance(of, dict):
        kept = {key: value for key, value in of.items() if key not in ("logicalType", "precision", "scale")}
        return {key: without_logical(one) if key in _HOLDING else one for key, one in kept.items()}
    return of


def for_fastavro(of: Any, value: Any, named: dict[str, Any] | None = None) -> Any:
    """A datum with the names of branches instead of their schemas."""
    named = {} if named is None else named
    if isinstance(of, str):
        return for_fastavro(named[of], value, named) if of in named else value
    if isinstance(of, list):
        branch, inner = value
        name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
        return name, for_fastavro(branch, inner, named)
    match of["type"]:
        case "record":
            inside = {**named, of["name"]: of}
            return {one["name"]: for_fastavro(one["type"], value[one["name"]], inside) for one in of["fields"]}
        case "array":
            return [for_fastavro(of["items"], one, named) for one in value]
        case "map":
            return {key: for_fastavro(of["values"], one, named) for key, one in value.items()}
    return value


_HOLDING = ("type", "items", "values", "fields")
