"""Landing a window: files that tasks write, against rows that cross into Spark, and what reading alone takes.

Each in a JVM that is started as the product starts it for such work: tasks that write leave it nothing to compile well.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.spark import register
from airflow_provider_streams.spark.datasource.windows_source import NUMBER_COLUMN
from airflow_provider_streams.spark.job.job_spec import WindowSpec
from airflow_provider_streams.spark.job.scan import Scan
from airflow_provider_streams.spark.launch.embedded import embedded_session
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings
from stream_servers.pravega import PravegaServer
from tests.bench import pravega_reads, pulsar_load, pulsar_reads
from tests.bench.processes import cpu_seconds
from tests.bench.report import race, show
from tests.spark.running import run_window

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_streams.model.sinks.sink import Sink


_TERMS = TableTerms(TableMark("bench", "bench", "bench"))
_ROW_BY_ROW = "rows cross one by one, Spark writes"
_IN_BLOCKS = "rows cross in blocks, Spark writes"

SinkIn = Callable[[str], tuple["Sink", dict[str, str]]]
"""A sink in a folder, and how its table is reached."""


def run(scale: float) -> None:
    """Both systems, small events and large ones."""
    with _other_process() as other:
        sessions = _Sessions(_session(quick_start=False), other)
        _pulsar(sessions, scale)
        _pravega(sessions, scale)
        sessions.spark.stop()


def _session(*, quick_start: bool) -> SparkSession:
    spark = embedded_session(SparkSettings({"spark.master": "local[2]"}), quick_start=quick_start)
    register(spark)
    return spark


class _Other:
    """A process with a session of its own, in which tasks write what they read."""

    def __init__(self, pid: int, pipe: Connection) -> None:
        self.pid, self._pipe = pid, pipe

    def land(self, spec: WindowSpec, sink_in: SinkIn) -> int:
        """How many rows."""
        self._pipe.send((spec, sink_in))
        rows: int = self._pipe.recv()
        return rows


class _Sessions(NamedTuple):
    """Spark in this process, whose JVM takes rows, and in another one."""

    spark: SparkSession
    other: _Other


@contextmanager
def _other_process() -> Iterator[_Other]:
    fresh = get_context("spawn")  # a JVM of this process would be the fork's as well
    here, there = fresh.Pipe()
    process = fresh.Process(target=_serve, args=(there,))
    process.start()
    there.close()  # else its end would not be seen here
    assert process.pid is not None
    try:
        yield _Other(process.pid, here)
        here.send(None)
    finally:
        here.close()
        process.join()


def _serve(pipe: Connection) -> None:
    spark = _session(quick_start=True)
    while ask := pipe.recv():
        pipe.send(_by_tasks(spark, *ask))
    spark.stop()


def _pulsar(sessions: _Sessions, scale: float) -> None:
    small, large = int(2_000_000 * scale), int(300_000 * scale)
    loads = (
        pulsar_load.Load("small", small, 100),
        pulsar_load.Load("small-keyed", small, 100, keyed=True),
        pulsar_load.Load("large", large, 1000),
        pulsar_load.Load("large-keyed", large, 1000, keyed=True),
    )
    for load in loads:
        with pulsar_load.roomy_server() as server:
            pulsar_load.publish(server, load)
            whole = pulsar_reads.plan_all(server, load)
            halves = pulsar_reads.plan_all(server, load, split_bytes=whole.estimate.bytes // 2 + 1)
            read = partial(pulsar_reads.read_ours, server, whole)
            title = f"Pulsar, {load.name}: {load.events:,} events of {load.event_bytes} B"
            spec = WindowSpec(halves, options=pulsar_reads.options(server), small_plan_bytes=0)
            _race(title, sessions, spec, read, load.event_bytes)


def _pravega(sessions: _Sessions, scale: float) -> None:
    loads = (
        pravega_reads.Load("small", int(1_500_000 * scale), 100, segments=2),
        pravega_reads.Load("large", int(150_000 * scale), 1024, segments=2),
    )
    with (
        PravegaServer(heap="4g", cache_bytes=3 << 29) as server,
        pravega_reads.started_peer(server) as peer,
    ):
        server.create_scope("bench")
        for load in loads:
            pravega_reads.publish(server, peer, load)
            plan = pravega_reads.plan_all(server, load)
            read = partial(pravega_reads.read_ours, server, plan)
            title = f"Pravega, {load.name}: {load.events:,} events of {load.event_bytes} B"
            spec = WindowSpec(plan, options=pravega_reads.options(server), small_plan_bytes=0)
            _race(title, sessions, spec, read, load.event_bytes)


def _race(
    title: str,
    sessions: _Sessions,
    spec: WindowSpec,
    read: Callable[[], int],
    event_bytes: int,
) -> None:
    spark, other = sessions
    contenders = {
        _ROW_BY_ROW: partial(_row_by_row, spark, spec),
        _IN_BLOCKS: partial(_in_blocks, spark, spec),
        "tasks write Parquet": partial(other.land, spec, _parquet),
        "tasks write Iceberg": partial(other.land, spec, _iceberg),
        "tasks write Delta": partial(other.land, spec, _delta),
        "Spark reads, noop": partial(_noop, spark, spec),
        "reader to Arrow, one process": read,
    }
    figures = race(contenders, cpu_seconds=partial(_cpu_seconds, sessions))
    assert len({figure.events for figure in figures.values()}) == 1
    title = f"{title}, {len(spec.plan.splits)} tasks"
    show(
        title,
        figures,
        against={"x row by row": _ROW_BY_ROW, "x blocks": _IN_BLOCKS},
        event_bytes=event_bytes,
        cpu_of="all",
    )


def _cpu_seconds(sessions: _Sessions) -> float:
    """Of the drivers, of Spark and of its Python workers: the servers' is not counted."""
    gateway: Any = sessions.spark.sparkContext._gateway
    return time.process_time() + cpu_seconds(gateway.proc.pid) + cpu_seconds(sessions.other.pid)


