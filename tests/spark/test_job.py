"""A plan in, a receipt out: proof before commit, whatever happens to the tasks."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    EventsLost,
    LandingMismatch,
    ReceiptMismatch,
    SinkError,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.lake.data_files import DataFile
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.job import commit_checks, staging
from airflow_provider_streams.spark.job.file_writing_tasks import Staged
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from airflow_provider_streams.spark.job.open_systems import OpenSystems
from tests.spark.conftest import TERMS
from tests.spark.running import run_window

CANARY = "canary-5f1c9a7e"


def run(spec, spark):
    """The receipt of a job."""
    return run_window(spec, spark).receipt


def rows_of(spark, lake: Path) -> list[tuple[str, int]]:
    return sorted((row["shard"], row["number"]) for row in spark.read.parquet(str(lake)).collect())


def environment_page(spark) -> str:
    """What Spark's UI shows under "Environment"."""
    info = spark.sparkContext._jsc.sc().statusStore().environmentInfo()
    parts = (info.sparkProperties(), info.systemProperties(), info.hadoopProperties(), info.metricsProperties())
    return "".join(part.mkString("\n") for part in parts)


def test_a_window_lands_with_its_receipt(spark, stream, way: int, tmp_path: Path) -> None:
    receipt = run(stream.spec(sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=way), spark)
    assert (receipt.rows, receipt.verdict, receipt.fingerprint) == (1200, "complete", stream.plan().fingerprint)
    assert rows_of(spark, tmp_path / "lake") == stream.numbers


def test_a_second_run_replaces_the_window_and_no_other(spark, stream, way: int, tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "lake"))
    for plan in (stream.plan(10, 20), stream.plan(20, 30), stream.plan(10, 20)):
        run(stream.spec(plan, sink=sink, small_plan_bytes=way), spark)
    counts = {
        row["window_start"]: row["count"]
        for row in spark.read.parquet(sink.path).groupBy("window_start").count().collect()
    }
    assert counts == {"20261120T101000Z": 1200, "20261120T102000Z": 1200}
    assert not list((tmp_path / "lake" / "_staging").iterdir())


def test_an_empty_window_replaces_a_full_one_and_keeps_the_schema(spark, stream, way: int, tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "lake"))
    plan = stream.plan()
    run(stream.spec(plan, sink=sink, small_plan_bytes=way), spark)
    empty = stream.empty_plan()
    assert run(stream.spec(empty, sink=sink, small_plan_bytes=way), spark).rows == 0
    table = spark.read.parquet(sink.path)
    assert table.count() == 0
    assert table.columns == ["value", "publish_time", "shard", "number", "window_start", "window_end"]


@pytest.mark.parametrize("case", [("drop:1:700", ReceiptMismatch), ("trim:0:700", EventsLost)])
def test_a_read_that_misses_an_event_fails_and_commits_nothing(
    spark, stream, way: int, tmp_path: Path, case: tuple[str, type[StreamsError]]
) -> None:
    fault, error = case
    lake = tmp_path / "lake"
    run(stream.spec(sink=ParquetSink(str(lake)), small_plan_bytes=way), spark)
    before = sorted(path for path in lake.rglob("*"))
    stream.set(fault=fault)
    with pytest.raises(error, match="numbers-"):
        run(stream.spec(sink=ParquetSink(str(lake)), small_plan_bytes=way), spark)
    assert sorted(path for path in lake.rglob("*")) == before


def test_loss_can_be_accepted_and_is_counted(spark, stream, way: int) -> None:
    stream.set(fault="trim:0:700")
    receipt = run(stream.spec(on_loss="record", small_plan_bytes=way), spark)
    assert receipt.verdict == "loss recorded"
    assert (receipt.rows, receipt.totals["lost"]) == (1100, 160)  # 60 of the 160 were slack


def test_a_passing_failure_is_retried_by_spark(spark, stream) -> None:
    stream.set(fault="fail:0,fail:1")
    assert run(stream.spec(small_plan_bytes=0), spark).rows == 1200
    assert Path(f"{stream.truth}.fail-1").exists()


def test_a_killed_worker_is_retried_by_spark(spark, stream) -> None:
    stream.set(fault="crash:1")
    assert run(stream.spec(small_plan_bytes=0), spark).rows == 1200
    assert Path(f"{stream.truth}.crash-1").exists()


def test_a_passing_failure_in_the_driver_keeps_its_class(spark, stream) -> None:
    stream.set(fault="fail:0")
    with pytest.raises(SystemUnavailable, match="numbers-0") as caught:
        run(stream.spec(), spark)
    assert caught.value.retryable


