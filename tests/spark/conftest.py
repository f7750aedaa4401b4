"""One Spark session for all tests of this folder, and plans of the fake system for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_streams.model.circuit_breaker import CircuitBreaker
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.datasource.windows_source import NUMBER_COLUMN
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from airflow_provider_streams.spark.job.open_systems import OpenSystems
from airflow_provider_streams.spark.job.plan_reading import TablesRead, frame_of_tables
from airflow_provider_streams.spark.job.scan import Scan
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem, dump
from tests.spark import acknowledged

# PySpark 4.2 warns about pandas 3, which no test here uses; py4j leaves its sockets to the collector.
_IGNORED = ("ignore:PySpark does not yet fully support pandas:FutureWarning", "ignore::ResourceWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)
            for ignored in _IGNORED:
                item.add_marker(pytest.mark.filterwarnings(ignored))


@pytest.fixture(scope="session")
def spark():
    from pyspark import SparkContext

    from airflow_provider_streams.spark.launch.embedded import embedded_session
    from airflow_provider_streams.spark.settings.spark_settings import SparkSettings

    # tests import their transforms from here, and so must the workers
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(Path(__file__).parent)]))
    sys.path.insert(0, str(Path(__file__).parent))
    conf = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
    if SparkContext._active_spark_context is not None:  # of a task that ran in this process
        embedded_session().stop()
    session = embedded_session(SparkSettings(conf), quick_start=True)
    yield session
    session.stop()


TERMS = TableTerms(TableMark("spark-tests", FakeSource().key, "tests"))
"""Tables belong to one reader."""


@dataclass
class Stream:
    """A fake stream, described by a file that every process reads."""

    truth: Path
    facts: dict[str, Any] = field(default_factory=dict)
    token: str = ""

    def set(self, **facts: Any) -> None:
        """Change what the server holds from now on."""
        self.facts |= facts
        dump(self.truth, **self.facts)

    @property
    def options(self) -> dict[str, str]:
        return {"truth": str(self.truth)} | ({"token": self.token} if self.token else {})

    @property
    def system(self) -> FakeSystem:
        return FakeSystem.from_options(self.options)

    def plan(self, start_minute: float = 10, end_minute: float = 20, **request: Any) -> Plan:
        window = Window(EPOCH + timedelta(minutes=start_minute), EPOCH + timedelta(minutes=end_minute))
        return self.system.plan(PlanRequest(FakeSource(), window, "tests", **{"target_split_bytes": 4000, **request}))

    def empty_plan(self) -> Plan:
        """The default plan's window, of a stream that ends before its slack."""
        self.set(events=540, now="2026-11-20T11:00:00+00:00")
        return self.plan()

    def spec(self, plan: Plan | None = None, **how: Any) -> WindowSpec:
        if how.get("sink") is not None:
            how = {"terms": TERMS, **how}
        return WindowSpec(plan or self.plan(), options=self.options, **how)

    @property
    def numbers(self) -> list[tuple[str, int]]:
        """The events of the default plan: `(shard, number)`, sorted."""
        return [(f"numbers-{shard}", number) for shard in range(2) for number in range(600, 1200)]


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """2 shards of 3,000 events, one per second; the default plan holds 600 of each."""
    made = Stream(tmp_path / "truth.json")
    made.set(events=3000)
    return made


@pytest.fixture(scope="session")
def real_streams(pulsar_server, pravega_server) -> Iterator[dict[str, acknowledged.Acknowledged]]:
    """A window of each system, and what its server acknowledged of it."""
    pulsar_server.create_namespace(namespace := f"public/{acknowledged.fresh('spark')}")
    yield {
        "pulsar": acknowledged.of_pulsar(pulsar_server, namespace),
        "pravega": acknowledged.of_pravega(pravega_server, acknowledged.fresh("spark")),
    }
    pulsar_server.delete_namespace(namespace)


def read_of(spec: WindowSpec, spark: Any) -> tuple[Any, Callable[[], list[SplitReceipt]]]:
    """The rows of a window as a job without a transform reads them, and its receipts after the first action."""
    job = JobSpec((spec,))
    if not job.is_small:
        scan = Scan(job.specs, spark)
        return scan.df.drop(NUMBER_COLUMN), lambda: scan.receipts()[0]
    with closing(OpenSystems.of(spec)) as systems:
        read = TablesRead(job.specs, systems, CircuitBreaker(several=False))
    return frame_of_tables(job, read.tables, spark), lambda: read.receipts[0]


WAYS = {"driver": 1 << 25, "tasks": 0}
"""`small_plan_bytes` that choose the two ways to read."""


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> int:
    return WAYS[request.param]
