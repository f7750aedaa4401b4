"""Two ways to read, one result."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_streams.spark.job import job_pass, plan_reading
from airflow_provider_streams.spark.job.open_systems import OpenSystems
from airflow_provider_streams.spark.job.scan import Scan
from tests.spark.conftest import read_of
from tests.spark.running import run_window

CASES = {
    "plain": ({}, {}, None),
    "markers between events": ({"marker_every": 7}, {}, None),
    "one split": ({}, {"target_split_bytes": 1 << 20}, None),
    "many small splits": ({}, {"target_split_bytes": 700}, None),
    "chosen columns": ({}, {}, ("properties", "number", "key", "shard")),
    "no slack": ({}, {"slack": timedelta(0)}, None),
    "small batches": ({"batch_rows": 17}, {}, None),
    "a trimmed start, accepted": ({"head": 700}, {"on_loss": "record"}, None),
    "empty shards": ({"events": 3000, "interval_ms": 3_600_000}, {}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_driver_and_tasks_read_the_same_rows_and_receipts(spark, stream, case: str) -> None:
    facts, request, columns = CASES[case]
    stream.set(**facts)
    plan = stream.plan(**request)
    results = []
    for small_plan_bytes in (1 << 25, 0):
        df, told = read_of(stream.spec(plan, columns=columns, small_plan_bytes=small_plan_bytes), spark)
        rows = sorted(map(str, df.collect()))
        receipts = sorted(told(), key=lambda receipt: receipt.index)
        results.append((rows, receipts, df.schema))
    assert results[0] == results[1]
    assert sum(receipt.rows for receipt in results[0][1]) == len(results[0][0])


def test_an_empty_plan_gives_an_empty_frame_with_the_schema(spark, stream, way: int) -> None:
    empty = stream.empty_plan()
    df, receipts = read_of(stream.spec(empty, small_plan_bytes=way), spark)
    assert df.columns == ["value", "publish_time", "shard", "number"]
    assert (df.count(), receipts()) == (0, [])


def test_rows_that_outgrow_the_driver_are_read_by_tasks(spark, stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_reading, "MOST_BYTES", 10_000)
    with closing(OpenSystems.of(spec := stream.spec())) as systems, pytest.raises(plan_reading.TooLarge):
        plan_reading.read_table(spec, systems)
    scans = []

    def scanned(*given: Any) -> Scan:
        scans.append(Scan(*given))
        return scans[-1]

    monkeypatch.setattr(job_pass, "Scan", scanned)
    assert run_window(spec, spark).receipt.rows == 1200
    assert len(scans) == 1


@pytest.mark.parametrize("transform", ["nothing", "first_three"])
def test_splits_that_spark_skipped_are_read_for_their_receipts(spark, stream, transform: str) -> None:
    import transforms

    df, receipts = read_of(stream.spec(stream.plan(target_split_bytes=1 << 20), small_plan_bytes=0), spark)
    getattr(transforms, transform)(df).write.format("noop").mode("overwrite").save()
    assert sum(receipt.rows for receipt in receipts()) == 1200
