"""A backfill of a real stream over recorded cuts with real Spark: every event lands once, across a split."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.dataset as ds
import pytest
from airflow.sdk import DAG
from airflow.utils.state import DagRunState

from airflow_provider_streams import ParquetSink, PravegaSource
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.operators.cuts import RecordCutsOperator
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.systems.pravega.operations import scaling
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from stream_servers.waiting import wait_until

pytestmark = [pytest.mark.pravega, pytest.mark.dagtest, pytest.mark.spark, pytest.mark.timeout(1800)]

WINDOWS = 8
READER = "orders"
FIRST_DAY = datetime(2026, 11, 1, tzinfo=UTC)


def one_task(dag_id: str, operator: type, **arguments: Any) -> DAG:
    with DAG(dag_id, schedule=None, start_date=FIRST_DAY) as dag:
        operator(task_id="t", **arguments)
    return dag


class Writing(threading.Thread):
    """Writes numbered events one after the other, and splits the stream in the middle, until it must end."""

    def __init__(self, hook: PravegaHook, stream: str) -> None:
        super().__init__(daemon=True)
        self._hook, self._stream = hook, stream
        self.ended = threading.Event()
        self.count = 0
        self.segments = 0

    def run(self) -> None:
        with PravegaWriter(self._hook.client.endpoint, self._stream) as writer:
            while not self.ended.wait(0.01):
                writer.write([(f"k{self.count % 17}", b"%d" % self.count)])
                self.count += 1
                if self.count == 40:
                    self.segments = len(self._hook.scale(self._stream, scaling.split(0)))


@pytest.fixture
def hook(pravega_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[PravegaHook]:
    """The connection `pravega_default` is the server; the journal is empty."""
    extra = {"controller": pravega_server.controller_uri}
    monkeypatch.setenv("AIRFLOW_CONN_PRAVEGA_DEFAULT", json.dumps({"conn_type": "pravega", "extra": extra}))
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))
    with closing(PravegaHook()) as made:
        yield made


class Recorded:
    """A stream whose cuts a DAG recorded while it was written to; the windows between its first and its last one."""

    def __init__(self, dag_test: Any, hook: PravegaHook, stream: str, landing: dict[str, Any]) -> None:
        self._dag_test, self._landing = dag_test, landing
        self.source = PravegaSource(stream)
        self._record("before")
        writing = Writing(hook, stream)
        writing.start()
        often = {"every": timedelta(seconds=0.1), "duration": timedelta(seconds=2), "deferrable": True}
        self._record("meanwhile", **often)
        wait_until(lambda: writing.count > 80, "events after the split")
        writing.ended.set()
        writing.join(600)
        assert not writing.is_alive()
        assert writing.segments == 2, "the stream was split meanwhile"
        self._record("after")
        self.count = writing.count
        with open_journal() as journal:
            cuts = journal.recorded_cuts(self.source.key, 1000)
        start, end = cuts[0].sampled_from, cuts[-1].sampled_from
        self.length = (end - start) // WINDOWS
        self.windows = tuple(Every.through(self.length, start).cells(start, start + WINDOWS * self.length))

    def _record(self, dag_id: str, **how: Any) -> None:
        run = self._dag_test(one_task(dag_id, RecordCutsOperator, sources=self.source, **how))
        assert run.state == DagRunState.SUCCESS

    def read(self, number: int) -> str:
        """One window by `ReadWindowOperator`; the state of the run."""
        how = {"window": self.windows[number], **self._common()}
        return self._dag_test(one_task(f"read_{number}", ReadWindowOperator, **how)).state

    def fill(self, dag_id: str, select: str, end: int = WINDOWS) -> dict[str, Any]:
        """The windows up to a number by `BackfillWindowsOperator`; what it returns."""
        span = {"start": self.windows[0].start, "end": self.windows[end - 1].end, "window_length": self.length}
        run = self._dag_test(one_task(dag_id, BackfillWindowsOperator, **span, select=select, **self._common()))
        assert run.state == DagRunState.SUCCESS
        return run.get_task_instance("t").xcom_pull(task_ids="t")

    def _common(self) -> dict[str, Any]:
        return {"source": self.source, "reader": READER, "basis": "append", **self._landing}

    def landed(self) -> Counter[int]:
        table = ds.dataset(self._landing["sink"].path, partitioning="hive").to_table(columns=["event"])
        return Counter(int(value) for value in table["event"].to_pylist())

    def runs(self) -> list[tuple[Any, ...]]:
        """Every row of the journal: its window's number, DAG, state, and whether its receipt agrees with its rows."""
        with open_journal() as journal:
            return [
                (number, run.ref.dag_id, run.state, run.receipt is not None and run.receipt.rows == run.rows)
                for number, window in enumerate(self.windows)
                for run in journal.runs(self.source.key, READER, window)
            ]


@pytest.mark.slow
def test_a_backfill_over_recorded_cuts_reads_what_is_missing_and_what_failed(
    dag_test, hook, pravega_server, pravega_scope, fragile
):
    stream = pravega_server.create_stream(pravega_scope, "orders")
    landing = {"sink": ParquetSink(f"{fragile.folder}/lake"), "transform": fragile.path}
    recorded = Recorded(dag_test, hook, stream, landing)
    assert [recorded.read(1), recorded.read(4)] == [DagRunState.SUCCESS] * 2
    with fragile.failing():  # in the middle of the Spark job
        assert recorded.read(2) == DagRunState.FAILED

    missing = recorded.fill("missing", "missing", end=7)
    assert missing["covered"] == [str(recorded.windows[number]) for number in (0, 2, 3, 5, 6)]
    assert (missing["jobs"], missing["verdict"], missing["failures"]) == (1, "complete", {})
    with fragile.failing():
        assert recorded.read(7) == DagRunState.FAILED
    failed = recorded.fill("failed", "failed")
    assert (failed["covered"], failed["jobs"]) == ([str(recorded.windows[7])], 1)

    assert recorded.landed() == Counter(range(recorded.count)), "every event once"
    by = ["missing", "read_1", "missing", "missing", "read_4", "missing", "missing", "failed"]
    rows = [(number, dag_id, "covered", True) for number, dag_id in enumerate(by)]
    failures = [(2, "read_2", "failed", False), (7, "read_7", "failed", False)]
    assert Counter(recorded.runs()) == Counter(rows + failures)

    for select in ("missing", "failed"):
        again = recorded.fill(f"{select}_again", select)
        assert (again["windows"], again["jobs"], again["rows"]) == ([], 0, 0)
    assert len(recorded.runs()) == len(rows + failures), "nothing was read again"
