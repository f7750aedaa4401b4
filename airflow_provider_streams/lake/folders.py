"""Whether a folder lies in another table's: who reads or cleans that one does so with all that lies below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

import pyarrow.fs as pafs

_SIGNS: Final = ("_delta_log", "_table.json")
"""What lies in the folder of a Delta table, and of a Parquet one."""

_METADATA: Final = "metadata"
_METADATA_FILE: Final = ".metadata.json"
"""What lies in the folder of an Iceberg table."""


def sign_around(system: pafs.FileSystem, root: str) -> str | None:
    """What says that a folder lies in that of another table; None: nothing does.

    Args:
        system: the file system.
        root: the folder, as that calls it; it need not be there.
    """
    return next((sign for folder in _above(root) for sign in _signs_in(system, folder)), None)


def sign_of_owner_around(system: pafs.FileSystem, root: str) -> str | None:
    """What says that a folder is a Delta or Parquet table's, or lies in one: these have theirs for themselves.

    Tables of Iceberg have not: those of nested namespaces may lie in each other. The nearest folders come first: keys
    may not open those above.
    """
    return next((sign for folder in (root, *_above(root)) for sign in _owners_signs_in(system, folder)), None)


def tables_in(places: Iterable[str]) -> frozenset[str]:
    """The folders in one that are other tables', by the paths in it of all that it holds."""
    return frozenset(folder for place in places for folder in _signed(place) if folder)


def _signed(place: str) -> Iterator[str]:
    parts = place.split("/")
    yield from ("/".join(parts[: parts.index(sign)]) for sign in _SIGNS if sign in parts)
    if place.endswith(_METADATA_FILE) and parts[-2:-1] == [_METADATA]:
        yield "/".join(parts[:-2])


def _signs_in(system: pafs.FileSystem, folder: str) -> Iterator[str]:
    yield from _owners_signs_in(system, folder)
    metadata = pafs.FileSelector(f"{folder}/{_METADATA}", allow_not_found=True)
    yield from (one.path for one in system.get_file_info(metadata) if one.base_name.endswith(_METADATA_FILE))


def _owners_signs_in(system: pafs.FileSystem, folder: str) -> Iterator[str]:
    named = system.get_file_info([f"{folder}/{sign}" for sign in _SIGNS])
    yield from (one.path for one in named if one.type != pafs.FileType.NotFound)


def _above(root: str) -> list[str]:
    """The folders that one lies in; of a bucket's, those inside of the bucket."""
    parents = PurePosixPath(root).parents
    return [str(folder).rstrip("/") for folder in parents if str(folder) != "."]
