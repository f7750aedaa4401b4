"""Reads the quarantine of a window in a Parquet table, without Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.lake.parquet.table import PROOF, QUARANTINE, ParquetTable
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.sinks.sink import ParquetSink, Sink
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.quarantine.quarantine_files import CAUSE, SUFFIX, VERSION

_ROWS = 8192
"""Events in memory at a time."""


@dataclass(frozen=True, slots=True)
class WindowQuarantine:
    """The quarantine of one window; its folder is mounted here."""

    folder: Path
    """The window's."""
    fingerprint: str
    """Of the plan that the window was read by."""
    landed: Landed | None = None
    """What the window holds, if events were decoded again since it was read."""

    @classmethod
    def of(cls, sink: Sink, window: Window) -> WindowQuarantine | None:
        """The quarantine of a window; None: the table lacks the window. Raises `InvalidRequest` or `SinkError`."""
        folder = parquet_table(sink).folder_of(window)
        try:
            proof = json.loads((folder / PROOF).read_text())
            landed = proof.get("landed")
            return cls(folder, str(proof["fingerprint"]), None if landed is None else Landed.from_json(landed))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SinkError(str(folder), f"its {PROOF} cannot be read: {error}") from error

    @property
    def files(self) -> list[Path]:
        """The files of its events."""
        return sorted((self.folder / QUARANTINE).glob(f"*{SUFFIX}"))

    @property
    def events(self) -> int:
        """How many there are."""
        return sum(pq.ParquetFile(file).metadata.num_rows for file in self.files)

    def causes(self) -> Counter[tuple[str, str]]:
        """The number of events by cause and schema version; the version is empty if they name none."""
        found: Counter[tuple[str, str]] = Counter()
        for file in self.files:
            for batch in batches_of(file, [CAUSE, VERSION]):
                pairs = zip(batch.column(CAUSE).to_pylist(), batch.column(VERSION).to_pylist(), strict=True)
                found.update((str(cause), str(version or "")) for cause, version in pairs)
        return found

    def first(self, limit: int) -> Iterator[tuple[Path, dict[str, Any]]]:
        """The first events, each with its file, and its columns by name."""
        left = limit
        for file in self.files:
            for batch in batches_of(file):
                for event in batch.slice(0, left).to_pylist():
                    yield file, event
                left -= min(left, len(batch))
                if not left:
                    return


def batches_of(file: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The events of one file; raises `SinkError`."""
    try:
        yield from pq.ParquetFile(file).iter_batches(batch_size=_ROWS, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise SinkError(str(file), f"it cannot be read: {error}") from error


def parquet_table(sink: Sink) -> ParquetTable:
    """The table of a sink whose quarantine can be read. `InvalidRequest`: it is another kind of sink."""
    if not isinstance(sink, ParquetSink):
        raise InvalidRequest(f"only a ParquetSink has a quarantine that can be read here, not a {sink.kind!r} sink")
    return ParquetTable(sink.path)
