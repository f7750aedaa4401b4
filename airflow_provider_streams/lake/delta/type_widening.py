"""Rewrites the windows of a Delta table whose numbers become wider, for the commit that widens the columns.

delta-rs, and engines that read by it, do not know Delta's own type widening: they expect files of the table's types.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import window_folder, without_window
from airflow_provider_streams.lake.delta.add_actions import Stored, add_actions, stored
from airflow_provider_streams.lake.file_rewriting import Unfit, remove, rewrite

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

    from airflow_provider_streams.lake.compaction import WindowContent
    from airflow_provider_streams.lake.data_files import FileTarget
    from airflow_provider_streams.lake.delta.table_version import DeltaVersion
    from airflow_provider_streams.model.window.window import Window


@dataclass
class Promotion:
    """Rewrites the files of windows, once for all tries of the commit."""

    target: FileTarget
    """How files are written."""
    _written: dict[Window, tuple[frozenset[str], Stored]] = field(default_factory=dict)
    """For each window, the paths of its files, and the files that replace them."""

    def files(self, version: DeltaVersion, columns: pa.Schema, but: Collection[Window]) -> list[AddAction]:
        """Files for all windows of a version but some, in a table of these columns; raises `SinkError`."""
        contents = version.contents()
        hindrances = (version.rewriting_hindrance, *(one.hindrance for one in contents.values()))
        if why := next(filter(None, hindrances), None):
            raise self._unfit(why)
        if version.paths() != {path for one in contents.values() for path in one.paths}:
            raise self._unfit("it has rows of others, which are in no window")
        kept = [window for window in contents if window not in but]
        for window in kept:
            target = replace(self.target, folder=window_folder(window), schema=without_window(columns))
            self._rewrite(window, contents[window], target)
        return [add for window in kept for add in add_actions(self._written[window][1], window, columns)]

    def discard(self) -> None:
        """Remove the files that it wrote, if they are not the table's. Never raises."""
        for _, files in self._written.values():
            remove([file for file, _ in files], self.target)

    def _rewrite(self, window: Window, content: WindowContent, target: FileTarget) -> None:
        before = self._written.get(window)
        if before is not None and before[0] == content.paths:
            return
        target.storage.make_folder(target.folder)
        try:
            made = rewrite(content.files, target)
        except Unfit as error:
            raise self._unfit(str(error)) from error
        self._written[window] = (content.paths, stored(target.storage, made))
        if before is not None:
            remove([file for file, _ in before[1]], target)

    def _unfit(self, why: str) -> SinkError:
        return SinkError(
            self.target.storage.root, f"its numbers cannot become wider, for that rewrites its files: {why}"
        )
