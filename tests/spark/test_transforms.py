"""The user's function: tried on nothing before the stream is read, told what it reads, blamed for its failures."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds
import pytest

from airflow_provider_streams.errors import InvalidRequest, StreamsError, TransformFailed
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.job import job, job_pass, plan_reading
from airflow_provider_streams.spark.job.job_spec import JobSpec
from tests.spark.running import run_window


def run(spec, spark):
    """The receipt of a job."""
    return run_window(spec, spark).receipt


@pytest.fixture
def nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_pass, "Scan", lambda *_: pytest.fail("the stream is read"))
    monkeypatch.setattr(plan_reading, "read_table", lambda *_: pytest.fail("the stream is read"))


def run_chunk(chunk: JobSpec, spark):
    """The receipts of the windows that landed."""
    return [getattr(result, "receipt", result) for result in job.run(chunk, spark)]


def of_minutes(stream, minutes: int, **how) -> JobSpec:
    plans = [stream.plan(minute, minute + 1) for minute in range(minutes)]
    return JobSpec.of(plans, stream.spec(plans[0], **how))


WAYS = {"driver": 1 << 25, "tasks": 0}


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize("transform", ["acts", "writes", "caches", "wraps_an_action"])
def test_an_action_is_refused_before_it_wrote_or_read_anything(
    spark, stream, transform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its receipts would prove its own pass, and the sink's pass would go unproven; a re-run would write again."""
    table = tmp_path / "table"
    monkeypatch.setenv("TEST_TABLE", str(table))
    spark.range(3).write.parquet(str(table))
    how = {"sink": ParquetSink(str(tmp_path / "lake")), "transform": f"transforms:{transform}"}
    for way in WAYS.values():
        with pytest.raises(InvalidRequest, match=f"transforms:{transform} ran a Spark action"):
            run(stream.spec(**how, small_plan_bytes=way), spark)
        with pytest.raises(InvalidRequest, match="ran a Spark action"):
            run_chunk(of_minutes(stream, 3, **how, small_plan_bytes=way), spark)
    assert spark.read.parquet(str(table)).count() == 3
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_columns_have_whichever_names_it_gives_them(spark, stream, way: int, tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "lake"))
    landed = run_window(stream.spec(sink=sink, transform="transforms:awkward_names", small_plan_bytes=way), spark)
    rows = ds.dataset(tmp_path / "lake", format="parquet", exclude_invalid_files=True).to_table()
    assert rows.column_names[:4] == ["a.b", "c`d", "Größe", "e f"]
    found = sorted(zip(rows["c`d"].to_pylist(), rows["a.b"].to_pylist(), strict=True))
    assert (found, landed.receipt.rows) == (stream.numbers, 1200)
    several = run_chunk(
        of_minutes(stream, 2, sink=sink, transform="transforms:awkward_names", small_plan_bytes=way), spark
    )
    assert all(hasattr(one, "rows") for one in several), several


WRONG = {
    "typo": (InvalidRequest, "'transforms:typo' cannot be imported"),
    "returns_nothing": (InvalidRequest, "returns a NoneType, and not a DataFrame"),
    "raises": (
        TransformFailed,
        r"failed on window 2026-11-20T10:10:00Z/2026-11-20T10:20:00Z: KeyError: 'no such",
    ),
    "one_name_twice": (TransformFailed, r"columns of one name \(number, number; upper and lower case are the same"),
    "one_name_in_two_cases": (TransformFailed, r"columns of one name \(number, Number;"),
    "one_name_twice_inside": (TransformFailed, r"columns of one name \(parts\.b\.c, parts\.b\.C;"),
    "no_columns": (TransformFailed, "its rows have no columns"),
    "unknown_column": (TransformFailed, r"AnalysisException: \[UNRESOLVED_COLUMN.WITH_SUGGESTION\] .*colour"),
}


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize("transform", WRONG)
def test_what_is_wrong_with_it_at_once_is_known_before_the_stream_is_read(spark, stream, transform: str) -> None:
    kind, message = WRONG[transform]
    with pytest.raises(kind, match=message) as caught:
        run(stream.spec(transform=f"transforms:{transform}"), spark)
    with pytest.raises(kind, match=message.replace("10:10:00Z/2026-11-20T10:20", "10:00:00Z/2026-11-20T10:01")):
        run_chunk(of_minutes(stream, 3, transform=f"transforms:{transform}"), spark)
    if transform != "typo":  # there the import's own failure belongs to it
        assert_short_and_final(caught.value)


def assert_short_and_final(error: StreamsError) -> None:
    assert not error.retryable
    assert error.__cause__ is None
    assert len(str(error).splitlines()) == 1
    assert len(str(error)) < 600


