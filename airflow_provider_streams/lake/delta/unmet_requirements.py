"""Whether this package may write to a Delta table: decided from what its log says, by `writer_requirements`. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from airflow_provider_streams.lake.delta.writer_requirements import (
    VOID_INSIDE,
    Answer,
    Place,
    Requirement,
    Use,
    implied_features,
    requirements_of,
)

Field = Mapping[str, Any]
"""A struct's field, in the log's JSON."""

_NEWEST_READER: Final = 3
_NAMED_FEATURES: Final = 7
"""The writer version from which on a table names its features; the newest one."""

_UNKNOWN: Final = Requirement(
    Place.FEATURE, Answer.REFUSED, "*", "not known here", "this release does not know what it asks"
)
_UNKNOWN_METADATA: Final = Requirement(Place.COLUMN, Answer.REFUSED, "delta.*", "not known here", _UNKNOWN.does)


@dataclass(frozen=True, slots=True)
class Described:
    """What a version of a table says of itself."""

    reader_version: int
    writer_version: int
    features: frozenset[str] = frozenset()
    """As the protocol names them; `all_features` has those that an old version implies as well."""
    properties: Mapping[str, str] = field(default_factory=dict)
    fields: Sequence[Field] = ()

    @classmethod
    def from_actions(cls, protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> Self:
        """From a log's `protocol` and `metaData`."""
        named = [*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())]
        return cls(
            int(protocol["minReaderVersion"]),
            int(protocol["minWriterVersion"]),
            frozenset(named),
            metadata.get("configuration") or {},
            json.loads(metadata.get("schemaString") or "{}").get("fields", ()),
        )

    @property
    def all_features(self) -> list[str]:
        """The table features that it supports, active or not."""
        old = implied_features(self.writer_version) if self.writer_version < _NAMED_FEATURES else []
        return sorted({*self.features, *old})


def unmet(table: Described, use: Use) -> str | None:
    """Why a table may not be used so, with the names of what it asks, and the next step; None: it may."""
    found = [*_unmet_features(table, use), *_unmet_properties(table, use), *_unmet_columns(table, use)]
    if not found:
        return None
    return f"{'; '.join(found)}. Land in another table, or take that away by the engine that put it there"


def _unmet_features(table: Described, use: Use) -> Iterator[str]:
    if table.reader_version > _NEWEST_READER or table.writer_version > _NAMED_FEATURES:
        versions = f"reader version {table.reader_version} and writer version {table.writer_version}"
        yield f"its protocol has {versions}, and this release knows up to {_NEWEST_READER} and {_NAMED_FEATURES}"
    for name in table.all_features:
        known = next((one for one in requirements_of(Place.FEATURE) if one.is_named(name)), _UNKNOWN)
        if use in known.refuses:
            version = "" if name in table.features else f" (of writer version {table.writer_version})"
            yield f"it has the table feature {name}{version}: {known.does}"


def _unmet_properties(table: Described, use: Use) -> Iterator[str]:
    for name, value in sorted(table.properties.items()):
        for one in requirements_of(Place.PROPERTY):
            if one.is_named(name) and use in one.refuses and value.strip().lower() not in one.off:
                yield f"it has the property {name} = {value}: {one.does}"


def _unmet_columns(table: Described, use: Use) -> Iterator[str]:
    for path, one in _fields_in(table.fields):
        for key in one.get("metadata") or ():
            known = next((rule for rule in requirements_of(Place.COLUMN) if rule.is_named(key)), None)
            if known is None and _UNKNOWN_METADATA.is_named(key):
                known = _UNKNOWN_METADATA
            if known is not None and use in known.refuses:
                yield f"column {path} has {key}: {known.does}"
    for path, name in _types_in(table.fields):
        for rule in requirements_of(Place.TYPE):
            if rule.is_named(name) and use in rule.refuses:
                yield f"column {path} is {name}: {rule.does}"


def _fields_in(fields: Iterable[Field], path: str = "") -> Iterator[tuple[str, Field]]:
    """The fields, and the fields of structs in them, each with its path."""
    for one in fields:
        inner = f"{path}{one['name']}"
        yield inner, one
        for step, type_ in _structs_in(one["type"]):
            yield from _fields_in(type_["fields"], f"{inner}{step}.")


def _structs_in(type_: Any, step: str = "") -> Iterator[tuple[str, Field]]:
    """The nearest structs in a type, each with the path to it."""
    if isinstance(type_, str):
        return
    if type_["type"] == "struct":
        yield step, type_
    for part in _parts_of(type_):
        yield from _structs_in(type_[part], f"{step}.{_STEPS[part]}")


_STEPS: Final = {"elementType": "element", "keyType": "key", "valueType": "value"}


def _parts_of(type_: Field) -> list[str]:
    return [part for part in _STEPS if part in type_]


def _types_in(fields: Iterable[Field]) -> Iterator[tuple[str, str]]:
    """The names of the types of all fields and their parts; a void that no file may have, as `VOID_INSIDE`."""
    for path, one in _fields_in(fields):
        type_ = one["type"]
        if isinstance(type_, str):
            yield path, type_
            continue
        for name in _names_in(type_):
            yield path, VOID_INSIDE if name == "void" else name


def _names_in(type_: Any) -> Iterator[str]:
    if isinstance(type_, str):
        yield type_
    elif type_["type"] == "struct":
        if {json.dumps(one["type"]) for one in type_["fields"]} == {'"void"'}:
            yield "void"
    else:
        for part in _parts_of(type_):
            yield from _names_in(type_[part])


def described_by(commits: Iterable[str]) -> Described | None:
    """What a log's commits, lines of JSON and the newest first, say of the table; None: not enough to judge it."""
    found: dict[str, Mapping[str, Any]] = {}
    for commit in commits:
        for action in map(json.loads, commit.splitlines()):
            found |= {kind: one for kind, one in action.items() if kind in _DESCRIBING and kind not in found}
        if len(found) == len(_DESCRIBING):
            break
    return Described.from_actions(found["protocol"], found.get("metaData", {})) if "protocol" in found else None


_DESCRIBING: Final = ("protocol", "metaData")
