"""Files of events that could not be decoded: where each was, why, and its bytes."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.errors import SinkError

CAUSE: Final = "_cause"
"""The column that says why an event could not be decoded."""

VERSION: Final = "_version"
"""The column of the schema version that the event named; null: none."""

SUFFIX: Final = ".quarantine"
"""Of Parquet files. This suffix hides them from readers of all `*.parquet` below a table."""


class QuarantineFile:
    """The undecodable events of one split; the file is made with the first one.

    Args:
        folder: staged, and mounted where the driver program runs.
        split: the split's number.
    """

    def __init__(self, folder: str, split: int) -> None:
        self._folder, self._name = Path(folder), f"part-{split:05}-{uuid.uuid4().hex}{SUFFIX}"
        self._writer: pq.ParquetWriter | None = None

    def write(self, events: pa.RecordBatch) -> None:
        """Keep these events; raises `SinkError`."""
        try:
            if self._writer is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._writer = pq.ParquetWriter(self._folder / self._name, events.schema, compression="zstd")
            self._writer.write_batch(events)
        except OSError as error:
            words = f"events cannot be kept aside: {os.strerror(error.errno or 0)}"
            raise SinkError(str(self._folder), words) from error

    def finish(self) -> str:
        """Complete the file, and return its name; empty: no event was kept."""
        if self._writer is None:
            return ""
        self._writer.close()
        return self._name

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._writer is not None:
            self._writer.close()
