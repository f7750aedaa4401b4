"""Pulsar: to Arrow, through Spark, and the cost of a tiny window by phase."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_streams import ParquetSink
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.spark import register
from airflow_provider_streams.spark.job.job_spec import WindowSpec
from airflow_provider_streams.spark.launch.embedded import embedded_session
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings
from stream_servers.pulsar import PulsarServer
from tests.bench.pulsar_load import Load, publish, roomy_server
from tests.bench.pulsar_reads import options, plan_all, read_client, read_ours, read_raw
from tests.bench.report import race, show
from tests.spark.running import run_window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_streams.model.plan.plan import Plan


def loads(scale: float) -> tuple[Load, ...]:
    """The topics; `scale` 1 is about 0.5 GB in all."""
    small, large = int(1_000_000 * scale), int(150_000 * scale)
    return (
        Load("small", small, 100),
        Load("small-keyed", small, 100, keyed=True),
        Load("large", large, 1000),
        Load("large-keyed", large, 1000, keyed=True),
        Load("small-tens", small // 4, 100, batch=10),
    )


def run(scale: float) -> None:
    """Start a broker, fill it, race."""
    with roomy_server() as server:
        topics = loads(scale)
        for load in topics:
            print(f"publishing {load.events:,} events of {load.event_bytes} B to {load.name}", flush=True)
            publish(server, load)
        for load in topics:
            _to_arrow(server, load)
        spark = embedded_session(SparkSettings({"spark.master": "local[2]"}), quick_start=False)
        register(spark)
        for load in topics[:4]:
            _through_spark(server, spark, load)
        _tiny_window(server, spark)
        spark.stop()


def _to_arrow(server: PulsarServer, load: Load) -> None:
    plan = plan_all(server, load)
    contenders = {
        "pulsar-client to Arrow": partial(read_client, server, load),
        "our reader to Arrow": partial(read_ours, server, plan),
        "raw socket (nothing decoded)": partial(read_raw, server, load, plan),
    }
    title = f"{load.name}: {load.events:,} events of {load.event_bytes} B, {load.batch} per entry"
    against = {"x client": "pulsar-client to Arrow", "x raw": "raw socket (nothing decoded)"}
    show(title, race(contenders), against=against, event_bytes=load.event_bytes)


def _through_spark(server: PulsarServer, spark: SparkSession, load: Load) -> None:
    whole = plan_all(server, load)
    halves = plan_all(server, load, split_bytes=whole.estimate.bytes // 2 + 1)
    contenders = {
        f"our Spark read, {len(plan.splits)} task(s), noop": partial(_spark_noop, server, spark, load, plan)
        for plan in (whole, halves)
    }
    one_task = next(iter(contenders))
    show(
        f"{load.name} through Spark local[2]",
        race(contenders),
        against={"x 1 task": one_task},
        event_bytes=load.event_bytes,
        cpu_of="driver",  # the tasks' processes are not counted
    )


def _spark_noop(server: PulsarServer, spark: SparkSession, load: Load, plan: Plan) -> int:
    spec = WindowSpec(plan, options=options(server), small_plan_bytes=0)
    assert run_window(spec, spark).receipt.rows == load.events
    return load.events


def _tiny_window(server: PulsarServer, spark: SparkSession) -> None:
    """Start to receipt of 2,000 events, warm session: plan, read and prove, land."""
    load = Load("tiny", 2_000, 100)
    publish(server, load)
    phases: dict[str, float] = {}
    began = time.perf_counter()
    plan = plan_all(server, load)
    phases["plan"] = time.perf_counter() - began
    for way, limit in (("in the driver", 1 << 30), ("Data Source", 0)):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            spec = WindowSpec(plan, options=options(server), small_plan_bytes=limit)
            run_window(spec, spark)
            phases[f"read and prove, {way}"] = time.perf_counter() - began
            began = time.perf_counter()
            terms = TableTerms(TableMark("bench", "tiny", "bench"))
            how = WindowSpec(plan, ParquetSink(folder), options=options(server), small_plan_bytes=limit, terms=terms)
            run_window(how, spark)
            phases[f"read, prove and land, {way}"] = time.perf_counter() - began
    print("\ntiny window: 2,000 events, Spark session warm")
    for phase, seconds in phases.items():
        print(f"  {phase:<42}{seconds:>7.2f} s   {seconds / phases['plan']:>6.1f} x plan", flush=True)
