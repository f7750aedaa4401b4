"""Where a table says that its files are: all programs must find the same files there."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from pyiceberg.table import Table

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.storage import is_known

_LOCAL: Final = ("", "file")
_DATA, _METADATA = "write.data.path", "write.metadata.path"


def data_location(table: Table) -> str:
    """The folder of its data files, in the spelling of the table's metadata."""
    return (table.properties.get(_DATA) or f"{table.location().rstrip('/')}/data").rstrip("/")


def metadata_location(table: Table) -> str:
    """The folder of its metadata files."""
    return (table.properties.get(_METADATA) or f"{table.location().rstrip('/')}/metadata").rstrip("/")


def is_local(location: str) -> bool:
    """Whether it is a path of this machine."""
    return urlsplit(location).scheme in _LOCAL


def check_location(location: str) -> None:
    """Raise `SinkError` if pyiceberg ends a path before its end: it would write and read other files."""
    if cut := next((letter for letter in location if letter in "#?"), None):
        raise SinkError(
            location,
            f"the path has a {cut!r}, where pyiceberg ends it, so files would be written elsewhere: give the catalog "
            "a warehouse, and the table a location and write.data.path, without '#' and '?'",
        )


def check_places(target: str, table: Table) -> None:
    """Check where a table's files are and where new ones go, before anything is read or written there.

    Raises:
        SinkError: other programs or machines would look for them elsewhere.
    """
    check_location(data_location(table))
    if not is_known(data_location(table)):
        name = _DATA if table.properties.get(_DATA) else "location"
        raise SinkError(
            target,
            f"the table's {name} is {data_location(table)!r}, for which no file system is known: correct it to an "
            "address such as s3://bucket/path, gs://, abfss://, hdfs:// or file:///path",
        )
    _check_path(target, "location", table.location())
    properties = {name: table.properties.get(name) for name in (_DATA, _METADATA)}
    for name, location in {"metadata file": table.metadata_location, **properties}.items():
        if not location:
            continue
        _check_path(target, name, location)
        if is_local(location) and not is_local(table.location()):
            raise SinkError(
                target,
                f"the table is at {table.location()}, but its {name} is {location!r}, a path that each machine has for "
                "itself, so others would not find the files: correct it to a folder of the table's store"
                + (f", or remove it (ALTER TABLE .. UNSET TBLPROPERTIES ('{name}'))" if name in properties else ""),
            )


def _check_path(target: str, name: str, location: str) -> None:
    path = urlsplit(location).path
    if is_local(location) and not path.startswith("/"):
        raise SinkError(
            target,
            f"the table's {name} is {location!r}, which each program begins at a folder of its own: correct it to a "
            "whole address, such as s3://bucket/path or file:///path",
        )
    if ".." in path.split("/"):
        raise SinkError(target, f"the table's {name} is {location!r}, and programs read '..' differently: correct it")
