"""Lands a window of any table as a job does, and kills itself at a named step: what a `kill -9` does there.

python -m tests.integration.lake.killed_landing <sink, options, step, as JSON>
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.files import WindowFiles
from airflow_provider_streams.lake.writer import TableWriter
from airflow_provider_streams.model.landing import TableMark, TableTerms
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.spark.sinks import sink_from_json, writer_of

STEPS = ("writing", "committing", "committed")
"""Files are being written; all are, and all that is judged; the window is in place."""
MARK = TableMark("a" * 32, "pulsar://shop/orders", "d.read")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ACTS = {
    "iceberg": ("pyiceberg.table", "Transaction", "commit_transaction"),
    "delta": ("deltalake", "DeltaTable", "create_write_transaction"),
    "parquet": ("airflow_provider_streams.lake.parquet.table", None, "replace_folder"),
}
"""What puts a window in place, by the kind of table."""


def window(number: float, hours: float = 1) -> Window:
    return Window(NOON + timedelta(hours=number), NOON + timedelta(hours=number + hours))


def land(sink: Sink, where: Window, ids: list[int], **terms: Any) -> None:
    """Two tasks write, and the driver commits."""
    rows = pa.table({"id": pa.array(ids, pa.int64())})
    writer: Any = writer_of(sink, where, TableTerms(MARK, **terms))
    assert isinstance(writer, TableWriter)
    try:
        target = writer.open(rows.schema)
        files = []
        half = -(-len(ids) // 2)
        for part in (rows.slice(0, half), rows.slice(half)):
            task = WindowFiles(target)
            for batch in part.to_batches():
                task.write(batch)
            files += task.finish()
        writer.commit(files, Receipt(f"plan of {ids}", (SplitReceipt(0, rows=len(ids)),), 1.0, "complete"))
    finally:
        writer.discard()


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_around(owner: Any, name: str, *, before: bool) -> None:
    """At the first call of a function, before it does anything, or after it did all."""
    original = getattr(owner, name)

    def act(*arguments: Any, **named: Any) -> None:
        if not before:
            original(*arguments, **named)
        die()

    setattr(owner, name, act)


def land_and_die(told: dict[str, Any]) -> None:
    sink, step = sink_from_json(told["sink"]), told["step"]
    module, owner, name = ACTS[sink.kind]
    holder = importlib.import_module(module)
    if step == "writing":
        die_around(pq.ParquetWriter, "close", before=True)
    else:
        die_around(getattr(holder, owner) if owner else holder, name, before=step == "committing")
    with given("store", told["options"]):
        land(sink, window(*told["window"]), told["ids"], **told["terms"])


def main() -> None:
    jobs = json.loads(sys.argv[1])
    for one in jobs:
        importlib.import_module(ACTS[one["sink"]["kind"]][0])  # once, for all of them
        child = os.fork()
        if not child:
            land_and_die(one)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, one["step"]


if __name__ == "__main__":
    main()
