"""A Delta table whose files are replaced by others with the same rows: one commit for a few windows.

Not by delta-rs's own `compact`: it writes the times of partitions without their zone, and other engines take them for
times of theirs. To readers that stream the table's changes, the windows look replaced (`skipChangeCommits`).
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.compaction import Rewritten, WindowContent, of_size
from airflow_provider_streams.lake.delta.files import add_actions, stored
from airflow_provider_streams.lake.delta.log import DeltaVersion
from airflow_provider_streams.lake.delta.storage import make_folder
from airflow_provider_streams.lake.delta.types import columns_of_rows
from airflow_provider_streams.lake.delta.versions import check_mark, newest, versions
from airflow_provider_streams.lake.delta.writer import folder_of, storage_of
from airflow_provider_streams.lake.files import FileTarget
from airflow_provider_streams.model.landing import TableMark
from airflow_provider_streams.model.sink import DeltaSink
from airflow_provider_streams.model.window import Window

_DELETION_VECTORS = "deletionVectors"


class CompactableDelta:
    """See `lake.compaction.CompactableTable`."""

    def __init__(self, sink: DeltaSink, mark: TableMark) -> None:
        self._sink, self._mark = sink, mark
        self._storage = storage_of(sink)
        self._columns = pa.schema([])

    def contents(self) -> Mapping[Window, WindowContent]:
        """See `CompactableTable`."""
        version = check_mark(newest(self._storage), self._storage, self._mark)
        hindrance = version.hindrance
        if version.has_feature(_DELETION_VECTORS):
            hindrance = "its files may have rows that are deleted elsewhere (deletion vectors): its engine compacts it"
        if hindrance:
            raise SinkError(self._sink.path, f"the files cannot be written anew: {hindrance}")
        rows = pa.schema([one for one in version.columns if one.name not in WINDOW_COLUMNS])
        self._columns = columns_of_rows(self._sink.path, rows)
        return _contents(version)

    def target(self, window: Window, file_bytes: int) -> FileTarget:
        """See `CompactableTable`."""
        prefix = f"{uuid.uuid4().hex}-"
        made = FileTarget(self._storage, folder_of(window), prefix, self._columns)
        make_folder(made.storage, made.folder)
        return of_size(made, file_bytes)

    def replace(self, rewritten: Sequence[Rewritten]) -> frozenset[Window]:
        """See `CompactableTable`."""
        written = {one.window: stored(self._storage, one.files) for one in rewritten}
        for version in versions(self._storage):
            contents = _contents(check_mark(version, self._storage, self._mark))
            same = [one.window for one in rewritten if _is_as_before(contents.get(one.window), one)]
            files = [add for window in same for add in add_actions(written[window], window, version.columns)]
            if not same or version.replace(same, files, pa.schema([]), {"streams.compacted": str(len(same))}):
                return frozenset(same)
        raise AssertionError("versions end with an error")


def _is_as_before(content: WindowContent | None, one: Rewritten) -> bool:
    return content is not None and content.hindrance is None and {file.path for file in content.files} == one.old_paths


def _contents(version: DeltaVersion) -> dict[Window, WindowContent]:
    found: dict[Window, WindowContent] = {}
    for window, file in version.files():
        known = found.get(window, WindowContent(()))
        why = "the log does not say how many rows a file has" if file.rows < 0 else None
        found[window] = replace(known, files=(*known.files, file), hindrance=known.hindrance or why)
    begun = Counter(window.start for window in found)
    return {
        window: replace(content, hindrance="another window begins with it") if begun[window.start] > 1 else content
        for window, content in found.items()
    }
