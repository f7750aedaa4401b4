"""Types of a table's columns as Spark writes them, by their parts: structs may get more fields.

They are not row types. A table may have columns that no payload has, such as intervals, maps with structs as keys, or
two names that differ by case only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.type_parser import ParsedType, TypeParser
from airflow_provider_streams.model.schema.type_table import NUMBERS, SPARK_NAMES
from airflow_provider_streams.model.schema.types import quoted

Path = tuple[str, ...]
"""Names from the column on. A list's items are its `element`, a map's items its `value`."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A struct, a list, a map, or a type without parts. All columns of a table are a struct as well."""

    name: str
    """`struct`, `array`, `map<string` up to the type of its keys, which never grows; otherwise the whole type."""
    parts: Mapping[str, ColumnType] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.name == "struct":
            return f"struct<{','.join(f'{quoted(name)}:{one}' for name, one in self.parts.items())}>"
        mark = "<" if self.name == "array" else ","
        return self.name + "".join(f"{mark}{one}>" for one in self.parts.values())

    @classmethod
    def parse(cls, text: str) -> ColumnType:
        """The type of a text, with names in backticks if they need them. A text that is no type has no parts."""
        try:
            return _column_type(TypeParser(text, spark=True).parse())
        except InvalidSchema:
            return cls(text)

    def missing(self, other: ColumnType, path: Path = ()) -> Iterator[tuple[Path, ColumnType]]:
        """The parts that the other type lacks, each as a whole."""
        for name, one in self.parts.items() if self.name == other.name else ():
            if name in other.parts:
                yield from one.missing(other.parts[name], (*path, name))
            else:
                yield (*path, name), one

    def changed(self, other: ColumnType, path: Path = ()) -> Iterator[tuple[Path, ColumnType, ColumnType]]:
        """The parts that have another type in the other type."""
        if self.name != other.name:
            yield path, self, other
            return
        for name, one in self.parts.items():
            if name in other.parts:
                yield from one.changed(other.parts[name], (*path, name))

    def grown(self, other: ColumnType) -> ColumnType:
        """The parts of both. A part of both has the wider of two numbers, or else the other's type."""
        if self.name != other.name:
            return ColumnType(wider(self.name, other.name) or other.name, other.parts)
        own = {name: one.grown(other.parts.get(name, one)) for name, one in self.parts.items()}
        return ColumnType(self.name, own | {name: one for name, one in other.parts.items() if name not in own})


def wider(one: str, other: str) -> str | None:
    """The number that holds the values of two, as tables may promote one to the other; None: there is none."""
    for numbers in _NUMBERS:
        if one in numbers and other in numbers:
            return max(one, other, key=numbers.index)
    first, second = _DECIMAL.fullmatch(one), _DECIMAL.fullmatch(other)
    if first is None or second is None or first["scale"] != second["scale"]:
        return None
    return one if int(first["digits"]) >= int(second["digits"]) else other


_NUMBERS: Final = [[SPARK_NAMES[word] for word in words] for words in NUMBERS]
_DECIMAL: Final = re.compile(r"decimal\((?P<digits>\d+),(?P<scale>\d+)\)")


def _column_type(parsed: ParsedType) -> ColumnType:
    parts = {one.name: _column_type(one.type) for one in parsed.parts}
    if len(parts) < len(parsed.parts):
        raise InvalidSchema(parsed.word, "a name occurs twice")
    if parsed.word == "map":
        return ColumnType(f"map<{parts.pop('key')}", parts)
    return ColumnType(f"{parsed.word}({','.join(parsed.arguments)})" if parsed.arguments else parsed.word, parts)
