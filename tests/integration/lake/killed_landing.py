"""Lands a window of any table as a job does, and kills itself at a named step: what a `kill -9` does there.

python -m tests.integration.lake.killed_landing <sink, options, step, as JSON>
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.registry import sink_from_json
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.window.window import Window
from tests.integration.lake import landing

STEPS = ("writing", "committing", "committed")
"""Files are being written; all are, and all that is judged; the window is in place."""
EXCHANGED = "exchanged"
"""Of a folder: the window is in place, and what it was is still there."""
ACTS = {
    "iceberg": ("pyiceberg.table", "Transaction", "commit_transaction"),
    "delta": ("deltalake", "DeltaTable", "create_write_transaction"),
    "parquet": ("airflow_provider_streams.lake.parquet.table", None, "replace_folder"),
}
"""What puts a window in place, by the kind of table."""


def land(sink: Sink, window: Window, ids: list[int], type_: str = "int64", **terms: Any) -> None:
    """Two tasks write, and the driver commits."""
    landing.land(sink, window, pa.table({"id": pa.array(ids, type_)}), **terms)


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
    if step == EXCHANGED:
        die_around(shutil, "rmtree", before=True)
    elif step == "writing":
        die_around(pq.ParquetWriter, "close", before=True)
    else:
        die_around(getattr(holder, owner) if owner else holder, name, before=step == "committing")
    terms = told["terms"]
    if "mark" in terms:
        terms["mark"] = replace(landing.TERMS.mark, id=terms["mark"])
    with given("store", told["options"]):
        land(sink, landing.hour(*told["window"]), told["ids"], **terms)


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
