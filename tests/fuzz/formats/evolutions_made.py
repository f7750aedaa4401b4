"""Random evolutions of an Avro schema that use names again: fields, records and enums are renamed by aliases, swapped,
dropped, and others get their old names. Branches of unions come, go and change, and some types become others."""

from __future__ import annotations

import copy
import random
from typing import Any

Dice = random.Random

_FIELDS = "abcdef"
_SYMBOLS = "ABCDE"
_WIDER = {"int": ("long", "float", "double"), "long": ("float", "double"), "float": ("double",)}
_DEFAULTS = {
    "boolean": True, "int": 7, "long": -(1 << 40), "float": 0.5, "double": 1.25, "string": "d", "bytes": "\u00ff",
}  # fmt: skip
_INTEGERS = (0, -1, 127, (1 << 24) + 1, (1 << 31) - 1, -(1 << 31))
_LONGS = (*_INTEGERS, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63))


def versions(dice: Dice) -> list[dict[str, Any]]:
    """Two to five versions of one record, the oldest first."""
    found = [_Maker(dice).record("Root", 0)]
    for _ in range(dice.randint(1, 4)):
        found.append(_evolved(dice, found[-1]))
    return found


def datum(dice: Dice, of: Any) -> Any:
    """A value of the schema, as fastavro writes it."""
    match of if isinstance(of, str) else "union" if isinstance(of, list) else of["type"]:
        case "union":
            branch = dice.choice(of)
            value = datum(dice, branch)
            return value if isinstance(branch, str) or branch["type"] in ("array", "map") else (branch["name"], value)
        case "record":
            return {one["name"]: datum(dice, one["type"]) for one in of["fields"]}
        case "array":
            return [datum(dice, of["items"]) for _ in range(dice.randrange(3))]
        case "map":
            return {key: datum(dice, of["values"]) for key in dice.sample("kl", dice.randrange(3))}
        case "enum":
            return dice.choice(of["symbols"])
        case "fixed":
            return dice.randbytes(of["size"])
        case "null":
            return None
        case "boolean":
            return dice.random() < 0.5
        case "int":
            return dice.choice(_INTEGERS)
        case "long":
            return dice.choice(_LONGS)
        case "string":
            return dice.choice(("", "s", "é"))
        case "bytes":
            return dice.choice((b"", b"b", b"\xff"))
    return dice.choice((0.0, 0.5, -2.25, 1e10))


class _Maker:
    """Types whose names are new in one schema."""

    def __init__(self, dice: Dice, taken: set[str] | None = None) -> None:
        self._dice, self._taken = dice, taken or set()

    def record(self, name: str, depth: int) -> dict[str, Any]:
        names = self._dice.sample(_FIELDS, self._dice.randint(1, 4))
        return {"type": "record", "name": name, "fields": [self.field(one, depth) for one in names]}

    def field(self, name: str, depth: int) -> dict[str, Any]:
        type_ = self.type(depth + 1)
        field = {"name": name, "type": type_}
        if self._dice.random() < 0.85 and (default := _default(type_)) is not ...:
            field["default"] = default
        return field

    def type(self, depth: int) -> Any:
        dice = self._dice
        pick = dice.random()
        if depth < 3 and pick < 0.2:
            return self.named("record", depth)
        if depth < 3 and pick < 0.3:
            return {"type": "array", "items": self.type(depth + 1)}
        if depth < 3 and pick < 0.35:
            return {"type": "map", "values": self.type(depth + 1)}
        if pick < 0.45:
            return ["null", self.leaf(depth)]
        if pick < 0.55:
            kinds = dice.sample(("int", "double", "string", "boolean", "record", "enum", "fixed"), dice.randint(2, 3))
            branches = [self.named(one, depth) if one in ("record", "enum", "fixed") else one for one in kinds]
            branches = [one for place, one in enumerate(branches) if one not in branches[:place]]
            return ["null", *branches] if dice.random() < 0.5 else branches
        return self.leaf(depth)

    def leaf(self, depth: int) -> Any:
        dice = self._dice
        pick = dice.random()
        if pick < 0.3:
            return self.named(dice.choice(("enum", "fixed")), depth)
        return dice.choice(("boolean", "int", "long", "float", "double", "string", "bytes"))

    def named(self, kind: str, depth: int) -> Any:
        free = [name for number in range(1, 5) if (name := f"{kind[0].upper()}{number}") not in self._taken]
        if not free:
            return "string"
        name = self._dice.choice(free)
        self._taken.add(name)
        match kind:
            case "record":
                return self.record(name, depth)
            case "fixed":
                return {"type": "fixed", "name": name, "size": 2}
        symbols = self._dice.sample(_SYMBOLS, self._dice.randint(1, 4))
        enum = {"type": "enum", "name": name, "symbols": symbols}
        return {**enum, "default": self._dice.choice(symbols)} if self._dice.random() < 0.6 else enum


