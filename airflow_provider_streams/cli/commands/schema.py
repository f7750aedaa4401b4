"""What `airflow streams schema ..` does: show, compare and export the schemas of topics, or of a registry's groups."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC
from pathlib import Path
from typing import Any

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.arguments import source_of_args
from airflow_provider_streams.cli.output import answer, answer_rows
from airflow_provider_streams.errors import InvalidRequest, InvalidSchema
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.schema.payload import Registry
from airflow_provider_streams.model.schema.types import ArrayOf, MapOf, StructOf, Type, columns
from airflow_provider_streams.systems.schemas import SchemaVersion, Versions


@command
def show(args: Namespace) -> None:
    """Show the versions of schemas, or the columns of one."""
    found = _versions(args)
    if args.version is None:
        rows = [_version(name, one) for name, versions in found.items() for one in versions]
        answer_rows(rows, args.output, "no schema: values are bytes")
        return
    rows = [row for name, versions in found.items() for row in _columns(name, _chosen(name, versions, args.version))]
    answer_rows(rows, args.output, "no column")


@command
def compare(args: Namespace) -> None:
    """Compare two versions of one schema field by field; by default the last two."""
    name, versions = _one(_versions(args), args.name)
    if len(versions) < _TWO and (args.old is None or args.new is None):
        raise InvalidRequest(f"{name} has {len(versions)} versions: there is nothing to compare")
    old = versions[-2] if args.old is None else _chosen(name, versions, args.old)
    new = versions[-1] if args.new is None else _chosen(name, versions, args.new)
    rows = list(_differences(_types(old), _types(new), old.version, new.version))
    answer_rows(rows, args.output, f"{name}: versions {old.version} and {new.version} have the same columns")


@command
def export(args: Namespace) -> None:
    """Write a schema's own text, as its system keeps it."""
    name, versions = _one(_versions(args), args.name)
    if not versions:
        raise InvalidRequest(f"{name} has no schema: there is nothing to export")
    chosen = versions[-1] if args.version is None else _chosen(name, versions, args.version)
    if args.file is None:
        answer(chosen.text)
        return
    try:
        Path(args.file).write_text(chosen.text)
    except OSError as error:
        raise InvalidRequest(f"--file {args.file} cannot be written: {error.strerror}") from error


def _versions(args: Namespace) -> Versions:
    given = {"conn_id": args.registry, "group": args.group, "namespace": args.namespace}
    said = {name: value for name, value in given.items() if value}
    source = source_of_args(args, **({"value": Registry(**said)} if said else {}))
    with closing(hook_for(source)) as hook:
        return hook.schemas(source)


def _one(found: Versions, name: str | None) -> tuple[str, tuple[SchemaVersion, ...]]:
    """The schema that is meant.

    Raises:
        InvalidRequest: there are several, or it is none of them.
    """
    if name is None and len(found) == 1:
        return next(iter(found.items()))
    if name is None or name not in found:
        raise InvalidRequest(f"say which schema with --name: one of {', '.join(found)}")
    return name, found[name]


def _chosen(name: str, versions: tuple[SchemaVersion, ...], version: str) -> SchemaVersion:
    chosen = next((one for one in versions if one.version == version), None)
    if chosen is None:
        known = ", ".join(one.version for one in versions)
        raise InvalidRequest(f"{name} has no version {version}; it has: {known or 'none'}")
    return chosen


def _version(name: str, one: SchemaVersion) -> dict[str, Any]:
    made = one.made.astimezone(UTC).isoformat(timespec="seconds") if one.made else None
    row = {"name": name, "version": one.version, "type": one.kind, "made": made, **one.details}
    try:
        return {**row, "columns": ", ".join(f"{one.name} {one.type}" for one in columns(one.row_type))}
    except InvalidSchema as error:
        return {**row, "columns": f"cannot be read: {error.reason}"}


def _columns(name: str, chosen: SchemaVersion) -> Iterator[dict[str, Any]]:
    for column, type_ in _types(chosen).items():
        yield {"name": name, "version": chosen.version, "column": column, "type": type_}


def _types(version: SchemaVersion) -> dict[str, str]:
    """Each column and each field within one, with its type; keys, where the schema has them, as `_key`."""
    found = {path: shown for one in columns(version.row_type) for path, shown in _paths(one.name, one.type)}
    key = version.key_type
    return found if key is None else {**dict(_paths("_key", key)), **found}


def _paths(path: str, type_: Type) -> Iterator[tuple[str, str]]:
    match type_:
        case StructOf(fields):
            yield path, "struct"
            for one in fields:
                yield from _paths(f"{path}.{one.name}", one.type)
        case ArrayOf(StructOf() as element):
            yield path, "array<struct>"
            yield from list(_paths(f"{path}[]", element))[1:]
        case MapOf(key, StructOf() as value):
            yield path, f"map<{key},struct>"
            yield from list(_paths(f"{path}{{}}", value))[1:]
        case _:
            yield path, str(type_)


def _differences(old: Mapping[str, str], new: Mapping[str, str], before: str, after: str) -> Iterator[dict[str, Any]]:
    for column in dict.fromkeys((*old, *new)):
        if old.get(column) != new.get(column):
            change = "added" if column not in old else "removed" if column not in new else "changed"
            yield {
                "column": column,
                "change": change,
                f"version {before}": old.get(column),
                f"version {after}": new.get(column),
            }


_TWO = 2
