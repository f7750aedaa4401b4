"""Which tables can be kept in order, and by what: one class per kind of table and act. Loads no client."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.landing import TableMark
from airflow_provider_streams.model.placeholders import is_fan_out
from airflow_provider_streams.model.sink import Sink

if TYPE_CHECKING:
    from airflow_provider_streams.lake.compaction import CompactableTable
    from airflow_provider_streams.lake.expiry import ExpirableTable

COMPACTABLE: dict[str, str] = {
    "delta": "airflow_provider_streams.lake.delta.compaction:CompactableDelta",
    "iceberg": "airflow_provider_streams.lake.iceberg.compaction:CompactableIceberg",
}
"""A sink's kind to the dotted path of what rewrites its table's files, imported when used."""

EXPIRABLE: dict[str, str] = {
    "delta": "airflow_provider_streams.lake.delta.expiry:ExpirableDelta",
    "iceberg": "airflow_provider_streams.lake.iceberg.expiry:ExpirableIceberg",
    "parquet": "airflow_provider_streams.lake.parquet.expiry:ExpirableParquet",
}
"""A sink's kind to the dotted path of what lets go of its table's past, imported when used."""

TARGET_FILE_BYTES: Final = 512 * 1024 * 1024
"""Of a file, as landings write them."""

LEAST_KEEP: Final = timedelta(hours=1)
"""So long may a read of a table take, or an attempt to change it."""

MOST_KEEP: Final = timedelta(days=36500)
"""So far back there are dates, and no table."""


def compactable(sink: Sink, mark: TableMark) -> CompactableTable:
    """A sink's table, whose files can be rewritten.

    Raises:
        InvalidRequest: they cannot.
    """
    check_compaction(sink)
    made: CompactableTable = _class_at(COMPACTABLE[sink.kind])(sink, mark)
    return made


def expirable(sink: Sink, mark: TableMark) -> ExpirableTable:
    """A sink's table, which has a past.

    Raises:
        InvalidRequest: it has none that is known here.
    """
    check_expiry(sink, LEAST_KEEP)
    made: ExpirableTable = _class_at(EXPIRABLE[sink.kind])(sink, mark)
    return made


def check_compaction(sink: Sink, file_bytes: int = TARGET_FILE_BYTES) -> None:
    """See that a sink's table can be compacted into files of a size.

    Raises:
        InvalidRequest: it cannot.
    """
    if type(file_bytes) is not int or file_bytes < 1:
        raise InvalidRequest(f"target_file_bytes is a number of bytes, not {file_bytes!r}")
    _check_one_table(sink)
    if sink.kind not in COMPACTABLE:
        raise InvalidRequest(
            f"{sink.asset_uri}: a table of kind {sink.kind!r} is not compacted here, but by who writes its files; "
            f"known: {', '.join(sorted(COMPACTABLE))}"
        )


def check_expiry(sink: Sink, keep: object) -> None:
    """See that what a sink's table replaced so long ago may go.

    Raises:
        InvalidRequest: it may not.
    """
    _check_one_table(sink)
    if sink.kind not in EXPIRABLE:
        raise InvalidRequest(
            f"{sink.asset_uri}: nothing expires here of a table of kind {sink.kind!r}, but by who writes its files; "
            f"known: {', '.join(sorted(EXPIRABLE))}"
        )
    if not isinstance(keep, timedelta):
        raise InvalidRequest(f"keep is a time like timedelta(days=7), not {keep!r}")
    if keep > MOST_KEEP:
        raise InvalidRequest(f"keep={keep} is longer than any table has been there: {MOST_KEEP.days} days at most")
    if keep < LEAST_KEEP:
        raise InvalidRequest(
            f"keep={keep} is too short: a read of the table, or an attempt to change it, may need what was there when "
            f"it began, for {LEAST_KEEP} at least"
        )


def _check_one_table(sink: Sink) -> None:
    if is_fan_out(sink):
        raise InvalidRequest(
            f"{sink.asset_uri} is a table for each topic or stream: name the table that is to be kept in order, each "
            "in a task of its own"
        )


def _class_at(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
