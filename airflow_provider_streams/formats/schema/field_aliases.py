"""How a reader's aliases rename a writer's names, as Avro's Java library resolves schemas.

Only the reader's aliases count, and an alias comes before the name itself: a field that took over an old name does not
get the old values. Each of the writer's fields is used once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from airflow_provider_streams.model.schema.types import ArrayOf, MapOf, StructOf, Type


class Ambiguous(Exception):  # callers catch it: a cause, no error of the package
    """Several fields of a writer would become one of the reader."""


def renames(names: Iterable[str], aliases: Mapping[str, str]) -> dict[str, str]:
    """The reader's name for each of the writer's names.

    A name stays if the writer still has the field that it would become: it is no old name then.

    Args:
        names: the writer's names, each once.
        aliases: the reader's old names, with the current name of each.
    """
    found = {name: aliases.get(name, name) for name in names}
    while taken := [name for name, now in found.items() if now != name and found.get(now) == now]:
        found.update((name, name) for name in taken)
    return found


def field_renames(names: Iterable[str], aliases: Mapping[str, str]) -> dict[str, str]:
    """As `renames`, for the fields of a record. Raises Ambiguous if two fields would become one."""
    found = renames(names, aliases)
    counts = Counter(now.lower() for now in found.values())
    for name, now in found.items():
        if name != now and counts[now.lower()] > 1:
            several = [one for one in found if found[one].lower() == now.lower()]
            raise Ambiguous(f"{' and '.join(several)} would both be {now}")
    return found


def renamed(writer: Type, reader: Type) -> Type:
    """The writer's row type with the reader's names. Its values are the same.

    Raises:
        Ambiguous: two fields would become one.
    """
    match writer, reader:
        case ArrayOf(one), ArrayOf(other):
            return ArrayOf(renamed(one, other))
        case MapOf(key, one), MapOf(_, other):
            return MapOf(key, renamed(one, other))
        case StructOf(union=False), StructOf(union=False):
            known = {one.name: one.type for one in reader.fields}
            aliases = {alias: one.name for one in reader.fields for alias in one.aliases}
            names = field_renames((one.name for one in writer.fields), aliases)
            fields = []
            for field in writer.fields:
                name = names[field.name]
                type_ = renamed(field.type, known[name]) if name in known else field.type
                fields.append(replace(field, name=name, type=type_))
            return replace(writer, fields=tuple(fields))
    return writer
