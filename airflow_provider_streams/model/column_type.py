"""Types of columns as Spark writes them (`simpleString`), by what is in them: structs may get more fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

Path = tuple[str, ...]
"""Names from the column on; what a list holds is its `element`, what a map holds its `value`."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A struct, a list, a map, or a type that has no parts. All columns of a table are a struct, too."""

    name: str
    """`struct`, `array`, `map<string` up to the type of its keys, which never grows; otherwise all of it."""
    parts: Mapping[str, ColumnType] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.name == "struct":
            return f"struct<{','.join(f'{name}:{one}' for name, one in self.parts.items())}>"
        mark = "<" if self.name == "array" else ","
        return self.name + "".join(f"{mark}{one}>" for one in self.parts.values())

    @classmethod
    def parse(cls, text: str) -> ColumnType:
        """Of Spark's text. One that is not told apart, for a name with `:` or `<` in it, is a type without parts."""
        found, end = _parsed(text, 0)
        return found if end == len(text) and str(found) == text else cls(text)

    def missing(self, other: ColumnType, path: Path = ()) -> Iterator[tuple[Path, ColumnType]]:
        """What this one has and the other one has not, each as a whole."""
        for name, one in self.parts.items() if self.name == other.name else ():
            if name in other.parts:
                yield from one.missing(other.parts[name], (*path, name))
            else:
                yield (*path, name), one

    def changed(self, other: ColumnType, path: Path = ()) -> Iterator[tuple[Path, ColumnType, ColumnType]]:
        """What both have, and the other one as something else."""
        if self.name != other.name:
            yield path, self, other
            return
        for name, one in self.parts.items():
            if name in other.parts:
                yield from one.changed(other.parts[name], (*path, name))

    def grown(self, other: ColumnType) -> ColumnType:
        """This one and what the other one has besides; what that has as something else is so from now on."""
        if self.name != other.name:
            return other
        own = {name: one.grown(other.parts.get(name, one)) for name, one in self.parts.items()}
        return ColumnType(self.name, own | {name: one for name, one in other.parts.items() if name not in own})


_PLAIN: Final = re.compile(r"[^,:<>()]*(\([^()]*\))?")
_FIELD: Final = re.compile(r"([^,:<>]+):")


def _parsed(text: str, at: int) -> tuple[ColumnType, int]:
    """The type that begins at a place, and where it ends: not before a `>` or the like, if the text is odd."""
    if text.startswith("struct<", at):
        return _parsed_struct(text, at + len("struct<"))
    if text.startswith("array<", at):
        element, end = _parsed(text, at + len("array<"))
        return ColumnType("array", {"element": element}), end + 1
    if text.startswith("map<", at):
        key, end = _parsed(text, at + len("map<"))
        value, end = _parsed(text, end + 1)
        return ColumnType(f"map<{key}", {"value": value}), end + 1
    found = _PLAIN.match(text, at)
    end = found.end() if found else at
    return ColumnType(text[at:end]), end


def _parsed_struct(text: str, at: int) -> tuple[ColumnType, int]:
    parts: dict[str, ColumnType] = {}
    while found := _FIELD.match(text, at):
        parts[found[1]], at = _parsed(text, found.end())
        if not text.startswith(",", at):
            break
        at += 1
    return ColumnType("struct", parts), at + 1
