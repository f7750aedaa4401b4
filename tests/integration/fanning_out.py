"""Reads a window into many tables as the operator does, without Airflow; as a program, so that a test can kill it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from airflow_provider_streams.airflow_runtime.spark_launch import launch
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.basis import basis_from_json, basis_to_json
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.source_json import source_from_json, source_to_json
from airflow_provider_streams.testing.landing import context_without_spark
from airflow_provider_streams.windows.run.outcome import Outcome
from airflow_provider_streams.windows.run.request import OneWindow, ReadRequest
from airflow_provider_streams.windows.run.window_run import WindowRun

READER = "tests"


class FanOut:
    """A source of many, each with a Parquet table below a folder."""

    def __init__(self, folder: Path, source: Any, options: dict[str, str], basis: Any) -> None:
        self.folder, self.source, self.options, self.basis = folder, source, options, basis
        self.jobs = 0

    @property
    def journal_url(self) -> str:
        return f"sqlite:///{self.folder / 'journal.db'}"

    @property
    def sink(self) -> ParquetSink:
        return ParquetSink(f"{self.folder}/lake/{{topic}}")

    def place(self, journal: Journal) -> Any:
        def spark(work: Any) -> Any:
            self.jobs += 1
            return launch(work)

        return replace(context_without_spark(journal, self.source.system, self.options), spark=spark)

    def read(self, window: Window, run: str = "run", attempt: int = 1, **how: Any) -> Outcome:
        """One try of a task that reads a window."""
        with Journal.open(self.journal_url) as journal, journal.kept_open():
            request = ReadRequest(
                self.source,
                READER,
                OneWindow(window, lambda other: other.run_id == run),
                TaskInstanceKey("dag", run, "read", attempt),
                basis=self.basis,
                on_loss=how.get("on_loss", "fail"),
                undecodable=how.get("then", DecodeErrorPolicy()),
                tables=self.sink,
            )
            return self.run(journal, request)

    def run(self, journal: Journal, request: ReadRequest) -> Outcome:
        """One run of any task."""
        run = WindowRun(self.place(journal), request)
        return run.land(run.prepare(), lambda *_: None)

    def start(self, window: Window, run: str = "run") -> subprocess.Popen[bytes]:
        """The same in a process of its own."""
        asked = {
            "folder": str(self.folder),
            "source": source_to_json(self.source),
            "options": self.options,
            "basis": basis_to_json(self.basis),
            "window": str(window),
            "run": run,
        }
        return subprocess.Popen([sys.executable, "-m", "tests.integration.fanning_out", json.dumps(asked)])

    def landed(self) -> set[str]:
        """The tables that have a window."""
        # not the folders of an exchange, which may vanish meanwhile
        tables = (path for path in self.folder.glob("lake/*") if not path.name.startswith("."))
        return {table.name for table in tables if any(table.glob("window_start=*"))}

    def rows(self, table: str) -> list[dict[str, Any]]:
        files = sorted((self.folder / "lake" / table).glob("window_start=*/window_end=*/*.parquet"))
        return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]

    def counts(self, table: str, column: str) -> Counter[Any]:
        """How often each value of a column is in a table."""
        return Counter(row[column] for row in self.rows(table))

    def states(self, source: Any, window: Window) -> list[str]:
        with Journal.open(self.journal_url) as journal:
            return [one.state for one in journal.coverage(source.key, READER, window.start, window.end).windows]


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    one = FanOut(
        Path(given["folder"]), source_from_json(given["source"]), given["options"], basis_from_json(given["basis"])
    )
    one.read(Window.parse(given["window"]), given["run"])
