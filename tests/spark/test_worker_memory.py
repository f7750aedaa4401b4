"""What Spark's Python processes keep from one task to the next."""

from __future__ import annotations

import gc

from airflow_provider_streams.spark.worker_memory import keep_imports


def frozen(_):
    before = gc.get_freeze_count()
    keep_imports()
    return before, gc.get_freeze_count()


def test_what_a_worker_has_imported_is_looked_through_once(spark):
    tasks = spark.sparkContext.parallelize(range(6), 6).map(frozen).collect()
    assert all(after > 10_000 for _, after in tasks)
    assert any(before == after for before, after in tasks)  # a process that is used again keeps it once


def test_outside_of_tasks_nothing_is_kept():
    assert frozen(0) == (0, 0)
