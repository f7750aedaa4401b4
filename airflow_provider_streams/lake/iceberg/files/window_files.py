"""Which files of an Iceberg table may hold rows of a window, and which windows these files hold.

A file is passed over only if its partition or its bounds show that it holds no such row. Bounds that are missing show
nothing, and those that are cut or rounded only what they say. Neither does an empty partition: earlier versions of this
package left it empty if the table's properties want no statistics. The rows of such a file are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyiceberg.expressions import AlwaysTrue, BooleanExpression, IsNull, Or, Reference, parser
from pyiceberg.expressions.visitors import ResidualEvaluator, UnpartitionedResidualEvaluator
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, ManifestGroupPlanner, Table

from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.iceberg.files.table_files import windows_in
from airflow_provider_streams.lake.iceberg.files.window_partitions import partition_fields
from airflow_provider_streams.lake.iceberg.longest_window import longest_window
from airflow_provider_streams.model.window.window import Window

_MARGIN = timedelta(seconds=1)


@dataclass(frozen=True)
class HeldFile:
    """A file and the windows of its rows; None: some are of no window."""

    task: FileScanTask
    windows: frozenset[Window | None]

    def shares_time(self, window: Window) -> bool:
        """Whether some of its rows are of this window, or of one that shares time with it."""
        return any(one is not None and one.overlaps(window) for one in self.windows)

    def is_within(self, window: Window) -> bool:
        """Whether all of them are."""
        return all(one is not None and one.overlaps(window) for one in self.windows)


@dataclass(frozen=True)
class HeldFiles:
    """The files that share time with a window."""

    files: tuple[HeldFile, ...]
    longest: timedelta
    """At least the length of each window of the table."""
    manifests: BooleanExpression
    """The rows whose manifests name these files."""

    def windows(self) -> Iterator[Window]:
        """The windows in these files."""
        return (window for file in self.files for window in file.windows if window is not None)


def files_sharing_time(table: Table, window: Window) -> HeldFiles:
    """The files with rows of a window, or of windows that share time with it.

    It opens the manifests whose partitions can hold such rows; all, if the table does not tell its longest window.
    """
    longest = longest_window(table)
    rows = AlwaysTrue() if longest is None else overlapping(window, longest)
    held = [HeldFile(task, windows_in(table, task)) for task in planned_files(table, rows)]
    if longest is None:
        lengths = [one.end - one.start for file in held for one in file.windows if one is not None]
        longest = max(lengths, default=timedelta(0))
    files = tuple(one for one in held if one.shares_time(window))
    return HeldFiles(files, longest, rows if all(_is_placed(table, one) for one in files) else AlwaysTrue())


def overlapping(window: Window, longest: timedelta) -> BooleanExpression:
    """The rows of all windows that share time with one, in a table whose windows are at most so long."""
    first, last = WINDOW_COLUMNS
    ends = f"{first} < '{window.end.isoformat()}' and {last} > '{window.start.isoformat()}'"
    after = _before(window.start, longest + _MARGIN)
    return parser.parse(ends if after is None else f"{ends} and {first} > '{after.isoformat()}'")


def planned_files(table: Table, rows: BooleanExpression) -> list[FileScanTask]:
    """The files that may hold such rows, also those whose partition is empty."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return []
    return list(_Planner(table.metadata, table.io, rows).plan_files(snapshot.manifests(table.io)))


def _is_placed(table: Table, held: HeldFile) -> bool:
    """Whether a file has a partition, by which its manifest is found."""
    file = held.task.file
    spec = table.specs()[file.spec_id]
    fields = partition_fields(spec)
    return all(file.partition[at] is not None for at, field in enumerate(spec.fields) if field in fields)


class _Planner(ManifestGroupPlanner):
    def _build_partition_projection(self, spec_id: int) -> BooleanExpression:
        """See `ManifestGroupPlanner`."""
        wanted = super()._build_partition_projection(spec_id)
        for field in partition_fields(self.table_metadata.specs()[spec_id]):
            wanted = Or(wanted, IsNull(term=Reference(field.name)))
        return wanted

    def _build_residual_evaluator(self, spec_id: int) -> Callable[[DataFile], ResidualEvaluator]:  # noqa: ARG002
        """See `ManifestGroupPlanner`. Files are read whole; pyiceberg's own raises `TypeError` for empty partitions."""
        evaluator = UnpartitionedResidualEvaluator(self.table_metadata.schema(), self.row_filter)
        return lambda _file: evaluator


def _before(moment: datetime, length: timedelta) -> datetime | None:
    """None: no calendar has such a moment."""
    try:
        return moment - length
    except OverflowError:
        return None
