"""What Iceberg's manifests say of our files and their columns.

These are pyiceberg's statistics, corrected where pyiceberg 0.12 would mislead readers. pyiceberg itself is not patched,
for other code of this process may use it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO, Any, cast

import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.io.fileformat import DataFileStatistics
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    StatisticsCollector,
    StatsAggregator,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import StringType

from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.data_files import NULLS_KEY
from airflow_provider_streams.lake.iceberg.column_types import FIELD_ID
from airflow_provider_streams.lake.iceberg.files.window_partitions import partition_of
from airflow_provider_streams.model.window.window import Window

_HALVES = range(0xD800, 0xE000)
"""Surrogates of UTF-16, which are no letters."""

_BOUNDS_OF_WINDOWS = {f"write.metadata.metrics.column.{name}": "full" for name in WINDOW_COLUMNS}

_NO_METRICS = MetricsMode(MetricModeTypes.NONE)


def upper_bound(text: str, length: int | None) -> str | None:
    """A text of at most so many letters that no text with this one's beginning exceeds; None: there is none.

    pyiceberg takes the first letters and increments the last of them. After U+D7FF, that gives half of a letter, which
    has no bytes: each commit of such a file fails (apache/iceberg-python, pull request 3880).
    """
    kept = text[:length]
    if kept == text:
        return text
    while kept:
        following = ord(kept[-1]) + 1
        kept = kept[:-1]
        if following in _HALVES:
            following = _HALVES.stop
        if following <= sys.maxunicode:
            return kept + chr(following)
    return None


def manifest_entries(
    target: str, io: FileIO, table: TableMetadata, paths: Iterable[str], window: Window | None
) -> Iterator[DataFile]:
    """Entries for files of a window that we wrote; None: their rows are of no window.

    The window columns have bounds whatever the table's properties want: by them, later landings know a file's window.

    Raises:
        OSError, ValueError: a file is unreadable.
        SinkError: the table's rows of one window may be in several partitions.
    """
    schema = table.schema()
    partition = partition_of(target, window, table.spec(), schema)
    plan = compute_statistics_plan(schema, {**table.properties, **_BOUNDS_OF_WINDOWS})
    for path in paths:
        file = io.new_input(path)
        with file.open() as stream:
            footer = pq.read_metadata(cast("IO[Any]", stream))
        found = statistics(footer, plan, schema)
        yield DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=partition,
            file_size_in_bytes=len(file),
            sort_order_id=None,
            spec_id=table.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **found.to_serialized_dict(),
        )


def statistics(footer: pq.FileMetaData, plan: dict[int, StatisticsCollector], schema: Schema) -> DataFileStatistics:
    """Statistics by pyiceberg, with bounds of texts that can be written, and with null counts of all columns.

    Without a null count, DuckDB finds no nulls, and nothing at all in nested columns. pyiceberg logs a warning for each
    column without statistics in each file, so it is not asked for those.
    """
    numbers = parquet_path_to_id_mapping(schema)
    counts = _values_without_statistics(footer, numbers)
    asked = {number: replace(one, mode=_NO_METRICS) if number in counts else one for number, one in plan.items()}
    found = data_file_statistics_from_parquet_metadata(footer, asked, numbers)
    found.value_counts.update({number: count for number, count in counts.items() if plan[number].mode != _NO_METRICS})
    for number, bounds in found.column_aggregates.items():
        if isinstance(bounds.primitive_type, StringType):
            found.column_aggregates[number] = _TextBounds(bounds)
    for number, count in _counted_nulls(footer).items():
        # columns without metrics get no counts, for the table's properties want none
        if number in found.value_counts or number not in plan:
            found.value_counts[number], found.null_value_counts[number] = footer.num_rows, count
    return found


class _TextBounds(StatsAggregator):
    """The bounds of a column of texts."""

    def __init__(self, found: StatsAggregator) -> None:
        self.primitive_type, self.trunc_length = found.primitive_type, found.trunc_length
        self.current_min, self.current_max = found.current_min, found.current_max

    def max_as_bytes(self) -> bytes | None:
        """See `upper_bound`."""
        bound = None if self.current_max is None else upper_bound(self.current_max, self.trunc_length)
        return None if bound is None else self.serialize(bound)


def _values_without_statistics(footer: pq.FileMetaData, numbers: dict[str, int]) -> dict[int, int]:
    """The number of values of each column that lacks statistics in some row group, by field id."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [[group.column(column) for group in groups] for column in range(footer.num_columns)]
    return {
        numbers[column[0].path_in_schema]: sum(chunk.num_values for chunk in column)
        for column in chunks
        if not all(chunk.is_stats_set for chunk in column)
    }


def _counted_nulls(footer: pq.FileMetaData) -> dict[int, int]:
    """The null counts that our writer noted for columns without statistics, by field id; nested ones as a whole."""
    said = (footer.metadata or {}).get(NULLS_KEY.encode())
    nulls: dict[str, int] = json.loads(said) if said else {}
    columns = footer.schema.to_arrow_schema()
    return {int((columns.field(name).metadata or {})[FIELD_ID]): count for name, count in nulls.items()}
