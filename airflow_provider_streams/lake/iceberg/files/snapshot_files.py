"""All files that snapshots of an Iceberg table consist of: expiry keeps what they name.

If a metadata file was cut between two of its blocks, readers find fewer entries, and no error. So entries are counted
here, before files that no entry names are removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyiceberg.manifest import ManifestContent, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import TOTAL_DATA_FILES, Snapshot

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.snapshot_expiry import AT_ONCE


def files_of_snapshots(table: Table, snapshots: Collection[int | None]) -> set[str]:
    """All locations that snapshots name, as metadata spell them. `SinkError`: a manifest or list is not whole."""
    manifests: dict[str, ManifestFile] = {}
    paths = set()
    for one in table.snapshots():
        if one.snapshot_id in snapshots:
            paths.add(one.manifest_list)
            found = one.manifests(table.io)
            _check_list(table, one, found)
            manifests |= {manifest.manifest_path: manifest for manifest in found}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for named in pool.map(lambda one: list(_named_in(table, one)), manifests.values()):
            paths.update(named)
    return paths | manifests.keys()


def _named_in(table: Table, manifest: ManifestFile) -> Iterator[str]:
    entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    counts = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    told = _sum(counts)
    if told is None:  # as version 1 of the format may have it
        told, found, of = manifest.manifest_length, len(table.io.new_input(manifest.manifest_path)), "bytes"
    else:
        found, of = len(entries), "entries"
    if found != told:
        raise _cut(table, manifest.manifest_path, f"{found} {of} in place of {told}")
    yield from (one.data_file.file_path for one in entries if one.status != ManifestEntryStatus.DELETED)


def _check_list(table: Table, snapshot: Snapshot, manifests: Sequence[ManifestFile]) -> None:
    """Check the count in a snapshot's summary. Some writers count too few, if they do not know the snapshot before."""
    told = (snapshot.summary.additional_properties if snapshot.summary else {}).get(TOTAL_DATA_FILES)
    data = (one for one in manifests if one.content == ManifestContent.DATA)
    found = _sum([count for one in data for count in (one.added_files_count, one.existing_files_count)])
    if told is not None and found is not None and found < int(told):
        raise _cut(table, snapshot.manifest_list, f"manifests of {found} data files in place of {told}")


def _sum(counts: Sequence[int | None]) -> int | None:
    """None: one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _cut(table: Table, path: str, how: str) -> SinkError:
    return SinkError(
        ".".join(table.name()), f"{path} is not whole, it has {how}: put it back from a copy. No file is removed"
    )
