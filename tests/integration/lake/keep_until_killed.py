"""Compacts or expires tables, and is killed at a step: one process for each, so that none outlives what it did."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from airflow_provider_streams.lake import compaction, snapshot_expiry
from airflow_provider_streams.lake.data_files import WindowFiles
from airflow_provider_streams.lake.delta import vacuum as delta_expiry
from airflow_provider_streams.lake.delta.compaction import CompactableDelta
from airflow_provider_streams.lake.iceberg import snapshot_expiry as iceberg_expiry
from airflow_provider_streams.lake.iceberg.compaction import CompactableIceberg
from tests.integration.lake.kept_tables import MEGABYTE, KeptTable, compactable, now, table_in
from tests.integration.lake.landing import TERMS, hour

STEPS = (
    "a file is written",
    "the commit came through",
    "the past is forgotten",
    "a file is removed",
)


def end(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def then_end(function: Any) -> Any:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        function(*arguments, **named)
        end()

    return wrapped


def arm(step: str) -> None:
    """The process ends when it is done with a step."""
    tables = (CompactableDelta, CompactableIceberg)
    match step:
        case "a file is written":
            WindowFiles.finish = then_end(WindowFiles.finish)
        case "the commit came through":
            for table in tables:
                table.replace = then_end(table.replace)
        case "the past is forgotten":
            iceberg_expiry.remove = delta_expiry.remove = end
        case "a file is removed":
            iceberg_expiry.remove = delta_expiry.remove = _remove_one


def _remove_one(storage: Any, files: Any) -> None:
    snapshot_expiry.remove(storage, files[:1])
    if files:
        end()


def live(table: KeptTable, step: str) -> None:
    """What is landed here is what must be there afterwards."""
    table.land(hour(0), 0, 10)
    table.land(hour(0), 200, 6)
    arm(step)
    compaction.compact(compactable(table.sink, TERMS.mark), {hour(0): 6}, MEGABYTE)
    table.expire(now())


if __name__ == "__main__":
    for number, step in enumerate(STEPS):
        child = os.fork()  # nothing was used yet: no library has a thread
        if not child:
            with table_in(sys.argv[1], Path(sys.argv[2]) / str(number)) as table:
                live(table, step)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else f"step {step!r}: {status}", flush=True)