def _row_by_row(spark: SparkSession, spec: WindowSpec) -> int:
    """As Spark's own writer lands what a Data Source reads, with receipts among the rows."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    asked = {**spec.options, "plan": json.dumps(spec.plan.to_json()), "receipt": "true"}
    rows = spark.read.format(spec.plan.source.system).options(**asked).load()
    seen = Observation()
    rows = rows.observe(seen, F.collect_list("_receipt").alias("receipts")).filter("_receipt is null").drop("_receipt")
    _write(rows)
    return sum(json.loads(text)["rows"] for text in seen.get["receipts"])


def _in_blocks(spark: SparkSession, spec: WindowSpec) -> int:
    """As our jobs hand rows to Spark's writer."""
    scan = Scan((spec,), spark)
    _write(scan.df.drop(NUMBER_COLUMN))
    return sum(one.rows for one in scan.receipts()[0])


def _write(rows: DataFrame) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows.write.option("compression", "zstd").parquet(f"file://{folder}/rows")


def _by_tasks(spark: SparkSession, spec: WindowSpec, sink_in: SinkIn) -> int:
    with tempfile.TemporaryDirectory() as folder:
        sink, table = sink_in(folder)
        return run_window(replace(spec, sink=sink, terms=_TERMS, table=table), spark).receipt.rows


def _parquet(folder: str) -> tuple[Sink, dict[str, str]]:
    return ParquetSink(folder), {}


def _delta(folder: str) -> tuple[Sink, dict[str, str]]:
    return DeltaSink(f"{folder}/events"), {}


def _iceberg(folder: str) -> tuple[Sink, dict[str, str]]:
    catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}
    return IcebergSink("bench.events", conn_id="bench"), catalog


def _noop(spark: SparkSession, spec: WindowSpec) -> int:
    return run_window(spec, spark).receipt.rows
