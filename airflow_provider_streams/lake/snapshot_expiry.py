"""Removes what no reader can need any more: earlier versions of a table, and files that no version names.

A file goes if it was written before a moment, and no version names it that was the newest at that moment or later. Its
place in the folder must also fit: a version named it there, or an attempt would have put it there under such a name.
Copies have the same names, so a name alone can keep a file, but never remove it.

So attempts and reads that began after that moment find all they need. Files are listed before the table is read: the
files of a concurrent commit are not among them. If the process dies, some files stay for the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow.fs as pafs

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.lake.folder_overlap import tables_in
from airflow_provider_streams.lake.storage import Storage

ATTEMPT_FILE = r"[0-9a-f]{32}-[0-9a-f]{32}\.parquet"
"""The file names of attempts and of compaction."""

AT_ONCE = 8
"""How many files are read or removed at the same time."""
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a table's folder."""

    path: str
    """As its file system calls it."""
    bytes: int
    written: datetime
    """The latest possible time: stores give whole seconds."""
    place: str = ""
    """Its path in the folder that was listed."""

    @property
    def name(self) -> str:
        """Without its folders: unique, for it has a random part."""
        return name_of(self.path)


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Expired:
    """What was removed; in a dry run, what would be."""

    files: tuple[StoredFile, ...] = ()
    snapshots: int = 0
    """Earlier versions that the table forgot; 0 for tables that do not forget versions here."""

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.bytes for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"snapshots": self.snapshots, "files": len(self.files), "bytes": self.bytes}


def files_below(storage: Storage, folder: str = "") -> list[StoredFile]:
    """All files in a folder and its folders; raises `SinkError`."""
    with storage.errors():
        system, root = storage.open()
        top = "/".join(filter(None, [root, folder]))
        found = system.get_file_info(pafs.FileSelector(top, recursive=True, allow_not_found=True))
    return [
        StoredFile(one.path, one.size or 0, one.mtime + _SECOND, one.path.removeprefix(f"{top}/"))
        for one in found
        if one.type == pafs.FileType.File and one.mtime is not None
    ]


def is_data_file(path: str) -> bool:
    """Whether a path in a table's folder may be a data file: engines ignore names that begin with `_` or a dot."""
    return path.endswith(".parquet") and not any(part.startswith(("_", ".")) for part in path.split("/"))


def left_over(
    storage: Storage,
    listed: Sequence[StoredFile],
    is_ours: Callable[[str], bool],
    *,
    current: Collection[str],
    needed: Collection[str],
    before: datetime,
    replaced: Collection[str] = (),
) -> list[StoredFile]:
    """Files that no reader or attempt needs. Files in the folder of another table are never among them.

    Args:
        storage: where they are.
        listed: all files in its folder.
        is_ours: whether the table or an attempt put a file at a place.
        current: the places of the table's files before the folder was listed.
        needed: the names of all files that a reader or an attempt may need.
        before: only files that were written earlier.
        replaced: the places of files that the table named until now. They go whenever they were written, since nothing
            would know them as the table's later.

    Raises:
        SinkError: files of the table are not among the listed ones, so this is not its folder.
    """
    absent = set(current).difference(file.place for file in listed)
    if absent:
        raise SinkError(
            storage.root,
            f"{counted(len(absent), 'file')} of the table cannot be found, like {min(absent)}: nothing is removed",
        )
    others = tuple(f"{folder}/" for folder in tables_in(file.place for file in listed))
    return [
        file
        for file in listed
        if (file.written < before or file.place in replaced)
        and file.name not in needed
        and is_ours(file.place)
        and not file.place.startswith(others)
    ]


def remove(storage: Storage, files: Sequence[StoredFile]) -> None:
    """Remove files, unless they are gone already; raises `SinkError`."""

    def one(file: StoredFile) -> None:
        with suppress(FileNotFoundError):
            system.delete_file(file.path)

    with storage.errors(), ThreadPoolExecutor(AT_ONCE) as pool:
        system, _ = storage.open()
        list(pool.map(one, files))
