"""Record types of schemas: which versions are of one type, and which types a source reads. Pure.

A type is its full name, as Avro, Protobuf and a registry have it. Nothing else distinguishes two records from one that
grew: they may have the same fields, and brokers accept them as versions of one schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from airflow_provider_streams.errors import InvalidSchema, MultipleRecordTypes


class RecordName(NamedTuple):
    """The name of a schema's record; empty: it has none. `aliases` are its former full names.

    Values that are no records have the name of their type, such as `string`.
    """

    name: str = ""
    aliases: tuple[str, ...] = ()
    is_record: bool = True


NO_NAME: Final = RecordName()

Names = Mapping[str, Mapping[str, RecordName]]
"""By a source's name and version, the oldest first."""

UNNAMED: Final = ""


@dataclass(frozen=True, slots=True)
class ReadTypes:
    """The types of a source's versions.

    Args:
        of: the type of each version, by name and version.
        read: the types that become rows. Events of others are set aside.
        is_column: whether rows say their type.
        is_chosen: whether the source says which types it reads.
    """

    of: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    read: frozenset[str] = frozenset({UNNAMED})
    is_column: bool = False
    is_chosen: bool = False

    def type_of(self, name: str, version: str) -> str:
        """The type of one version."""
        return self.of.get(name, {}).get(version, UNNAMED)

    def reads(self, name: str, version: str) -> bool:
        """Whether events of this version become rows."""
        return self.type_of(name, version) in self.read


ONE_TYPE: Final = ReadTypes()
"""All versions are of one type, as far as is known."""


def read_types(names: Names, wanted: Sequence[str] = (), *, all_types: bool = False) -> ReadTypes:
    """The types that are read: all of them, or the one that has all the wanted names.

    Raises:
        MultipleRecordTypes: a name has several types, and the request does not choose.
        InvalidSchema: there is no type of a wanted name, or several.
    """
    of = {name: types_of_versions(versions) for name, versions in names.items()}
    found = frozenset(type_ for versions in of.values() for type_ in versions.values())
    if wanted:
        chosen = [_chosen(one, names, of) for one in wanted]
        merged = dict.fromkeys(chosen, chosen[0])
        of = {name: {v: merged.get(t, t) for v, t in versions.items()} for name, versions in of.items()}
        return ReadTypes(of, frozenset(chosen[:1]), is_chosen=True)
    for name, versions in of.items():
        if len(kinds := _distinct(versions.values())) > 1 and not all_types:
            raise MultipleRecordTypes(name, kinds)
    return ReadTypes(of, found or frozenset({UNNAMED}), is_column=all_types, is_chosen=all_types)


def types_of_versions(names: Mapping[str, RecordName]) -> dict[str, str]:
    """The type of each version, the oldest first: its name, or the later name of a type that was renamed.

    A record with an older type as its alias is that type, if all versions of the old name come before it, and no other
    type has the alias. Otherwise both were written at the same time. Versions without a name are of the only type. If
    there are records, values that are no records are a type of their own.
    """
    records = {version: one for version, one in names.items() if one.is_record}
    if not records:
        return dict.fromkeys(names, UNNAMED)
    later = _renamed(list(records.values()))
    types = {version: one.name for version, one in records.items()}
    while any(name in later for name in types.values()):
        types = {version: later.get(name, name) for version, name in types.items()}
    named = set(types.values()) - {UNNAMED}
    if len(named) == 1:
        types = dict.fromkeys(types, named.pop())
    return {version: types.get(version, one.name) for version, one in names.items()}


def _renamed(order: Sequence[RecordName]) -> dict[str, str]:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    claims: dict[str, set[str]] = {}
    for place, one in enumerate(order):
        first.setdefault(one.name, place)
        last[one.name] = place
        for alias in one.aliases:
            claims.setdefault(alias, set()).add(one.name)
    return {old: new for old, (new, *more) in claims.items() if not more and old in last and last[old] < first[new]}


def _chosen(wanted: str, names: Names, of: Mapping[str, Mapping[str, str]]) -> str:
    """The type with a name, which may be a former one."""
    hits = {
        of[name][version]
        for name, versions in names.items()
        for version, one in versions.items()
        if _is_called(wanted, one.name) or _is_called(wanted, of[name][version])
    }
    known = _distinct(type_ for versions in of.values() for type_ in versions.values())
    if not known:
        raise InvalidSchema(f"type {wanted!r}", "there is no schema that could name a type", "Leave the type out.")
    if not hits:
        raise InvalidSchema(f"type {wanted!r}", f"no such type; there are {', '.join(known)}", "Name one of them.")
    if len(hits) > 1:
        full = ", ".join(f"'.{one}'" for one in sorted(hits))
        raise InvalidSchema(f"type {wanted!r}", "several types are called so", f"Write one in full: {full}.")
    return hits.pop()


def _is_called(wanted: str, name: str) -> bool:
    """Whether a name is meant: in full, with or without a dot before it, or by its last part."""
    if wanted.startswith("."):
        return name == wanted[1:]
    return bool(name) and wanted in (name, _PARTS.split(name)[-1])


def _distinct(types: Iterable[str]) -> list[str]:
    return [type_ or "one without a name" for type_ in dict.fromkeys(types)]


_PARTS: Final = re.compile(r"[.$]")
"""Java's nested classes are `Outer$Inner`."""
