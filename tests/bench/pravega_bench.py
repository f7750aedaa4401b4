"""Pravega: to Arrow and through Spark, against Pravega's own batch client and the bare bytes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_streams.spark import register
from airflow_provider_streams.spark.job.job_spec import WindowSpec
from airflow_provider_streams.spark.launch.embedded import embedded_session
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings
from stream_servers.pravega import PravegaServer
from tests.bench.pravega_reads import (
    Load,
    options,
    plan_all,
    publish,
    read_java,
    read_java_cold,
    read_ours,
    read_raw,
    started_peer,
)
from tests.bench.report import race, show
from tests.spark.running import run_window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_streams.model.plan.plan import Plan
    from tests.integration.pravega.conftest import Peer

_WARM_UPS = 3
_JAVA = "Java batch client, warm JVM"


def loads(scale: float) -> tuple[Load, ...]:
    """The streams; `scale` 1 is about 80 MB each."""
    small, large = int(750_000 * scale), int(78_000 * scale)
    return (
        Load("small", small, 100),
        Load("small-four", small, 100, segments=4),
        Load("large", large, 1024),
        Load("large-four", large, 1024, segments=4),
    )


def run(scale: float) -> None:
    """Start a server, fill it, race. All streams together must fit the server's cache."""
    spark = embedded_session(SparkSettings({"spark.master": "local[2]"}), quick_start=False)
    register(spark)
    with PravegaServer(heap="4g", cache_bytes=3 << 29) as server, started_peer(server) as peer:
        server.create_scope("bench")
        for load in loads(scale):
            print(f"publishing {load.events:,} events of {load.event_bytes} B to {load.name}", flush=True)
            publish(server, peer, load)
        for load in loads(scale):
            _race(server, peer, spark, load)
    spark.stop()


def _race(server: PravegaServer, peer: Peer, spark: SparkSession, load: Load) -> None:
    plan = plan_all(server, load)
    warm = {
        _JAVA: partial(read_java, peer, load, plan),
        "our reader to Arrow": partial(read_ours, server, plan),
        "raw socket (nothing decoded)": partial(read_raw, server, load, plan),
        f"our Spark read, {len(plan.splits)} task(s), noop": partial(_spark_noop, server, spark, load, plan),
    }
    for contender in list(warm.values()) * _WARM_UPS:
        contender()
    figures = race(warm, rounds=7) | race({"Java batch client, new JVM": partial(read_java_cold, server, load, plan)})
    assert {figure.events for figure in figures.values()} == {load.events}
    title = f"{load.name}: {load.events:,} events of {load.event_bytes} B, {load.segments} segment(s)"
    against = {"x Java": _JAVA, "x raw": "raw socket (nothing decoded)"}
    show(title, figures, against=against, event_bytes=load.event_bytes)


def _spark_noop(server: PravegaServer, spark: SparkSession, load: Load, plan: Plan) -> int:
    spec = WindowSpec(plan, options=options(server), small_plan_bytes=0)
    assert run_window(spec, spark).receipt.rows == load.events
    return load.events
