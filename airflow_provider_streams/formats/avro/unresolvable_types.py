"""Types that Avro does not resolve though both schemas have one column for them: marked in the writer's schema.

Text is no enum, bytes are no fixed, and an enum or a fixed of another name or size is another type. A record of another
name is read by the names of its fields, as Java does, but not by their aliases. It is marked if it would lose a value.

An enum that became text is no such case: a symbol is text. Nor are logical types: their values are compared as columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from airflow_provider_streams.formats.avro.reader_names import short
from airflow_provider_streams.model.schema import avro_schema as avro


def marked(writer: avro.Schema, reader: avro.Schema) -> avro.Schema:
    """The writer's schema, which has the reader's names. Types that the reader's does not take are `unresolved`."""
    return _Marking().schema(writer, reader)


class _Marking:
    """Marks each pair of records once."""

    def __init__(self) -> None:
        self._done: dict[tuple[int, int], avro.Record] = {}

    def schema(self, writer: avro.Schema, reader: avro.Schema) -> avro.Schema:  # noqa: PLR0911  # one for each kind of type
        match writer, reader:
            case avro.Union(branches), _:
                return avro.Union(tuple(self._branch(one, reader) for one in branches))
            case _, avro.Union():
                return self._branch(writer, reader)
            case avro.Array(item), avro.Array(other):
                return replace(writer, items=self.schema(item, other))
            case avro.Map(value), avro.Map(other):
                return avro.Map(self.schema(value, other))
            case avro.Record(), avro.Record():
                return self._record(writer, reader)
            case ((avro.Primitive() | avro.Enum() | avro.Fixed()), (avro.Primitive() | avro.Enum() | avro.Fixed())):
                why = f"it is {_shown(writer)}, and in the newest version {_shown(reader)}"
                return replace(writer, unresolved=why) if _are_unlike(writer, reader) else writer
        return writer

    def _branch(self, writer: avro.Schema, reader: avro.Schema) -> avro.Schema:
        """Compare with the branch of the same type, or with the others if there is none."""
        branches = reader.branches if isinstance(reader, avro.Union) else (reader,)
        name = avro.branch_name(writer)
        same = sorted(
            (one for one in branches if _are_same(writer, one)), key=lambda one: avro.branch_name(one) != name
        )
        others = branches if len(branches) <= _NULL_AND_ANOTHER or not isinstance(writer, avro.Record) else ()
        found = writer
        for one in same[:1] or others:
            found = self.schema(found, one)
        return found

    def _record(self, writer: avro.Record, reader: avro.Record) -> avro.Record:
        key = id(writer), id(reader)
        if key not in self._done:
            fields = {one.name: one.schema for one in reader.fields}
            inner = tuple(
                replace(one, schema=self.schema(one.schema, fields[one.name])) if one.name in fields else one
                for one in writer.fields
            )
            self._done[key] = replace(writer, fields=inner, unresolved=_dropped(writer, reader))
        return self._done[key]


_NULL_AND_ANOTHER: Final = 2


def _are_same(writer: avro.Schema, reader: avro.Schema) -> bool:
    """Whether a branch of the reader is the writer's type."""
    match writer, reader:
        case avro.Record(name), avro.Record(other):
            return short(name) == short(other)
        case avro.Primitive(kind), avro.Primitive(other):
            return kind == other
        case (avro.Enum(), avro.Enum()) | (avro.Fixed(), avro.Fixed()):
            return not _are_unlike(writer, reader)
    return type(writer) is type(reader)


def _are_unlike(writer: avro.Schema, reader: avro.Schema) -> bool:
    """Whether two types are one column, and yet different."""
    if any(isinstance(one, avro.Primitive | avro.Fixed) and one.logical for one in (writer, reader)):
        return False
    match writer, reader:
        case (
            (avro.Primitive("string"), avro.Enum())
            | (avro.Primitive("bytes"), avro.Fixed())
            | (avro.Fixed(), avro.Primitive("bytes"))
        ):
            return True
        case avro.Enum(name), avro.Enum(other):
            return short(name) != short(other)
        case avro.Fixed(name, size), avro.Fixed(other, other_size):
            return (short(name), size) != (short(other), other_size)
    return False


def _shown(leaf: avro.Primitive | avro.Enum | avro.Fixed) -> str:
    match leaf:
        case avro.Enum(name):
            return f"the enum {short(name)}"
        case avro.Fixed(name, size):
            return f"the fixed {short(name)} of {size} bytes"
    return leaf.kind


def _dropped(writer: avro.Record, reader: avro.Record) -> str:
    """Why a field's value would be dropped: only an alias names the field, and the record has another name."""
    if short(writer.name) == short(reader.name):
        return ""
    have, want = ({one.name for one in record.fields} for record in (writer, reader))
    lost = [
        f"{alias} would not become {one.name}"
        for one in reader.fields
        for alias in one.aliases
        if one.name not in have and alias in have and alias not in want
    ]
    because = f"it is the record {short(writer.name)}, of which {short(reader.name)} has no alias"
    return f"{because}: {', '.join(lost)}" if lost else ""
