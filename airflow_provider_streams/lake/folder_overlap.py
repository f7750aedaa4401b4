"""Whether a folder is inside another table's folder: engines read and clean a table with all that is below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import pyarrow.fs as pafs

from airflow_provider_streams.errors import SinkError, TableOwnedByOther

_SIGNS: Final = ("_delta_log", "_table.json")
"""What the folders of a Delta table and of a Parquet table hold."""

_METADATA: Final = "metadata"
_METADATA_FILE: Final = ".metadata.json"
"""What the folder of an Iceberg table holds."""


def sign_around(system: pafs.FileSystem, root: str) -> str | None:
    """The path that shows that a folder, existing or not, is inside another table's; None: there is none."""
    return next((sign for folder in _above(root) for sign in _signs_in(system, folder)), None)


def sign_of_owner_around(system: pafs.FileSystem, root: str) -> str | None:
    """The path that shows that a folder is a Delta or Parquet table's, or inside one: these own their whole folder.

    Iceberg tables do not: tables of nested namespaces may be inside each other. The nearest folders come first, for
    keys may not open those above.
    """
    return next((sign for folder in (root, *_above(root)) for sign in _owners_signs_in(system, folder)), None)


def check_outside(target: str, sign: str | None, what: str = "it") -> None:
    """Raise `TableOwnedByOther` for a table in another one's folder, as `sign_around` shows it."""
    if sign is not None:
        raise TableOwnedByOther(
            target,
            f"{what} is inside another table, which has {sign}: engines that read or clean that table would do so with "
            "this one. Name a folder outside of it",
        )


def check_mounted(target: str, folder: Path) -> None:
    """Raise `SinkError` if a table may be missing only because its file system is not mounted."""
    if not folder.parent.is_dir():
        raise SinkError(target, f"there is no {folder.parent} here: mount it; or make it, if it was deleted on purpose")


def tables_in(places: Iterable[str]) -> frozenset[str]:
    """The folders of other tables inside a folder, given the places of all its files."""
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
    """The folders around one; in a bucket, only those inside the bucket."""
    parents = PurePosixPath(root).parents
    return [str(folder).rstrip("/") for folder in parents if str(folder) != "."]
