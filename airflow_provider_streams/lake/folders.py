"""Whether a folder lies in another table's: who reads or cleans that one does so with all that lies below it."""

from __future__ import annotations

from collections.abc import Iterator
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


def _signs_in(system: pafs.FileSystem, folder: str) -> Iterator[str]:
    named = system.get_file_info([f"{folder}/{sign}" for sign in _SIGNS])
    yield from (one.path for one in named if one.type != pafs.FileType.NotFound)
    metadata = pafs.FileSelector(f"{folder}/{_METADATA}", allow_not_found=True)
    yield from (one.path for one in system.get_file_info(metadata) if one.base_name.endswith(_METADATA_FILE))


def _above(root: str) -> list[str]:
    """The folders that one lies in; of a bucket's, those inside of the bucket."""
    parents = PurePosixPath(root).parents
    return [str(folder).rstrip("/") for folder in parents if str(folder) != "."]
