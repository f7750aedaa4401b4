"""Replaces files of a Delta table by others with the same rows: one commit for a few windows.

delta-rs's own `compact` writes the times of partitions without their zone, which other engines then misread. To readers
that stream the table's changes, the windows look replaced (`skipChangeCommits`).
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import window_folder, without_window
from airflow_provider_streams.lake.compaction import Rewritten, WindowContent
from airflow_provider_streams.lake.data_files import FileTarget
from airflow_provider_streams.lake.delta.add_actions import add_actions, stored
from airflow_provider_streams.lake.delta.column_types import columns_of_files
from airflow_provider_streams.lake.delta.storage import storage_of
from airflow_provider_streams.lake.delta.table_settings import codec_of
from airflow_provider_streams.lake.delta.table_version import DeltaVersion
from airflow_provider_streams.lake.delta.transaction_log import versions
from airflow_provider_streams.lake.table_properties import COMPACTED
from airflow_provider_streams.model.sinks.landing import TableMark
from airflow_provider_streams.model.sinks.sink import DeltaSink
from airflow_provider_streams.model.window.window import Window


class CompactableDelta:
    """See `lake.compaction.CompactableTable`."""

    def __init__(self, sink: DeltaSink, mark: TableMark) -> None:
        self._sink, self._mark = sink, mark
        self._storage = storage_of(sink)
        self._columns = pa.schema([])
        self._codec = codec_of({})

    def contents(self) -> Mapping[Window, WindowContent]:
        """See `CompactableTable`."""
        version = next(versions(self._storage, mark=self._mark))
        self._check_writable(version)
        self._columns = columns_of_files(self._sink.path, without_window(version.columns))
        self._codec = codec_of(version.properties)
        return _contents(version)

    def target(self, window: Window) -> FileTarget:
        """See `CompactableTable`."""
        prefix = f"{uuid.uuid4().hex}-"
        made = FileTarget(self._storage, window_folder(window), prefix, self._columns, compression=self._codec)
        self._storage.make_folder(made.folder)
        return made

    def replace(self, rewritten: Sequence[Rewritten]) -> frozenset[Window]:
        """See `CompactableTable`."""
        written = {one.window: stored(self._storage, one.files) for one in rewritten}
        for version in versions(self._storage, mark=self._mark):
            self._check_writable(version)
            contents = _contents(version)
            same = [
                one.window
                for one in rewritten
                if (now := contents.get(one.window)) and now.hindrance is None and now.paths == one.old.paths
            ]
            files = [add for window in same for add in add_actions(written[window], window, version.columns)]
            if not same or version.replace(same, files, pa.schema([]), {COMPACTED: str(len(same))}):
                return frozenset(same)
        raise AssertionError("versions end with an error")

    def _check_writable(self, version: DeltaVersion) -> None:
        if why := version.rewriting_hindrance:
            raise SinkError(self._sink.path, f"the files cannot be rewritten: {why}")


def _contents(version: DeltaVersion) -> dict[Window, WindowContent]:
    """A commit replaces partitions by the windows' starts, so a window that shares its start stays as it is."""
    found = version.contents()
    begun = Counter(window.start for window in found)
    return {
        window: replace(content, hindrance="another window begins with it") if begun[window.start] > 1 else content
        for window, content in found.items()
    }
