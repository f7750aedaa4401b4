"""Removes markers and staged changes that no attempt needs any more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from airflow_provider_streams.lake.changes import change_writer, marker_files
from airflow_provider_streams.lake.snapshot_expiry import StoredFile, files_below, remove
from airflow_provider_streams.lake.storage import Storage


def expire(
    storage: Storage, number: int | None, table_id: str, before: datetime, *, dry_run: bool = False
) -> Sequence[StoredFile]:
    """Remove what was written before a moment, and the table does not name.

    Lists and markers that were written since stay, with all markers that these lists name: an attempt may be writing
    them, or reading them.

    Args:
        storage: the folder of the table's data.
        number: of the list that the table names; None: it names none.
        table_id: of the table's mark.
        before: no attempt that began earlier is running.
        dry_run: say what would go, and do nothing.

    Raises:
        SinkError: a list cannot be read, or files cannot be removed.
    """
    staged = files_below(storage, change_writer.FOLDER)
    markers = files_below(storage, marker_files.FOLDER)
    since = {marker_files.number_in(one.name) for one in markers if one.written >= before}
    named = [one for one in {number, *since} if one is not None]
    needed = {marker_files.list_path(one) for one in named}
    needed |= {path for one in named for path in marker_files.read_list(storage, one, table_id).files}
    old = [one for one in staged if one.written < before]
    old += [one for one in markers if one.written < before and f"{marker_files.FOLDER}/{one.place}" not in needed]
    if not dry_run:
        remove(storage, old)
    return old