def _default(type_: Any) -> Any:
    """A default as the schema has it; ...: it is spared."""
    match type_ if isinstance(type_, str) else "union" if isinstance(type_, list) else type_["type"]:
        case "union":
            return None if type_[0] == "null" else _default(type_[0])
        case "array":
            return []
        case "map":
            return {}
        case "enum":
            return type_["symbols"][0]
        case "fixed":
            return "\u0001" * type_["size"]
        case "record":
            fields = {one["name"]: _default(one["type"]) for one in type_["fields"]}
            return ... if ... in fields.values() else fields
        case kind:
            return _DEFAULTS[kind]


def _evolved(dice: Dice, older: dict[str, Any]) -> dict[str, Any]:
    newer = copy.deepcopy(older)
    for record in list(_records(newer)):
        if dice.random() < 0.75 or record is newer:
            for _ in range(dice.randint(1, 3)):
                _change(dice, record, newer)
    for one in _named(newer):
        if one is not newer:
            _change_type(dice, one, newer)
    # a default may name a field that is another now
    for record in _records(newer):
        for field in record["fields"]:
            if "default" in field:
                found = _default(field["type"])
                field.pop("default") if found is ... else field.update(default=found)
    return newer


def _change(dice: Dice, record: dict[str, Any], root: dict[str, Any]) -> None:
    fields = record["fields"]
    free = [name for name in _FIELDS if all(name != one["name"] for one in fields)]
    one = dice.choice(fields)
    match dice.choice(
        ("rename", "rename", "rename", "swap", "drop", "add", "add", "widen", "order", "forget", "union")
    ):
        case "rename" if free:
            _rename(dice, one, dice.choice(free))
        case "swap" if len(fields) > 1:
            first, second = dice.sample(fields, 2)
            names = first["name"], second["name"]
            _rename(dice, first, names[1])
            _rename(dice, second, names[0])
        case "drop" if len(fields) > 1:
            fields.remove(one)
        case "add" if free:
            taken = {one["name"] for one in _named(root)}
            fields.insert(dice.randint(0, len(fields)), _Maker(dice, taken).field(dice.choice(free), 2))
        case "widen" if isinstance(one["type"], str) and one["type"] in _WIDER:
            one["type"] = dice.choice(_WIDER[one["type"]])
        case "widen" if isinstance(one["type"], str):
            one["type"] = ["null", one["type"]]
        case "order":
            dice.shuffle(fields)
        case "forget":
            one.pop("aliases", None)
        case "union":
            one["type"] = _other_branches(dice, one["type"])


def _other_branches(dice: Dice, type_: Any) -> Any:
    """A union of more, fewer or other branches; or, for another type, that type or an inner one, with null."""
    if isinstance(type_, dict) and type_["type"] in ("array", "map"):
        inner = "items" if type_["type"] == "array" else "values"
        return {**type_, inner: _other_branches(dice, type_[inner])}
    branches = list(type_) if isinstance(type_, list) else [type_]
    kinds = ("boolean", "int", "long", "double", "string", "bytes", "null")
    others = [one for one in kinds if one not in branches]
    match dice.choice(("more", "fewer", "other", "other", "order", "alone")):
        case "more":
            branches.insert(dice.randint(0, len(branches)), dice.choice(others))
        case "fewer" if len(branches) > 1:
            branches.pop(dice.randrange(len(branches)))
        case "other":
            branches[dice.randrange(len(branches))] = dice.choice(others)
        case "order":
            dice.shuffle(branches)
        case "alone":
            branches = [dice.choice(branches)]
    if branches == ["null"]:
        branches.append(dice.choice(("int", "string")))
    return branches if len(branches) > 1 or dice.random() < 0.5 else branches[0]


def _rename(dice: Dice, named: dict[str, Any], name: str) -> None:
    aliases = [named["name"], *(named.get("aliases", []) if dice.random() < 0.6 else [])]
    named["name"] = name
    named.pop("aliases", None)
    if dice.random() < 0.85:
        named["aliases"] = list(dict.fromkeys(aliases))


def _change_type(dice: Dice, named: dict[str, Any], root: dict[str, Any]) -> None:
    taken = {one["name"] for one in _named(root)}
    free = [name for number in range(1, 5) if (name := f"{named['name'][0]}{number}") not in taken]
    if free and dice.random() < 0.25:
        _rename(dice, named, dice.choice(free))
    if named["type"] == "fixed" and dice.random() < 0.1:
        named["size"] = dice.randint(1, 3)
    if named["type"] == "enum" and dice.random() < 0.5:
        named["symbols"] = dice.sample(_SYMBOLS, dice.randint(1, 4))
        named.pop("default", None)
        if dice.random() < 0.7:
            named["default"] = dice.choice(named["symbols"])


def _named(schema: Any) -> list[dict[str, Any]]:
    """Records, enums and fixed, each once, the outermost first."""
    if isinstance(schema, list):
        return [one for branch in schema for one in _named(branch)]
    if not isinstance(schema, dict):
        return []
    match schema["type"]:
        case "record":
            return [schema, *(one for field in schema["fields"] for one in _named(field["type"]))]
        case "array" | "map":
            return _named(schema.get("items", schema.get("values")))
        case "enum" | "fixed":
            return [schema]
    return _named(schema["type"])


def _records(schema: Any) -> list[dict[str, Any]]:
    return [one for one in _named(schema) if one["type"] == "record"]
