"""What Spark's Python processes keep from one task to the next."""

from __future__ import annotations

import gc

from pyspark.sql.datasource import DataSource

from airflow_provider_streams.spark.datasource.worker_memory import keep_imports


def frozen(_):
    before = gc.get_freeze_count()
    keep_imports()
    return before, gc.get_freeze_count()


def test_what_a_worker_has_imported_is_looked_through_once(spark):
    tasks = spark.sparkContext.parallelize(range(6), 6).map(frozen).collect()
    assert all(after > 10_000 for _, after in tasks)
    assert any(before == after for before, after in tasks)  # a process that is used again keeps it once


class Kept(DataSource):
    """Its only column says how much is kept in the process that plans a read."""

    def schema(self) -> str:
        keep_imports()
        return f"kept_{gc.get_freeze_count()} int"


def test_processes_that_plan_reads_keep_their_imports_too(spark):
    spark.dataSource.register(Kept)
    (column,) = spark.read.format(Kept.name()).load().columns
    assert int(column.removeprefix("kept_")) > 10_000


def test_outside_of_tasks_nothing_is_kept():
    before, after = frozen(0)  # the suite itself keeps what it imported
    assert before == after
