"""Keep tables that windows land in fit to be queried: few files for a window, and no past that nobody needs."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.lake.upkeep import TARGET_FILE_BYTES, check_compaction, check_expiry
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.retry import terminal_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.lake.compaction import Compacted

_TELL_EVERY_SECONDS = 15.0
_MOST_NAMES = 20
"""Of files that go, in the log."""


class CompactTableOperator(BaseOperator):
    """Rewrites the small files of covered windows of an Iceberg or Delta table into files of a good size.

    Which windows those are, and how many rows each must have, the journal says. The rows of a window stay as they are,
    so does all that is known of it; a window that a run lands meanwhile is that run's. The work is done in the task,
    batch by batch, and put in place a few windows at a time: a task that was ended goes on where it was when it is run
    again. What is replaced stays in earlier versions of the table until it expires (`ExpireTableOperator`).

    Args:
        sink: the table: `IcebergSink(..)` or `DeltaSink(..)`, named as where its windows land.
        target_file_bytes: the size that a file should have. A window is rewritten where half of its files would do.
        dry_run: say what would be rewritten, and do nothing.

    Returns (XCom):
        `windows` (how many), `files_before`, `files_after`, `bytes_before`, `bytes_after`, `overtaken` (windows that
        were landed meanwhile), `left` (windows that must stay as they are, and why).

    Raises (when it runs):
        ForeignTable: the table is not one of this journal's readers.
        RowsDiffer: windows do not hold the rows that their receipts say; they are left alone, the others are done.
    """

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
        """Rewrite, and say what became fewer.

        Raises:
            StreamsError: typed; one that cannot pass by itself stops retries.
        """
        from airflow_provider_streams.windows.upkeep import compact_table  # noqa: PLC0415 - Arrow when used

        with terminal_errors(), open_journal() as journal:
            done = compact_table(
                journal, self.sink, self.target_file_bytes, dry_run=self.dry_run_only, told=self._tell_progress
            )
        for window, why in done.left.items():
            self.log.info("%s: window %s stays as it is: %s", self.sink, window, why)
        for window in done.overtaken:
            self.log.info("%s: window %s was changed by others meanwhile, and stays as they left it", self.sink, window)
        if self.dry_run_only:
            self.log.info(
                "%s: %d files of %d windows would be rewritten", self.sink, done.files_before, len(done.windows)
            )
        else:
            self.log.info("%s: %s", self.sink, _sentence(done))
        return done.to_json()

    def _tell_progress(self, done: Compacted, of: int) -> None:
        if time.monotonic() - self._told >= _TELL_EVERY_SECONDS:
            self._told = time.monotonic()
            self.log.info("%s: %s so far, of %d windows", self.sink, _sentence(done), of)


class ExpireTableOperator(BaseOperator):
    """Lets go of what a table replaced long ago, and of what failed attempts left.

    - Iceberg (`expire_snapshots`, `remove_orphan_files`): snapshots that are not the newest one any more for so long;
      branches and tags stay. Then files of data and metadata that no snapshot names.
    - Delta (`VACUUM`): files that no version of that time names. The log stays for as long as the table says.
    - Parquet: what attempts that do not live any more left in `_staging`. What `reland` set aside stays.

    Reads and attempts that began later than `keep` ago lose nothing, nor do runs that have not ended. Only data files
    and metadata inside of the table's own folder go, and only of a table that a reader of this journal owns.

    Args:
        sink: the table, named as where its windows land.
        keep: for how long what was replaced stays, and how old a file is that nobody knows; an hour at least. Longer
            than any query of the table, and any attempt to land a window.
        dry_run: say what would go, and do nothing.

    Returns (XCom):
        `snapshots`, `files`, `bytes`: how many went; `before`: what was needed since then is kept.

    Raises (when it runs):
        ForeignTable: the table is not one of this journal's readers.
        SinkError: nobody can tell what the table needs; some of what it does not need may have gone.
    """

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
        """Let go, and say of what.

        Raises:
            StreamsError: typed; one that cannot pass by itself stops retries.
        """
        from airflow_provider_streams.windows.upkeep import expire_table  # noqa: PLC0415 - Arrow when used

        with terminal_errors(), open_journal() as journal:
            before, gone = expire_table(journal, self.sink, self.keep, dry_run=self.dry_run_only)
        for file in gone.files[:_MOST_NAMES]:
            self.log.info("%s (%d bytes, of %s)", file.path, file.bytes, file.written.isoformat())
        said = "would go" if self.dry_run_only else "are gone"
        self.log.info(
            "%s: %d snapshots and %d files (%d bytes) of before %s %s",
            *(self.sink, gone.snapshots, len(gone.files), gone.bytes, before.isoformat(), said),
        )
        return {**gone.to_json(), "before": before.isoformat()}


def _checked(sink: object) -> Sink:
    if isinstance(sink, type) or not isinstance(sink, Sink):
        raise InvalidRequest(f"sink must be one like IcebergSink('shop.orders'), got {type(sink).__name__}")
    return sink


def _sentence(done: Compacted) -> str:
    megabytes = [f"{size / 1e6:.1f}" for size in (done.bytes_before, done.bytes_after)]
    return (
        f"{len(done.windows)} windows compacted: {done.files_before} files ({megabytes[0]} MB) became "
        f"{done.files_after} ({megabytes[1]} MB)"
    )
