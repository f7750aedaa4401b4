"""An Avro writer's schema with its reader's names: the rest of resolving both goes by names alone.

Records, enums and fields get the names that the reader's aliases give them. A symbol that the reader's enum lacks
becomes the enum's default. The bytes are read as before.

Both schemas are of one type, whatever their outermost records are called: a user may say so without an alias. For other
types the unqualified name counts, as the specification says: a type in another namespace is the same type.
`unresolvable_types` marks what is one column and yet not resolved by Avro.

Java's library applies aliases twice, unless both schemas are equal after the first time. This matters if a current name
is also an alias: of two fields that swapped their names, each gets the value of its own name. So it is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from airflow_provider_streams.formats.schema.field_aliases import field_renames
from airflow_provider_streams.model.schema import avro_schema as avro


def renamed_for_reader(reader: avro.Schema, writer: avro.Schema) -> avro.Schema:
    """The writer's schema with the reader's names, and without aliases.

    Raises:
        Ambiguous: several fields of the writer would become one of the reader.
    """
    aliases = _Aliases(reader)
    aliases.types.update(_moved(reader, writer, aliases.types))
    if isinstance(reader, avro.Record) and isinstance(writer, avro.Record):
        aliases.types[writer.name] = reader.name
    found = _Renaming(aliases, writer).schema(writer)
    if found != reader:
        found = _Renaming(aliases, found).schema(found)
    return _Defaulting(reader).schema(found)


def _moved(reader: avro.Schema, writer: avro.Schema, aliases: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The writer's names that the reader has in another namespace, if they are unique there."""
    theirs, own = _named(reader), _named(writer)
    shorts = Counter(map(short, theirs))
    for name in own:
        found = [one for one in theirs if short(one) == short(name) and one not in own]
        if name not in theirs and name not in aliases and shorts[short(name)] == len(found) == 1:
            yield name, found[0]


def _named(schema: avro.Schema) -> list[str]:
    return list(dict.fromkeys(one.name for one in avro.everything(schema) if isinstance(one, avro.Named)))


def short(name: str) -> str:
    """A full name without its namespace."""
    return name.rpartition(".")[2]


class _Aliases:
    """Old names with their current names, as Java's library collects them: of two current names, the last counts."""

    def __init__(self, reader: avro.Schema) -> None:
        self.types: dict[str, str] = {}
        self.fields: dict[str, dict[str, str]] = {}
        """By the record's name, and by each of its aliases."""
        self._seen: set[int] = set()
        self._add(reader)

    def _add(self, schema: avro.Schema) -> None:
        for one in avro.alternatives(schema):
            if isinstance(one, avro.Named):
                self.types.update((alias, one.name) for alias in one.aliases)
            if not isinstance(one, avro.Record) or id(one) in self._seen:
                continue
            self._seen.add(id(one))
            for field in one.fields:
                for alias in field.aliases:
                    self.fields.setdefault(one.name, {})[alias] = field.name
                self._add(field.schema)
            if one.name in self.fields:
                self.fields.update((alias, self.fields[one.name]) for alias in one.aliases)


class _Rewriting(ABC):
    """Rewrites each named type once."""

    def __init__(self) -> None:
        self._done: dict[int, avro.Schema] = {}

    def schema(self, schema: avro.Schema) -> avro.Schema:
        match schema:
            case avro.Array(items):
                return avro.Array(self.schema(items))
            case avro.Map(values):
                return avro.Map(self.schema(values))
            case avro.Union(branches):
                return avro.Union(tuple(map(self.schema, branches)))
            case avro.Recursive(name):
                return avro.Recursive(self.name(name))
            case avro.Record() | avro.Enum() | avro.Fixed():
                if id(schema) not in self._done:
                    self._done[id(schema)] = self.named(schema)
                return self._done[id(schema)]
        return schema

    def name(self, name: str) -> str:
        """The new name of a type."""
        return name

    @abstractmethod
    def named(self, schema: avro.Named) -> avro.Schema:
        """The new type."""


class _Renaming(_Rewriting):
    """Gives names by the reader's aliases."""

    def __init__(self, aliases: _Aliases, writer: avro.Schema) -> None:
        super().__init__()
        self._fields, self._names = aliases.fields, _type_names(writer, aliases.types)

    def name(self, name: str) -> str:
        return self._names[name]

    def named(self, schema: avro.Named) -> avro.Schema:
        name = self.name(schema.name)
        if not isinstance(schema, avro.Record):
            return replace(schema, name=name, aliases=())
        names = field_renames((one.name for one in schema.fields), self._fields.get(name, {}))
        fields = (avro.RecordField(names[one.name], self.schema(one.schema), one.default) for one in schema.fields)
        return avro.Record(name, tuple(fields))


class _Defaulting(_Rewriting):
    """Replaces symbols that the reader's enums lack by their defaults."""

    def __init__(self, reader: avro.Schema) -> None:
        super().__init__()
        enums = [one for one in avro.everything(reader) if isinstance(one, avro.Enum)]
        self._enums = {name: one for one in enums for name in one.aliases} | {one.name: one for one in enums}

    def named(self, schema: avro.Named) -> avro.Schema:
        if isinstance(schema, avro.Record):
            return replace(schema, fields=tuple(replace(one, schema=self.schema(one.schema)) for one in schema.fields))
        known = self._enums.get(schema.name)
        if not isinstance(schema, avro.Enum) or known is None or not known.default:
            return schema
        symbols = tuple(one if one in known.symbols else known.default for one in schema.symbols)
        return replace(schema, symbols=symbols)


def _type_names(writer: avro.Schema, aliases: Mapping[str, str]) -> dict[str, str]:
    """The new name of each type. Branches of a union keep different names, and so do all types if one is recursive."""
    schemas = list(avro.everything(writer))
    found = {one.name: aliases.get(one.name, one.name) for one in schemas if isinstance(one, avro.Named)}
    groups = [_names(one) for one in schemas if isinstance(one, avro.Union)]
    if any(isinstance(one, avro.Recursive) for one in schemas):
        groups.append(list(found))
    while several := {name for group in groups for name in _sharing(group, found)}:
        found.update((name, name) for name in several)
    return found


def _names(union: avro.Union) -> list[str]:
    return [one.name for one in union.branches if isinstance(one, avro.Named | avro.Recursive)]


def _sharing(names: list[str], found: Mapping[str, str]) -> list[str]:
    """Renamed types whose new name another type also has."""
    counts = Counter(found[name] for name in names)
    return [name for name in names if found[name] != name and counts[found[name]] > 1]
