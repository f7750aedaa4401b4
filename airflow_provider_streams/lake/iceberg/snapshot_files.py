"""All files that snapshots of an Iceberg table consist of: what they name, nobody takes away."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table

_AT_ONCE = 8


def files_of_snapshots(table: Table, snapshots: Collection[int | None]) -> set[str]:
    """Where data files, manifests and their lists are, as the metadata write it."""
    manifests: dict[str, ManifestFile] = {}
    paths = set()
    for one in table.snapshots():
        if one.snapshot_id in snapshots:
            paths.add(one.manifest_list)
            manifests |= {manifest.manifest_path: manifest for manifest in one.manifests(table.io)}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        entries = pool.map(lambda one: one.fetch_manifest_entry(table.io, discard_deleted=True), manifests.values())
        paths |= {entry.data_file.file_path for found in entries for entry in found}
    return paths | manifests.keys()
