"""What no reader can need any more goes: earlier versions of a table, and files that no version names.

A file goes if it was written before a moment, and no version names it that was the newest one at that moment or later.
Its place in the folder says whether it may go at all: what a version named there, or what lies and is called as an
attempt leaves it. A name alone keeps a file, and never takes one: copies have the same names.
So attempts and reads that began after that moment find all they need. Files are listed before the table is asked:
those of a commit that comes meanwhile are not among them. A kill leaves some files for the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.folders import tables_in
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.landing import TableMark

ATTEMPT_FILE = r"[0-9a-f]{32}-[0-9a-f]{32}\.parquet"
"""How attempts and compaction call a file."""

_AT_ONCE = 8
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a table's folder."""

    path: str
    """As its file system calls it."""
    bytes: int
    written: datetime
    """At the latest: stores tell whole seconds."""
    place: str = ""
    """Its path in the folder that was listed."""

    @property
    def name(self) -> str:
        """Without its folders: unique, for there is a random part in it."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Expired:
    """What went; of a dry run, what would."""

    files: tuple[StoredFile, ...] = ()
    snapshots: int = 0
    """Earlier versions that are forgotten; of tables that forget none by this, 0."""

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.bytes for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"snapshots": self.snapshots, "files": len(self.files), "bytes": self.bytes}


class ExpirableTable(Protocol):
    """A table that has a past."""

    def __init__(self, sink: Any, mark: TableMark) -> None:
        """Nothing is touched yet."""

    def expire(self, before: datetime, *, dry_run: bool = False) -> Expired:
        """Let go of what nobody can need who began to read or write at a moment or later.

        Args:
            before: the moment.
            dry_run: say what would go, and do nothing.

        Raises:
            ForeignTable: the table does not bear the mark.
            SinkError: it cannot be looked at, or nobody can tell what it needs: some of it may have gone.
        """


def files_below(storage: Storage, folder: str = "") -> list[StoredFile]:
    """The files of a folder, and of those in it.

    Raises:
        SinkError: the store cannot be listed.
    """
    with store_errors(storage):
        system, root = storage.open()
        top = "/".join(filter(None, [root, folder]))
        found = system.get_file_info(pafs.FileSelector(top, recursive=True, allow_not_found=True))
    return [
        StoredFile(one.path, one.size or 0, one.mtime + _SECOND, one.path.removeprefix(f"{top}/"))
        for one in found
        if one.type == pafs.FileType.File and one.mtime is not None
    ]


def is_data_file(path: str) -> bool:
    """Whether a path in a table's folder may be a data file: engines pass over what begins with _ or a point."""
    return path.endswith(".parquet") and not any(part.startswith(("_", ".")) for part in path.split("/"))


def left_over(
    storage: Storage,
    listed: Sequence[StoredFile],
    is_ours: Callable[[str], bool],
    *,
    current: Collection[str],
    needed: Collection[str],
    before: datetime,
) -> list[StoredFile]:
    """Files that nobody needs. Those in the folder of another table are not ours to judge.

    Args:
        storage: where they are.
        listed: all that its folder holds.
        is_ours: whether the table, or an attempt, put a file at a place.
        current: the places of those that were the table before it was listed.
        needed: the names of all that anybody may need.
        before: only files that were written earlier.

    Raises:
        SinkError: what is the table is not among what is listed, so this is not its folder.
    """
    absent = set(current).difference(file.place for file in listed)
    if absent:
        raise SinkError(
            storage.root, f"{len(absent)} files of the table are not in it, like {min(absent)}: nothing is removed"
        )
    others = tables_in(file.place for file in listed)
    return [
        file
        for file in listed
        if file.written < before and file.name not in needed and is_ours(file.place) and not _is_in(file.place, others)
    ]


def _is_in(place: str, folders: Collection[str]) -> bool:
    return any(place.startswith(f"{folder}/") for folder in folders)


def remove(storage: Storage, files: Sequence[StoredFile]) -> None:
    """Remove files; of those that are gone, that is done.

    Raises:
        SinkError: the store fails.
    """

    def one(file: StoredFile) -> None:
        with suppress(FileNotFoundError):
            system.delete_file(file.path)

    with store_errors(storage), ThreadPoolExecutor(_AT_ONCE) as pool:
        system, _ = storage.open()
        list(pool.map(one, files))


@contextmanager
def store_errors(storage: Storage) -> Iterator[None]:
    """What goes wrong inside is the store's.

    Raises:
        TableUnavailable: it may work again by itself.
        SinkError: it will not.
    """
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise storage.failure(f"the store fails: {error}", error) from error
