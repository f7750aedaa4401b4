"""What dead attempts left in a folder's staging. It has no other past: a window that is replaced is gone.

What `reland` set aside stays: it is nowhere else, and only its owner knows when nobody wants it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from airflow_provider_streams.errors import ForeignTable, SinkError
from airflow_provider_streams.lake.expiry import Expired, StoredFile
from airflow_provider_streams.lake.parquet.atomic_rename import ASIDE_SUFFIX
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.parquet.writer import life_of
from airflow_provider_streams.lake.process_lock import is_alive
from airflow_provider_streams.model.landing import TableMark
from airflow_provider_streams.model.sink import ParquetSink

_DOOMED = ".doomed"
_REPLACED = ".replaced-"
"""In the name of a window's folder while another one takes its place."""


class ExpirableParquet:
    """See `lake.expiry.ExpirableTable`."""

    def __init__(self, sink: ParquetSink, mark: TableMark) -> None:
        self._table, self._mark = ParquetTable(sink.path), mark

    def expire(self, before: datetime, *, dry_run: bool = False) -> Expired:
        """See `ExpirableTable`. An attempt that lives keeps what it has, however old that is."""
        state = self._table.state()
        if state is None or state.mark != self._mark:
            found = "nobody that it names" if state is None else state.mark
            raise ForeignTable(str(self._table.root), f"the table belongs to {found}, not to {self._mark}")
        try:
            gone = [file for left in self._dead(before) for file in _emptied(left, dry_run=dry_run)]
        except OSError as error:
            raise SinkError(str(self._table.root), f"its staging cannot be emptied: {error}") from error
        return Expired(tuple(gone))

    def _dead(self, before: datetime) -> Iterator[Path]:
        """What attempts left that do not live, and wrote nothing since a moment.

        A folder that was put aside between two renames may be the only copy of its window: attempts bring it back.
        """
        if self._table.staging.is_dir():
            for left in sorted(self._table.staging.iterdir()):
                if not _is_aside(left) and _last_write(left) < before and not is_alive(life_of(left)):
                    yield left


def _is_aside(left: Path) -> bool:
    return left.name.endswith(ASIDE_SUFFIX) or _REPLACED in left.name


def _emptied(left: Path, *, dry_run: bool) -> list[StoredFile]:
    """Its files. It is renamed first: an attempt that only looked dead can then put no emptied folder in place."""
    files = list(_files_of(left))
    if dry_run:
        return files
    doomed = left if left.name.endswith(_DOOMED) else left.rename(left.with_name(left.name + _DOOMED))
    if doomed.is_dir():
        shutil.rmtree(doomed)
    else:
        doomed.unlink()
    return files


def _files_of(left: Path) -> Iterator[StoredFile]:
    for file in [left] if left.is_file() else sorted(left.rglob("*")):
        with suppress(FileNotFoundError):
            if file.is_file():
                found = file.stat()
                yield StoredFile(str(file), found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


def _last_write(left: Path) -> datetime:
    """The newest of a folder, its folders and its files; of one that is gone meanwhile, the present."""
    try:
        times = [file.stat().st_mtime for file in (left, *left.rglob("*"))]
    except FileNotFoundError:
        return datetime.now(UTC)
    return datetime.fromtimestamp(max(times), UTC)
