"""Many windows in one job: each proven and put in place on its own, whatever becomes of the others."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_streams.errors import AuthenticationFailed, InvalidRequest, LandingMismatch, TaskCancelled
from airflow_provider_streams.lake.data_files import DataFile
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.job import commit_checks, job, job_pass, plan_reading, staging
from airflow_provider_streams.spark.job.file_writing_tasks import Staged
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from airflow_provider_streams.spark.job.outcomes import WindowFailure, results_from_json, results_to_json
from airflow_provider_streams.spark.launch import cancellation
from tests.spark.conftest import TERMS
from tests.spark.running import run_window

MINUTES = 6


def run_chunk(chunk: JobSpec, spark) -> list[Receipt | WindowFailure]:
    """The receipts of the windows that landed."""
    return [getattr(result, "receipt", result) for result in job.run(chunk, spark)]


def chunk(stream, minutes: int = MINUTES, **how) -> JobSpec:
    """The first minutes of the stream: 120 events each."""
    plans = [stream.plan(minute, minute + 1) for minute in range(minutes)]
    return JobSpec.of(plans, stream.spec(plans[0], **how))


def landed(lake: Path) -> dict[int, list[tuple[str, int]]]:
    """The events of each window's folder, by its minute."""
    import pyarrow.parquet as pq

    found = {}
    for folder in sorted(lake.glob("window_start=*")):
        rows = [row for file in folder.rglob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
        found[int(folder.name[-5:-3])] = sorted((row["shard"], row["number"]) for row in rows)
    return found


def truth(minute: int) -> list[tuple[str, int]]:
    return [(f"numbers-{shard}", minute * 60 + n) for shard in range(2) for n in range(60)]


def test_every_window_lands_in_its_own_place_with_its_own_receipt(spark, stream, way: int, tmp_path: Path) -> None:
    spec = chunk(stream, sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=way)
    results = run_chunk(spec, spark)
    assert [result.rows for result in results] == [120] * MINUTES
    assert [result.fingerprint for result in results] == [one.plan.fingerprint for one in spec.specs]
    assert landed(tmp_path / "lake") == {minute: truth(minute) for minute in range(MINUTES)}
    assert not list((tmp_path / "lake" / "_staging").iterdir())


def test_a_chunk_and_single_jobs_leave_the_same_tables(spark, stream, way: int, tmp_path: Path) -> None:
    together, alone = (ParquetSink(str(tmp_path / name)) for name in ("together", "alone"))
    spec = chunk(stream, 2, sink=together, small_plan_bytes=way)
    results = run_chunk(spec, spark)
    singles = [run_window(one, spark).receipt for one in chunk(stream, 2, sink=alone, small_plan_bytes=way).specs]
    assert [result.splits for result in results] == [single.splits for single in singles]
    tables = [spark.read.parquet(sink.path) for sink in (together, alone)]
    assert tables[0].schema == tables[1].schema
    assert sorted(map(str, tables[0].collect())) == sorted(map(str, tables[1].collect()))


def test_a_window_that_misses_an_event_fails_alone(spark, stream, way: int, tmp_path: Path) -> None:
    stream.set(fault="drop:1:130")
    results = run_chunk(chunk(stream, sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=way), spark)
    # slack: the event is looked at for the windows next to its own as well
    assert [isinstance(result, WindowFailure) for result in results] == [False, True, True, True, False, False]
    assert {result.error_type for result in results[1:4]} == {"ReceiptMismatch"}
    assert landed(tmp_path / "lake") == {minute: truth(minute) for minute in (0, 4, 5)}
    assert not list((tmp_path / "lake" / "_staging").iterdir())


def test_a_lost_window_fails_alone_and_says_so(spark, stream, way: int, tmp_path: Path) -> None:
    spec = chunk(stream, sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=way)
    stream.set(fault="trim:0:30")
    results = run_chunk(spec, spark)
    assert [(result.error_type, result.lost) for result in results[:2]] == [("EventsLost", True)] * 2
    assert landed(tmp_path / "lake") == {minute: truth(minute) for minute in range(2, MINUTES)}


def test_a_failure_of_the_common_pass_is_halved_until_it_stands_alone(
    spark, stream, way: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = []
    run = job_pass.JobPass.run

    def fail_with_minute_3(self):
        windows = [spec.plan.window for spec in self._job.specs]
        passes.append(len(windows))
        if any(window.start.minute == 3 for window in windows):
            raise RuntimeError("as a bug of somebody's would")
        return run(self)

    monkeypatch.setattr(job_pass.JobPass, "run", fail_with_minute_3)
    results = run_chunk(chunk(stream, sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=way), spark)
    assert [isinstance(result, Receipt) for result in results] == [True, True, True, False, True, True]
    assert (results[3].error_type, results[3].message) == ("RuntimeError", "see the log of the Spark job")
    assert landed(tmp_path / "lake").keys() == {0, 1, 2, 4, 5}
    assert passes == [6, 3, 3, 1, 2]


def test_windows_without_rows_replace_full_ones_and_keep_the_schema(spark, stream, way: int, tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "lake"))
    run_chunk(chunk(stream, 3, sink=sink, small_plan_bytes=way), spark)
    stream.set(events=60, now="2026-11-20T11:00:00+00:00")
    results = run_chunk(chunk(stream, 3, sink=sink, small_plan_bytes=way), spark)
    assert [result.rows for result in results] == [120, 0, 0]
    table = spark.read.parquet(sink.path)
    assert table.columns == ["value", "publish_time", "shard", "number", "window_start", "window_end"]
    assert landed(tmp_path / "lake") == {0: truth(0), 1: [], 2: []}


@pytest.mark.slow_except("driver-case0", "tasks-case1")
@pytest.mark.parametrize("case", [("per_shard", 2), ("nothing", 0), ("first_three", 3)])
def test_a_transform_sees_one_window_at_a_time(spark, stream, way: int, tmp_path: Path, case: tuple[str, int]) -> None:
    transform, rows = case
    sink = ParquetSink(str(tmp_path / "lake"))
    results = run_chunk(chunk(stream, 3, sink=sink, small_plan_bytes=way, transform=f"transforms:{transform}"), spark)
    assert [result.rows for result in results] == [120] * 3
    counts = spark.read.parquet(sink.path).groupBy("window_start").count().collect()
    assert [row["count"] for row in counts] == ([rows] * 3 if rows else [])


def test_without_a_sink_windows_are_proven_and_nothing_is_kept(spark, stream, way: int) -> None:
    assert [result.rows for result in run_chunk(chunk(stream, 3, small_plan_bytes=way), spark)] == [120] * 3


def test_rows_that_outgrow_the_driver_are_read_by_tasks(
    spark, stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_reading, "MOST_BYTES", 10_000)
    run_chunk(chunk(stream, sink=ParquetSink(str(tmp_path / "lake"))), spark)
    assert landed(tmp_path / "lake") == {minute: truth(minute) for minute in range(MINUTES)}


def test_what_concerns_all_windows_stops_at_once(spark, stream, way: int, tmp_path: Path) -> None:
    spec = chunk(stream, sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=way)
    with pytest.raises(InvalidRequest, match="transforms:typo"):
        run_chunk(
            JobSpec.of([one.plan for one in spec.specs], stream.spec(transform="transforms:typo", sink=spec.how.sink)),
            spark,
        )
    stream.set(password="another")
    with pytest.raises(AuthenticationFailed):
        run_chunk(spec, spark)
    assert not list((tmp_path / "lake").glob("window_start=*"))


def test_rows_that_did_not_reach_this_machine_are_missed(
    spark, stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the window that they belong to, which alone fails."""

    def write_and_lose(*given: Any, write=staging.write_table) -> list[DataFile]:
        files = write(*given)
        lost = next((tmp_path / "lake" / "_staging").glob("20261120T100200Z_*/part-*"), None)
        if lost is not None:
            lost.unlink()
        return files

    monkeypatch.setattr(staging, "write_table", write_and_lose)
    results = run_chunk(chunk(stream, sink=ParquetSink(str(tmp_path / "lake"))), spark)
    assert [isinstance(result, WindowFailure) for result in results] == [False, False, True, False, False, False]
    assert results[2].error_type == "SinkError"


def test_rows_that_were_not_written_are_missed(
    spark, stream, way: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the window that they belong to, which alone fails."""
    commit = commit_checks.commit

    def lose(spec: WindowSpec, staged: Staged, *given: Any) -> int | None:
        lost = staged.files[1:] if spec.plan.window == chunk(stream).specs[2].plan.window else staged.files
        return commit(spec, Staged(staged.receipts, lost), *given)

    monkeypatch.setattr(commit_checks, "commit", lose)
    results = run_chunk(chunk(stream, sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=way), spark)
    assert [isinstance(result, WindowFailure) for result in results] == [False, False, True, False, False, False]
    assert results[2].error_type == "SinkError"
    assert "120 rows" in results[2].message
    assert landed(tmp_path / "lake") == {minute: truth(minute) for minute in range(MINUTES) if minute != 2}


def test_a_tables_columns_may_only_grow(spark, stream, way: int, tmp_path: Path) -> None:
    how = {"sink": ParquetSink(str(tmp_path / "lake")), "small_plan_bytes": way}
    terms = replace(TERMS, columns=job.run(chunk(stream, 2, **how), spark)[0].schema)
    with pytest.raises(LandingMismatch, match="shard is missing"):
        run_chunk(chunk(stream, 3, **how, terms=terms, transform="transforms:without_shard"), spark)
    assert landed(tmp_path / "lake") == {minute: truth(minute) for minute in range(2)}


def test_a_chunk_travels_as_json_without_its_secrets(stream) -> None:
    stream.token = "canary-33aa"
    spec = chunk(stream, 2, columns=("value",), on_loss="record")
    text = json.dumps(spec.to_json())
    assert "canary-33aa" not in text
    back = JobSpec.from_json(json.loads(text), spec.how.secret_environment())
    assert back.specs == spec.specs
    assert back.how.options["token"] == "canary-33aa"


def test_results_travel_as_json() -> None:
    results = [
        Landed(Receipt("f" * 32, (), 1.0, "complete"), 7, (("number", "bigint"),)),
        WindowFailure("EventsLost", "gone", lost=True),
        WindowFailure("ReadStalled", "silent", retryable=True),
    ]
    assert results_from_json(json.loads(json.dumps(results_to_json(results)))) == results


def test_windows_behind_an_empty_one_keep_their_rows(spark, stream, way: int, tmp_path: Path) -> None:
    stream.set(interval_ms=90_000, marker_every=0)
    plans = [stream.plan(minute, minute + 1, slack=timedelta(0)) for minute in range(MINUTES)]
    spec = stream.spec(plans[0], sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=way)
    results = run_chunk(JobSpec.of(plans, spec), spark)
    numbers = {0: [0], 1: [1], 2: [], 3: [2], 4: [3], 5: []}
    assert [result.rows for result in results] == [2 * len(found) for found in numbers.values()]
    expected = {minute: [(f"numbers-{s}", n) for s in range(2) for n in found] for minute, found in numbers.items()}
    assert landed(tmp_path / "lake") == expected


@pytest.mark.parametrize("most", [10_000, 100], ids=["halves fit", "not even one window fits"])
def test_a_transform_of_windows_that_outgrow_the_driver_still_sees_each(
    spark, stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(plan_reading, "MOST_BYTES", most)
    sink = ParquetSink(str(tmp_path / "lake"))
    results = run_chunk(chunk(stream, 3, sink=sink, transform="transforms:per_shard"), spark)
    assert [getattr(result, "rows", result) for result in results] == [120] * 3
    counts = spark.read.parquet(sink.path).collect()
    assert sorted(row["count"] for row in counts) == [60] * 6


def test_nothing_goes_on_for_a_task_that_was_ended(spark, stream, way: int, tmp_path: Path, monkeypatch) -> None:
    """Cancelled work fails; halving would begin it again, window by window."""
    passes = []
    run = job_pass.JobPass.run

    def ended_meanwhile(self):
        passes.append(len(self._job.specs))
        cancellation.end()
        return run(self)

    monkeypatch.setattr(job_pass.JobPass, "run", ended_meanwhile)
    try:
        with pytest.raises(TaskCancelled):
            run_chunk(chunk(stream, sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=way), spark)
    finally:
        cancellation.forget()
    assert passes == [MINUTES]
    assert not list((tmp_path / "lake").glob("window_start=*"))