@pytest.mark.slow_except("driver-case0", "tasks-case1")
@pytest.mark.parametrize(
    "case",
    [
        ("fails_in_python", "RuntimeError: a user's function fails"),
        ("bad_value", "CAST_INVALID_INPUT"),
        ("unknown_to_parquet", "the column `pause` of the type"),
    ],
)
def test_its_failure_on_a_row_is_one_line_and_final(
    spark, stream, way: int, case: tuple[str, str], tmp_path: Path
) -> None:
    transform, words = case
    spec = stream.spec(
        sink=ParquetSink(str(tmp_path / "lake")), transform=f"transforms:{transform}", small_plan_bytes=way
    )
    with pytest.raises(TransformFailed) as caught:
        run(spec, spark)
    said = str(caught.value)
    assert said.startswith(f"transform transforms:{transform} failed on window {spec.plan.window}: ")
    assert words in said
    assert_short_and_final(caught.value)
    assert not list(tmp_path.glob("lake/_staging/*"))
    assert not list(tmp_path.glob("lake/window_start=*"))


@pytest.mark.slow_except("tasks")
def test_a_window_that_it_fails_on_fails_alone(spark, stream, way: int, tmp_path: Path) -> None:
    how = {
        "sink": ParquetSink(str(tmp_path / "lake")),
        "transform": "transforms:fails_on_minute_two",
        "small_plan_bytes": way,
    }
    results = run_chunk(of_minutes(stream, 4, **how), spark)
    assert [getattr(result, "rows", None) for result in results] == [120, 120, None, 120]
    assert (results[2].error_type, results[2].retryable) == ("TransformFailed", False)
    assert (
        "window 2026-11-20T10:02:00Z/2026-11-20T10:03:00Z: RuntimeError: a user's function fails on"
        in results[2].message
    )


def test_it_is_told_window_plan_reader_and_try(spark, stream, way: int, tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "lake"))
    how = {"sink": sink, "transform": "transforms:with_context", "small_plan_bytes": way}
    tries = set()
    for _ in range(2):
        run(stream.spec(**how), spark)
        (told,) = spark.read.parquet(sink.path).select("told").distinct().collect()
        window, reader, attempt, fingerprint = told["told"].split("|")
        assert (window, reader, fingerprint) == (str(stream.plan().window), "tests", stream.plan().fingerprint)
        tries.add(attempt)
    assert len(tries) == 2
    chunk = of_minutes(stream, 3, **{**how, "sink": ParquetSink(str(tmp_path / "many"))})
    run_chunk(chunk, spark)
    found = spark.read.parquet(str(tmp_path / "many")).select("told").distinct().collect()
    assert {row["told"].split("|")[0] for row in found} == {str(one.plan.window) for one in chunk.specs}


def test_an_argument_with_a_default_is_the_users_own(spark, stream, tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "lake"))
    run(stream.spec(sink=sink, transform="transforms:with_an_option"), spark)
    assert {row["number"] for row in spark.read.parquet(sink.path).collect()} == {2 * n for _, n in stream.numbers}


def test_what_it_sets_in_spark_does_not_outlive_its_window(spark, stream, way: int, tmp_path: Path) -> None:
    """The process may go on with other windows, and other readers."""
    before = spark.conf.getAll
    sink = ParquetSink(str(tmp_path / "lake"))
    run(stream.spec(sink=sink, transform="transforms:in_another_zone", small_plan_bytes=way), spark)
    assert hours(spark, sink) == {9}, "it counts for its own"
    assert spark.conf.getAll.get("spark.sql.session.timeZone") == before.get("spark.sql.session.timeZone")
    assert spark.conf.getAll["spark.sql.shuffle.partitions"] == before["spark.sql.shuffle.partitions"]
    run(stream.spec(sink=sink, transform="transforms:local_times", small_plan_bytes=way), spark)
    assert hours(spark, sink) == {0}


def test_what_it_sets_for_one_window_does_not_reach_others_of_a_job(spark, stream, way: int, tmp_path: Path) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    sink = ParquetSink(str(tmp_path / "lake"))
    how = {"sink": sink, "transform": "transforms:in_another_zone_at_minute_one", "small_plan_bytes": way}
    results = run_chunk(of_minutes(stream, 3, **how), spark)
    assert [result.rows for result in results] == [120, 120, 120]
    by_window = {row.window_start: row.hour for row in spark.read.parquet(sink.path).distinct().collect()}
    assert [by_window[start] for start in sorted(by_window)] == [0, 9, 0]
    assert spark.conf.get("spark.sql.session.timeZone") == before


def hours(spark, sink: ParquetSink) -> set[int]:
    return {row.hour for row in spark.read.parquet(sink.path).select("hour").distinct().collect()}
