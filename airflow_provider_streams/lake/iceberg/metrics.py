"""What Iceberg's manifests say of the columns of a file, where pyiceberg 0.12 says it so that readers go wrong."""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.io import pyarrow as data_files

from airflow_provider_streams.lake.files import NULLS_KEY
from airflow_provider_streams.lake.iceberg.types import FIELD_ID

_HALVES = range(0xD800, 0xE000)
"""Of UTF-16's pairs: no letters."""

_statistics = data_files.data_file_statistics_from_parquet_metadata


def upper_bound(text: str, length: int | None) -> str | None:
    """A text of at most so many letters that no text with this one's beginning exceeds; None: there is none.

    pyiceberg's is the first letters with the one that follows the last of these. What follows U+D7FF is half of a
    letter, of which it cannot make bytes: a commit with such a file fails, however often it is tried
    (apache/iceberg-python, pull request 3880).
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


def statistics(
    parquet_metadata: pq.FileMetaData, stats_columns: dict[int, Any], parquet_column_mapping: dict[str, int]
) -> data_files.DataFileStatistics:
    """pyiceberg's, with the nulls of columns that have no statistics, whole structs, lists and maps among them.

    DuckDB finds no nulls where nobody counted them, and of nested columns nothing at all.
    """
    found = _statistics(parquet_metadata, stats_columns, parquet_column_mapping)
    said = (parquet_metadata.metadata or {}).get(NULLS_KEY.encode())
    nulls: dict[str, int] = json.loads(said) if said else {}
    numbers = {**parquet_column_mapping, **_numbers_of(parquet_metadata)} if nulls else {}
    for name, count in nulls.items():
        column = numbers.get(name)
        # else it is nested in a file without field ids, or the table's properties want no counts of it
        if column is not None and (column in found.value_counts or column not in stats_columns):
            found.value_counts[column], found.null_value_counts[column] = parquet_metadata.num_rows, count
    return found


def _numbers_of(footer: pq.FileMetaData) -> dict[str, int]:
    """The field ids of a file's columns; those of a `ParquetSink`, which somebody may add to a table, have none."""
    own = {one.name: (one.metadata or {}).get(FIELD_ID) for one in footer.schema.to_arrow_schema()}
    return {name: int(number) for name, number in own.items() if number is not None}


def make_right() -> None:
    """Have pyiceberg say this in this process."""
    vars(data_files).update(
        truncate_upper_bound_text_string=upper_bound, data_file_statistics_from_parquet_metadata=statistics
    )
