"""Whose a Delta table is, and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from airflow_provider_streams.lake.delta.storage import check_free, storage_of
from airflow_provider_streams.lake.delta.table_version import DeltaVersion
from airflow_provider_streams.lake.delta.transaction_log import load
from airflow_provider_streams.lake.folder_overlap import check_mounted
from airflow_provider_streams.lake.table_properties import unowned
from airflow_provider_streams.model.sinks.landing import TableState
from airflow_provider_streams.model.sinks.sink import DeltaSink
from airflow_provider_streams.model.window.window import Window


def read_state(sink: DeltaSink, windows: Callable[[DeltaVersion], Iterable[Window]]) -> TableState | None:
    """See `SinkWriter.read_state`; `windows` tells which a version holds."""
    storage = storage_of(sink)
    version = load(storage)
    if version is None:
        if storage.is_local:
            check_mounted(storage.root, Path(storage.open()[1]))
        check_free(storage)
        return None
    if version.mark is None and not version.is_empty:
        raise unowned(sink.path)
    return None if version.mark is None else TableState(version.mark, frozenset(windows(version)))
