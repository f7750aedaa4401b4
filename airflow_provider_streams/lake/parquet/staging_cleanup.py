"""Removes what dead attempts left in a folder's staging. A Parquet table keeps nothing else that was replaced.

What a full refresh set aside stays, for it is nowhere else, and only its owner knows when it may go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.parquet.atomic_rename import ASIDE_SUFFIX
from airflow_provider_streams.lake.parquet.hidden_files import lock_file_of, remove_dead
from airflow_provider_streams.lake.parquet.overlap_replacement import REPLACED
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.process_lock import is_alive
from airflow_provider_streams.lake.snapshot_expiry import Expired, StoredFile
from airflow_provider_streams.lake.table_properties import refuse_other_mark
from airflow_provider_streams.model.sinks.landing import TableMark
from airflow_provider_streams.model.sinks.sink import ParquetSink


def expire(sink: ParquetSink, mark: TableMark, before: datetime, *, dry_run: bool = False) -> Expired:
    """See `SinkWriter.expire`. A living attempt keeps its files, however old they are."""
    table = ParquetTable(sink.path)
    state = table.state()
    refuse_other_mark(sink.path, None if state is None else state.mark, mark)
    gone: list[StoredFile] = []
    try:
        for left in _dead(table, before):
            gone += _files_of(left)
            if not dry_run:
                remove_dead(left)
    except OSError as error:
        raise SinkError(sink.path, f"its staging cannot be emptied: {error}") from error
    return Expired(tuple(gone))


def _dead(table: ParquetTable, before: datetime) -> Iterator[Path]:
    """What attempts left that do not live, and wrote nothing since a moment.

    A folder that was put aside between two renames may be the only copy of its window: the next attempt brings it back.
    """
    places = [place for place in (table.staging, table.exchange) if place.is_dir()]
    for left in (left for place in places for left in sorted(place.iterdir())):
        is_aside = left.name.endswith(ASIDE_SUFFIX) or REPLACED in left.name
        if not is_aside and _last_write(left) < before and not is_alive(lock_file_of(table.staging / left.name)):
            yield left


def _files_of(left: Path) -> Iterator[StoredFile]:
    for file in [left] if left.is_file() else sorted(left.rglob("*")):
        with suppress(FileNotFoundError):
            if file.is_file():
                found = file.stat()
                yield StoredFile(str(file), found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


def _last_write(left: Path) -> datetime:
    """The newest time of a folder, its folders and its files; if it is gone meanwhile, the present."""
    try:
        times = [file.stat().st_mtime for file in (left, *left.rglob("*"))]
    except FileNotFoundError:
        return datetime.now(UTC)
    return datetime.fromtimestamp(max(times), UTC)
