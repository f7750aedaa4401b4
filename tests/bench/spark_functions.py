"""Spark's own functions over the same payloads, in one thread of a JVM: what a transform would do instead of us.

Its processor time is the whole JVM's, so that the compiler's and the collector's share is in it; the best round
of several, when all is compiled. What it costs to scan the cached payloads without decoding them is taken off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_streams.spark.launch.java_home_for_spark import spark_java_home
from airflow_provider_streams.spark.launch.java_search import find_java
from stream_servers.bundles import SPARK_AVRO
from stream_servers.fetch import jars

ROUNDS = 6
TIMES = 10
"""How often the payloads are repeated: Spark is not fast with few."""

Rate = Callable[[list[bytes], Callable[[Any], Any]], float]
"""Records in a CPU second, of payloads and what Spark makes of their column; 0: its function is not there."""


@contextmanager
def session() -> Iterator[Rate]:
    """A session of one thread, and what measures in it."""
    from pyspark.sql import SparkSession  # only where it is asked for

    functions = ",".join(jars(SPARK_AVRO))  # Protobuf's is not published
    os.environ["JAVA_HOME"] = str(spark_java_home(find_java()))
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", functions)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    try:
        yield lambda payloads, decode: _rate(spark, pid, payloads, decode)
    finally:
        spark.stop()


def _rate(spark: Any, pid: int, payloads: list[bytes], decode: Callable[[Any], Any]) -> float:
    from pyspark.sql import functions as F  # noqa: N812  # as Spark's users write it

    once = spark.createDataFrame(pa.table({"value": pa.array(payloads, pa.binary())}))
    try:
        once.select(decode(F.col("value"))).limit(1).collect()
    except Exception as error:  # noqa: BLE001  # of the JVM, of whichever kind
        print(f"  Spark's function does not run: {str(error)[:160]!r}", flush=True)
        return 0
    rows = once.crossJoin(spark.range(TIMES)).select("value").coalesce(1).cache()
    count = rows.count()
    scan, decoded = rows.select(F.length("value")), rows.select(decode(F.col("value")).alias("row"))
    best = min(_seconds(pid, decoded) for _ in range(ROUNDS)) - min(_seconds(pid, scan) for _ in range(ROUNDS))
    rows.unpersist(blocking=True)
    return count / max(best, 1e-3)


def _seconds(pid: int, frame: Any) -> float:
    began = _processor_seconds(pid)
    frame.write.format("noop").mode("overwrite").save()
    return _processor_seconds(pid) - began


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
