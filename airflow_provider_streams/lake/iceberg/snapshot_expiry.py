"""Expires snapshots of an Iceberg table that were replaced long ago, and removes files that no snapshot names.

A snapshot's age counts from when it was replaced. Engines that count from when it was made would remove it from under a
reader that began a minute before it was replaced. Branches and tags stay, with their ancestors.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, RemoveSnapshotsUpdate

from airflow_provider_streams.errors import SinkError, TableUnavailable
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import errors_of
from airflow_provider_streams.lake.iceberg.commit import newest_id
from airflow_provider_streams.lake.iceberg.files.locations import data_location, metadata_location
from airflow_provider_streams.lake.iceberg.files.snapshot_files import files_of_snapshots
from airflow_provider_streams.lake.iceberg.files.table_files import storage_at
from airflow_provider_streams.lake.iceberg.table import IcebergTable
from airflow_provider_streams.lake.snapshot_expiry import (
    AT_ONCE,
    ATTEMPT_FILE,
    Expired,
    StoredFile,
    files_below,
    is_data_file,
    left_over,
    name_of,
    remove,
)
from airflow_provider_streams.lake.storage import place_in
from airflow_provider_streams.model.sinks.landing import TableMark
from airflow_provider_streams.model.sinks.sink import IcebergSink

_ROUNDS = 10
"""How often others may commit first."""

_VERSION = ".metadata.json"
_METADATA = (".avro", _VERSION)
_OF_AN_ATTEMPT = re.compile(f"({WINDOW_COLUMNS[0]}=[^/]+/)?{ATTEMPT_FILE}")
_UUID = re.compile(rb'"table-uuid"\s*:\s*"([0-9a-fA-F-]+)"')

_log = logging.getLogger(__name__)


class ExpirableIceberg:
    """See `SinkWriter.expire`.

    Files outside of the table's location (`write.data.path`, `write.metadata.path`) may be another table's, and stay.
    """

    def __init__(self, sink: IcebergSink, mark: TableMark) -> None:
        self._sink, self._mark = sink, mark
        self._table = IcebergTable(sink)

    def expire(self, before: datetime, *, dry_run: bool = False) -> Expired:
        """See `SinkWriter.expire`. `SinkError`: also if the table's property `gc.enabled` forbids it."""
        table = self._table.loaded(self._mark)
        if table.properties.get("gc.enabled", "true").lower() == "false":
            raise SinkError(str(self._sink), "its property gc.enabled is false: other tables may use its files")
        with errors_of(self._sink):
            named = files_of_snapshots(table, {one.snapshot_id for one in table.snapshots()})
            listed = [(folder, files_below(storage_at(table, folder))) for folder in _folders(table)]
            current = files_of_snapshots(table, {newest_id(table)})
            doomed = replaced_before(table, before)
            known = files_of_snapshots(table, doomed) if _is_shared(table, listed) else None
            if not dry_run:
                table, forgotten = self._forget(before)
            kept = {one.snapshot_id for one in table.snapshots()} - (doomed if dry_run else set())
            needed = {name_of(path) for path in files_of_snapshots(table, kept) | _metadata_files(table)}
        snapshots = len(doomed) if dry_run else forgotten
        gone: list[StoredFile] = []
        for folder, files in listed:
            storage = storage_at(table, folder)
            here, is_ours = _places(folder, current), _OwnFiles(table, folder, named, known)
            were = _places(folder, named)
            old = left_over(storage, files, is_ours, current=here, needed=needed, before=before, replaced=were)
            if not dry_run:
                remove(storage, old)
            gone += old
        return Expired(tuple(gone), snapshots)

    def _forget(self, before: datetime) -> tuple[Table, int]:
        """The table without its old snapshots, and how many those were."""
        forgotten = 0
        for _ in range(_ROUNDS):
            table = self._table.loaded(self._mark)
            doomed = replaced_before(table, before)
            if not doomed:
                return table, forgotten
            try:
                done = _commit(table, doomed)
            except CommitFailedException:
                continue  # others committed first: what is old may be the newest again
            except ValueError:
                if doomed <= {one.snapshot_id for one in self._table.loaded(self._mark).snapshots()}:
                    raise
                continue  # another expiry came first; the catalog has no error of its own for that
            self._check_refs(table, done)
            forgotten += len(doomed)
        raise TableUnavailable(str(self._sink), f"other commits were first {_ROUNDS} times")

    def _check_refs(self, seen: Table, done: CommitTableResponse) -> None:
        """Check that a commit removed no branch or tag: one made after the last look goes with its snapshot.

        Catalogs cannot refuse that, so the metadata before and after the commit are compared.
        """
        log = done.metadata.metadata_log
        if not log or log[-1].metadata_file == seen.metadata_location:
            return
        made_on = log[-1].metadata_file
        before = FromInputFile.table_metadata(seen.io.new_input(made_on)).refs
        if lost := sorted(before.keys() - done.metadata.refs.keys()):
            raise SinkError(
                str(self._sink),
                f"others made {', '.join(lost)} while old snapshots were forgotten, and it went with them. No file is "
                f"removed until the next expiry: {made_on} names what it named",
            )


