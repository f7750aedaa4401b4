"""Keep tables that windows land in fast to query: few files for a window, and no old versions that are not needed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.lake.registry import TARGET_FILE_BYTES, check_compaction, check_expiry
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.template_rendering import RendersValues

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.lake.compaction import Compacted

_TELL_EVERY_SECONDS = 15.0
_MOST_NAMES = 20
"""Of files that go, in the log."""


class CompactTableOperator(RendersValues, BaseOperator):
    """Rewrites the small files of covered windows of an Iceberg or Delta table into files of a good size.

    The journal says which windows those are, and how many rows each must have. The rows of a window, and its coverage,
    stay as they are. A window that a run lands meanwhile is left to that run. The work is done in the task, batch by
    batch, and put in place a few windows at a time: if a task is ended, its next run goes on from there. Replaced files
    stay in earlier versions of the table until they expire (`ExpireTableOperator`).

    Args:
        sink: the table: `IcebergSink(..)` or `DeltaSink(..)`, named as where its windows land.
        target_file_bytes: the size that a file should have. A window is rewritten if half of its files would do.
        dry_run: say what would be rewritten, and do nothing.

    Returns (XCom):
        `windows` (how many), `files_before`, `files_after`, `bytes_before`, `bytes_after`, `overtaken` (windows that
        were landed meanwhile), `left` (windows that must stay as they are, and why).

    Raises (when it runs):
        TableOwnedByOther: the table is not one of this journal's readers.
        RowsDiffer: windows do not hold the rows that their receipts say; they are left alone, the others are done.
    """

    template_fields: Sequence[str] = ("sink",)
    ui_color = "#dfe8d8"

    def __init__(
        self, *, sink: Sink, target_file_bytes: int = TARGET_FILE_BYTES, dry_run: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_compaction(_checked(sink), target_file_bytes)
        self.sink = sink
        self.target_file_bytes = target_file_bytes
        self.dry_run_only = dry_run
        self._told = 0.0

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Rewrite, and report how many files became how many.

        Raises:
            StreamsError: typed; one that cannot pass by itself stops retries.
        """
        from airflow_provider_streams.windows.after_landing.maintenance import compact_table  # noqa: PLC0415 - Arrow when used

        with terminal_errors(), open_journal() as journal:
            done = compact_table(
                journal, self.sink, self.target_file_bytes, dry_run=self.dry_run_only, on_progress=self._tell_progress
            )
        for window, why in done.left.items():
            self.log.info("%s: window %s stays as it is: %s", self.sink, window, why)
        for window in done.overtaken:
            self.log.info("%s: window %s was changed by others meanwhile, and stays as they left it", self.sink, window)
        if self.dry_run_only:
            files, windows = counted(done.files_before, "file"), counted(len(done.windows), "window")
            self.log.info("%s: would rewrite %s of %s", self.sink, files, windows)
        else:
            self.log.info("%s: %s", self.sink, _sentence(done))
        return done.to_json()

    def _tell_progress(self, done: Compacted, of: int) -> None:
        if time.monotonic() - self._told >= _TELL_EVERY_SECONDS:
            self._told = time.monotonic()
            self.log.info("%s: %s so far, of %s", self.sink, _sentence(done), counted(of, "window"))


class ExpireTableOperator(RendersValues, BaseOperator):
    """Removes what a table replaced long ago, and what failed attempts left.

    - Iceberg (`expire_snapshots`, `remove_orphan_files`): snapshots that were replaced more than `keep` ago; branches
      and tags stay. Then files of data and metadata that no snapshot names.
    - Delta (`VACUUM`): files that no version of that time names. The log stays for as long as the table says.
    - Parquet: what ended attempts left in `_staging`. What `full_refresh` set aside stays.

    Reads and attempts that began later than `keep` ago lose nothing, nor do runs that have not ended. It removes only
    data files and metadata inside the table's own folder, and only of a table that a reader of this journal owns.

    Args:
        sink: the table, named as where its windows land.
        keep: for how long replaced versions stay, and how old an unknown file must be; an hour at least. Longer than
            any query of the table, and any attempt to land a window.
        dry_run: say what would go, and do nothing.

    Returns (XCom):
        `snapshots`, `files`, `bytes`: how many went; `before`: what was needed since then is kept.

    Raises (when it runs):
        TableOwnedByOther: the table is not one of this journal's readers.
        SinkError: it is not known what the table needs; some of what it does not need may be removed already.
    """

    template_fields: Sequence[str] = ("sink",)
    ui_color = "#dfe8d8"

    def __init__(
        self, *, sink: Sink, keep: timedelta = timedelta(days=7), dry_run: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_expiry(_checked(sink), keep)
        self.sink = sink
        self.keep = keep
        self.dry_run_only = dry_run

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Remove, and report what.

        Raises:
            StreamsError: typed; one that cannot pass by itself stops retries.
        """
        from airflow_provider_streams.windows.after_landing.maintenance import expire_table  # noqa: PLC0415 - Arrow when used

        with terminal_errors(), open_journal() as journal:
            before, gone = expire_table(journal, self.sink, self.keep, dry_run=self.dry_run_only)
        for file in gone.files[:_MOST_NAMES]:
            self.log.info("%s (%s, of %s)", file.path, counted(file.bytes, "byte"), file.written.isoformat())
        said = "would remove" if self.dry_run_only else "removed"
        snapshots, files = counted(gone.snapshots, "snapshot"), counted(len(gone.files), "file")
        self.log.info(
            "%s: %s %s and %s (%s) from before %s",
            *(self.sink, said, snapshots, files, counted(gone.bytes, "byte"), before.isoformat()),
        )
        return {**gone.to_json(), "before": before.isoformat()}


def _checked(sink: object) -> Sink:
    if isinstance(sink, type) or not isinstance(sink, Sink):
        raise InvalidRequest(f"sink must be one like IcebergSink('shop.orders'), got {type(sink).__name__}")
    return sink


def _sentence(done: Compacted) -> str:
    megabytes = [f"{size / 1e6:.1f}" for size in (done.bytes_before, done.bytes_after)]
    return (
        f"{counted(len(done.windows), 'window')} compacted: "
        f"{counted(done.files_before, 'file')} ({megabytes[0]} MB) became {done.files_after} ({megabytes[1]} MB)"
    )
