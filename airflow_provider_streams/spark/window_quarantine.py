"""What a window of a Parquet table keeps aside: its quarantine, looked at without Spark."""

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
from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.model.sink import ParquetSink, Sink
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.spark.quarantine import CAUSE, SUFFIX, VERSION

_ROWS = 8192
"""Events in memory at a time."""


@dataclass(frozen=True, slots=True)
class WindowQuarantine:
    """The quarantine of one window, where its folder is mounted."""

    folder: Path
    """The window's."""
    fingerprint: str
    """Of the plan that it was read by."""
    landed: Landed | None = None
    """What it holds, if events were decoded again since it was read."""

    @classmethod
    def of(cls, sink: Sink, window: Window) -> WindowQuarantine | None:
        """That of a window; None: the table does not hold it.

        Raises:
            InvalidRequest: a sink of this kind keeps no such events.
            SinkError: it cannot be looked at from here.
        """
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
        """Those of its events."""
        return sorted((self.folder / QUARANTINE).glob(f"*{SUFFIX}"))

    @property
    def events(self) -> int:
        """How many there are."""
        return sum(pq.ParquetFile(file).metadata.num_rows for file in self.files)

    def causes(self) -> Counter[tuple[str, str]]:
        """How many events there are of each cause and schema version; the version is empty where they name none."""
        found: Counter[tuple[str, str]] = Counter()
        for file in self.files:
            for batch in batches_of(file, [CAUSE, VERSION]):
                pairs = zip(batch.column(CAUSE).to_pylist(), batch.column(VERSION).to_pylist(), strict=True)
                found.update((str(cause), str(version or "")) for cause, version in pairs)
        return found

    def first(self, limit: int) -> Iterator[tuple[Path, dict[str, Any]]]:
        """The first events by file, columns by name."""
        left = limit
        for file in self.files:
            for batch in batches_of(file):
                for event in batch.slice(0, left).to_pylist():
                    yield file, event
                left -= min(left, len(batch))
                if not left:
                    return


def batches_of(file: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The events of one file.

    Raises:
        SinkError: it cannot be read.
    """
    try:
        yield from pq.ParquetFile(file).iter_batches(batch_size=_ROWS, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise SinkError(str(file), f"it cannot be read: {error}") from error


def parquet_table(sink: Sink) -> ParquetTable:
    """The table of a sink whose quarantine can be looked at.

    Raises:
        InvalidRequest: it is another kind of sink.
    """
    if not isinstance(sink, ParquetSink):
        raise InvalidRequest(f"the quarantine of a sink of kind {sink.kind!r} is its own matter: look there")
    return ParquetTable(sink.path)