def replaced_before(table: Table, before: datetime) -> set[int]:
    """The snapshots that were replaced before a moment, and that no branch or tag needs."""
    log = sorted(table.history(), key=lambda entry: entry.timestamp_ms)
    # of a snapshot that was the newest one twice, the later end counts
    until = {entry.snapshot_id: following.timestamp_ms for entry, following in pairwise(log)}
    needed, before_ms = _referred_to(table), before.timestamp() * 1000
    return {
        one.snapshot_id
        for one in table.snapshots()
        if one.snapshot_id not in needed and until.get(one.snapshot_id, one.timestamp_ms) < before_ms
    }


def _referred_to(table: Table) -> set[int]:
    """The snapshots of branches and tags; for all but the main branch, also their ancestors."""
    known = {one.snapshot_id: one for one in table.snapshots()}
    needed = set()
    for name, ref in table.refs().items():
        at: Snapshot | None = known.get(ref.snapshot_id)
        while at is not None and at.snapshot_id not in needed:
            needed.add(at.snapshot_id)
            at = known.get(at.parent_snapshot_id or 0) if name != MAIN_BRANCH else None
    return needed


def _commit(table: Table, doomed: Collection[int]) -> CommitTableResponse:
    heads = {MAIN_BRANCH: None, **{name: ref.snapshot_id for name, ref in table.metadata.refs.items()}}
    same_table = AssertTableUUID(uuid=table.metadata.table_uuid)
    same_refs = (AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": at}) for name, at in heads.items())
    change = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": sorted(doomed)})
    return table.catalog.commit_table(table, (same_table, *same_refs), (change,))


def _folders(table: Table) -> list[str]:
    """The folders of its data and its metadata, if they are in the table's own."""
    own = table.location().rstrip("/")
    folders = dict.fromkeys((data_location(table), metadata_location(table)))
    return [folder for folder in folders if place_in(own, folder) is not None]


class _OwnFiles:
    """Whether a table, or an attempt at its windows, put a file at a place in one of its folders.

    Other files may be a user's, or another table's whose `write.data.path` is here. Snapshots name the `named` files.
    If another table shares the folder, `only` are the files of expired snapshots, and no others count; else None.
    """

    def __init__(self, table: Table, folder: str, named: Collection[str], only: Collection[str] | None) -> None:
        self._named, self._is_alone = _places(folder, named if only is None else only), only is None
        self._has_data, self._has_metadata = folder == data_location(table), folder == metadata_location(table)

    def __call__(self, place: str) -> bool:
        is_metadata = place.endswith(_METADATA)
        if place in self._named:
            return is_metadata or is_data_file(place)
        if not self._is_alone:
            return False
        is_of_an_attempt = self._has_data and _OF_AN_ATTEMPT.fullmatch(place) is not None
        return is_of_an_attempt or (self._has_metadata and is_metadata and "/" not in place)


def _places(folder: str, locations: Iterable[str]) -> set[str]:
    """The locations below a folder, as paths in it."""
    return {place for one in locations if (place := place_in(folder, one)) is not None}


def _is_shared(table: Table, listed: Sequence[tuple[str, list[StoredFile]]]) -> bool:
    """Whether another table has or had its metadata in the table's folder: files that no snapshot names may be its.

    Many catalogs give a new table the folder of an earlier one with that name, which may have been renamed or dropped.
    """
    known = {name_of(path) for path in _metadata_files(table)}
    own = str(table.metadata.table_uuid)
    for folder, files in listed:
        unknown = [file for file in files if file.name.endswith(_VERSION) and file.name not in known]
        system, _ = storage_at(table, folder).open()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            owners = zip(unknown, pool.map(partial(_table_in, system), unknown), strict=True)
            strange = next(((file, owner) for file, owner in owners if owner not in (None, own)), None)
        if strange is not None:
            file, owner = strange
            whose = f"is of table {owner}" if owner else "does not say of which table it is: remove it if it is of none"
            _log.warning("%s: only files that expired snapshots name are removed, for %s %s", folder, file.path, whose)
            return True
    return False


def _table_in(system: Any, metadata: StoredFile) -> str | None:
    """The table's UUID in a metadata file; empty: it has none; None: the file is gone."""
    with suppress(FileNotFoundError), system.open_input_stream(metadata.path) as stored:
        found = _UUID.search(stored.read())
        return found[1].decode() if found else ""
    return None


def _metadata_files(table: Table) -> set[str]:
    """The table's current metadata file, and the earlier ones that it still knows."""
    return {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
