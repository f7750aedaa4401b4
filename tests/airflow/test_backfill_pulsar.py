"""A backfill of a real topic with real Spark: every message lands once, whatever was read or failed before."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from airflow.sdk import DAG
from airflow.utils.state import DagRunState

from airflow_provider_streams import ParquetSink, PublishTime, PulsarSource, Window
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.model.window.window import moment_label
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.operators.read import ReadWindowOperator
from stream_servers.waiting import wait_until

pytestmark = [pytest.mark.pulsar, pytest.mark.dagtest, pytest.mark.spark, pytest.mark.timeout(1800)]

LENGTH = timedelta(milliseconds=300)
WINDOWS = 8
SLACK = timedelta(seconds=1)
READER = "orders"


class Published:
    """Numbered messages of eight short windows, and when each was published."""

    def __init__(self, topic: str, start: datetime) -> None:
        self.source = PulsarSource(topic)
        self.span = Window(start, start + WINDOWS * LENGTH)
        self.windows = tuple(Every.through(LENGTH, self.span.start).cells(self.span.start, self.span.end))
        self.at: dict[int, datetime] = {}

    def numbers(self, *windows: Window) -> list[int]:
        """What is in some windows, by the messages' own times."""
        return sorted(
            number for number, at in self.at.items() if any(window.start <= at < window.end for window in windows)
        )

    def states(self) -> list[str]:
        with open_journal() as journal:
            coverage = journal.coverage(self.source.key, READER, self.span.start, self.span.end, LENGTH)
        return [item.state for item in coverage.windows]

    def runs(self) -> list[tuple[Any, ...]]:
        """Every row of the journal: its window's number, DAG, state, rows, and the rows of its receipt."""
        with open_journal() as journal:
            return [
                (number, run.ref.dag_id, run.state, run.rows, run.receipt and run.receipt.rows)
                for number, window in enumerate(self.windows)
                for run in journal.runs(self.source.key, READER, window)
            ]


@pytest.fixture
def published(
    pulsar_server: Any, pulsar_namespace: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> Iterator[Published]:
    """Messages on both sides of the windows' span as well, in three partitions, some in batches."""
    pulsar = pytest.importorskip("pulsar")
    extra = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))
    topic = pulsar_server.create_topic(f"{pulsar_namespace}/orders", 3)
    client = pulsar.Client(pulsar_server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producers = [
        client.create_producer(topic, batching_enabled=False),
        client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=5),
    ]
    now = datetime.now(UTC)
    made = Published(topic, now.replace(microsecond=now.microsecond // 1000 * 1000) + LENGTH / 2)
    end = made.span.end + LENGTH / 2
    number = 0
    while datetime.now(UTC) < end:
        for producer in producers:
            for _ in range(2):
                producer.send_async(b"%d" % number, lambda *_: None, partition_key=f"k{number % 17}")
                number += 1
        time.sleep(0.01)  # the windows are of time: so the messages are spread over it
    for producer in producers:
        producer.flush()
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    while reader.has_message_available():
        message = reader.read_next(10_000)
        made.at[int(message.data())] = datetime.fromtimestamp(0, UTC) + timedelta(
            milliseconds=message.publish_timestamp()
        )
    assert sorted(made.at) == list(range(number))
    wait_until(lambda: datetime.now(UTC) > made.span.end + SLACK, "the last window to be complete")
    yield made
    client.close()


class Lake:
    """Where the windows land, by DAGs that read one window or fill many."""

    def __init__(self, dag_test: Any, published: Published, path: Path, transform: str) -> None:
        self._dag_test, self._published, self._path, self._transform = dag_test, published, path, transform

    def read(self, number: int) -> str:
        """One window by `ReadWindowOperator`; the state of the run."""
        with DAG(f"read_{number}", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
            ReadWindowOperator(task_id="t", window=self._published.windows[number], **self._common())
        return self._dag_test(dag).state

    def fill(self, dag_id: str, end: int = WINDOWS, **arguments: Any) -> dict[str, Any]:
        """The windows up to a number by `BackfillWindowsOperator`; what it returns."""
        windows = self._published.windows[:end]
        span = {"start": windows[0].start.isoformat(), "end": windows[-1].end, "window_length": LENGTH}
        with DAG(dag_id, schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
            BackfillWindowsOperator(task_id="t", **span, **self._common(), **arguments)
        run = self._dag_test(dag)
        assert run.state == DagRunState.SUCCESS
        return run.get_task_instance("t").xcom_pull(task_ids="t")

    def rows(self) -> dict[int, list[int]]:
        """The numbers of the messages in each window's folder."""
        columns = ["value", *WINDOW_COLUMNS]
        table = ds.dataset(self._path, partitioning="hive").to_table(columns=columns)
        windows = self._published.windows
        labels = {(moment_label(one.start), moment_label(one.end)): number for number, one in enumerate(windows)}
        found: dict[int, list[int]] = {number: [] for number in labels.values()}
        for row in table.to_pylist():
            found[labels[row["window_start"], row["window_end"]]].append(int(row["value"]))
        return {number: sorted(values) for number, values in found.items()}

    def _common(self) -> dict[str, Any]:
        return {
            "source": self._published.source,
            "reader": READER,
            "basis": PublishTime(SLACK),
            "sink": ParquetSink(str(self._path)),
            "transform": self._transform,
        }


def test_a_backfill_reads_what_is_missing_and_what_failed_in_one_job_each(dag_test, published, tmp_path, fragile):
    lake = Lake(dag_test, published, tmp_path / "lake", fragile.path)
    assert [lake.read(1), lake.read(4)] == [DagRunState.SUCCESS] * 2
    with fragile.failing():  # in the middle of the Spark job
        assert lake.read(2) == DagRunState.FAILED
    assert published.states() == ["missing", "covered", "failed", "missing", "covered"] + ["missing"] * 3

    missing = lake.fill("missing", end=7, select="missing")
    chosen = [published.windows[number] for number in (0, 2, 3, 5, 6)]
    assert missing["windows"] == missing["covered"] == [str(window) for window in chosen]
    assert (missing["jobs"], missing["verdict"], missing["failures"]) == (1, "complete", {})
    assert missing["rows"] == len(published.numbers(*chosen)) > 0
    assert published.states() == ["covered"] * 7 + ["missing"]

    with fragile.failing():
        assert lake.read(7) == DagRunState.FAILED
    failed = lake.fill("failed", select="failed")
    assert (failed["windows"], failed["jobs"]) == ([str(published.windows[7])], 1)
    assert published.states() == ["covered"] * 8

    assert lake.rows() == {number: published.numbers(window) for number, window in enumerate(published.windows)}
    counts = [len(published.numbers(window)) for window in published.windows]
    by = ["missing", "read_1", "missing", "missing", "read_4", "missing", "missing", "failed"]
    rows = [(number, dag_id, "covered", counts[number], counts[number]) for number, dag_id in enumerate(by)]
    failures = [(2, "read_2", "failed", 0, None), (7, "read_7", "failed", 0, None)]
    assert Counter(published.runs()) == Counter(rows + failures)

    for select in ("missing", "failed"):
        again = lake.fill(f"{select}_again", select=select)
        assert (again["windows"], again["jobs"], again["rows"]) == ([], 0, 0)
    assert len(published.runs()) == len(rows + failures), "nothing was read again"
