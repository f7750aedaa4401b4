"""Reads a Pulsar topic and a Pravega stream on a cluster: `reading_cluster.py <master> <options> <answer>`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_provider_streams.spark import register
from airflow_provider_streams.spark.launch.py_files import executor_archive

if __name__ == "__main__":
    master, options, answer = sys.argv[1:]
    spark = (
        SparkSession.builder.master(master)
        .config("spark.submit.pyFiles", str(executor_archive()))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    register(spark)
    found = {}
    for system, (given, column) in json.loads(options).items():
        df = spark.read.format(system).options(**given).load()
        values = sorted(int(row[0]) for row in df.select(column).collect())
        found[system] = {"values": values, "tasks": df.rdd.getNumPartitions()}
    Path(answer).write_text(json.dumps(found))
    spark.stop()