@pytest.mark.slow_except("driver-case0", "driver-case1", "tasks-case2", "tasks-case3")
@pytest.mark.parametrize("case", [("nothing", 0), ("first_three", 3), ("per_shard", 2), ("with_itself", 2400)])
def test_the_receipt_is_of_the_read_whatever_the_transform_keeps(
    spark, stream, way: int, tmp_path: Path, case: tuple[str, int]
) -> None:
    transform, rows = case
    sink = ParquetSink(str(tmp_path / "lake"))
    plan = stream.plan(target_split_bytes=1 << 20)
    spec = stream.spec(plan, sink=sink, transform=f"transforms:{transform}", small_plan_bytes=way)
    landed = run_window(spec, spark)
    assert (landed.receipt.rows, landed.written) == (1200, rows)
    assert spark.read.parquet(sink.path).count() == rows


def test_a_column_that_the_folders_give_is_refused(spark, stream, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="window_start"):
        run(stream.spec(sink=ParquetSink(str(tmp_path)), transform="transforms:window_start"), spark)
    assert not list((tmp_path).glob("window_start=*"))


def test_rows_that_did_not_reach_this_machine_are_missed(
    spark, stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_and_lose(*given: Any, write=staging.write_table) -> list[DataFile]:
        files = write(*given)
        next((tmp_path / "lake" / "_staging").glob("*/part-*")).unlink()
        return files

    monkeypatch.setattr(staging, "write_table", write_and_lose)
    with pytest.raises(SinkError, match="is not here"):
        run(stream.spec(sink=ParquetSink(str(tmp_path / "lake"))), spark)


def test_rows_that_were_not_written_are_missed(
    spark, stream, way: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the files hold is compared with what was read."""

    def lose(spec: WindowSpec, staged: Staged, *given: Any, commit=commit_checks.commit) -> int | None:
        return commit(spec, Staged(staged.receipts, staged.files[1:]), *given)

    monkeypatch.setattr(commit_checks, "commit", lose)
    lake = tmp_path / "lake"
    with pytest.raises(SinkError, match="1,200 rows read and proven, but 0 written"):
        run(stream.spec(sink=ParquetSink(str(lake)), small_plan_bytes=way), spark)
    assert not list(lake.glob("window_start=*"))


@pytest.mark.parametrize(
    "case",
    [("without_shard", "shard is missing, it was string"), ("numbers_as_text", "number is string instead of bigint")],
)
def test_a_tables_columns_may_only_grow(spark, stream, way: int, tmp_path: Path, case: tuple[str, str]) -> None:
    transform, said = case
    plan, sink = stream.plan(), ParquetSink(str(tmp_path / "lake"))
    how = {"sink": sink, "small_plan_bytes": way}
    terms = replace(TERMS, columns=run_window(stream.spec(plan, **how), spark).schema)
    before = rows_of(spark, tmp_path / "lake")
    older = replace(terms, later=("shard", "number"))  # than these; but the transform's code may have changed since
    for other, of_table in ((plan, terms), (stream.plan(20, 30), terms), (plan, older)):
        with pytest.raises(LandingMismatch, match=f"{said}.*have the transform give all of these") as caught:
            run(stream.spec(other, terms=of_table, transform=f"transforms:{transform}", **how), spark)
        assert "full_refresh" not in str(caught.value), "columns are known too late for that"
    assert rows_of(spark, tmp_path / "lake") == before
    given = tuple(column for column in terms.columns if column[0] != "shard")
    lacking = stream.spec(
        plan, terms=older, transform="transforms:first_three", columns=[name for name, _ in given], **how
    )
    with closing(OpenSystems.of(lacking)) as systems:
        assert (
            commit_checks.check_schema(lacking, given, systems) == given
        )  # it was not given the column, and dropped nothing
    more = run_window(stream.spec(plan, terms=terms, transform="transforms:with_a_column_more", **how), spark)
    assert more.schema == (*terms.columns, ("twice", "bigint"))
    assert rows_of(spark, tmp_path / "lake") == before


def test_a_secret_reaches_the_readers_and_nothing_else(spark, stream, way: int, capfd) -> None:
    stream.set(password=CANARY)
    stream.token = CANARY
    spec = stream.spec(small_plan_bytes=way)
    assert run(spec, spark).rows == 1200
    shown = [
        repr(spec),
        str(JobSpec((spec,)).to_json()),
        str(spec.plan.to_json()),
        str(spark.sparkContext.getConf().getAll()),
        environment_page(spark),
        Path("/proc/self/cmdline").read_text(),
        "".join(capfd.readouterr()),
    ]
    assert "spark.driver.host" in environment_page(spark)
    assert not [text for text in shown if CANARY in text]


def test_a_wrong_secret_is_not_in_the_error(spark, stream, way: int) -> None:
    plan = stream.plan()
    stream.set(password="the right one")
    stream.token = CANARY
    with pytest.raises(AuthenticationFailed) as caught:
        run(stream.spec(plan, small_plan_bytes=way), spark)
    assert CANARY not in f"{caught.value!r}{caught.value.__cause__!r}"
