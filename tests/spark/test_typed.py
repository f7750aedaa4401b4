"""Payloads as columns, by each way to read: rows by their fields, bad events failed, kept aside or left out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams.errors import DecodeError, InvalidRequest, TooManyDecodeErrors
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload import Json, Utf8
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.job import job
from airflow_provider_streams.spark.job.job_spec import JobSpec
from airflow_provider_streams.spark.job.outcomes import WindowFailure
from airflow_provider_streams.testing.fake import FakeSource
from tests.spark.conftest import read_of
from tests.spark.own_sink import JsonSink
from tests.spark.running import run_window

RECORDS = Json("n long, shard string")
SOURCE = FakeSource(value=RECORDS)
TORN = 7


def typed(stream, start: float = 10, end: float = 20, source: FakeSource = SOURCE) -> Plan:
    """As the default plan, of records."""
    plan = stream.plan(start, end)
    made = stream.system.plan(_request(plan, source))
    return replace(made, splits=plan.splits)


def _request(plan: Plan, source: FakeSource):
    from airflow_provider_streams.model.plan.plan import PlanRequest

    return PlanRequest(source, plan.window, "tests", target_split_bytes=4000)


def rows_of(folder: Path) -> list[tuple[str, int]]:
    """The events in the rows of a table's window or windows."""
    rows = [row for file in folder.rglob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted((row["shard"], row["n"]) for row in rows)


def aside_of(folder: Path) -> list[dict]:
    """Its quarantine."""
    files = folder.rglob("_quarantine/*.quarantine")
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def good(stream) -> list[tuple[str, int]]:
    return [event for event in stream.numbers if event[1] % TORN != TORN - 1]


def test_fields_of_records_are_columns_beside_where_each_event_was(spark, stream, way: int, tmp_path: Path) -> None:
    stream.set(records=1)
    sink = ParquetSink(str(tmp_path / "lake"))
    landed = run_window(stream.spec(typed(stream), sink=sink, small_plan_bytes=way), spark)
    assert landed.schema == (
        ("n", "bigint"),
        ("shard", "string"),
        ("_publish_time", "timestamp"),
        ("_shard", "string"),
        ("_number", "bigint"),
    )
    assert rows_of(tmp_path / "lake") == stream.numbers
    assert (landed.receipt.rows, landed.receipt.undecodable) == (1200, 0)
    table = spark.read.parquet(sink.path)
    assert table.filter("shard != _shard or n != _number").count() == 0


def test_times_of_day_need_no_setting_of_sparks(spark, stream, tmp_path: Path) -> None:
    stream.set(records=1)
    plan = typed(stream, source=FakeSource(value=Json("n long, shard string, at time")))
    landed = run_window(stream.spec(plan, sink=ParquetSink(str(tmp_path / "lake"))), spark)
    assert dict(landed.schema)["at"].startswith("time")
    assert rows_of(tmp_path / "lake") == stream.numbers
    assert spark.conf.get("spark.sql.timeType.enabled", None) in (None, "false")


def test_a_scalar_is_the_column_value_and_columns_are_chosen(spark, stream, way: int) -> None:
    seen: list[list[str]] = []
    plan = typed(stream, source=FakeSource(value=Utf8()))
    for columns in (None, ("_number", "value"), ("_value", "value")):
        spec = stream.spec(plan, columns=columns, small_plan_bytes=way)
        df = read_of(spec, spark)[0]
        seen.append(df.columns)
        row = df.filter("value like 'numbers-1:700.%'").first()
        assert isinstance(row["value"], str)
        assert columns != ("_value", "value") or bytes(row["_value"]).decode() == row["value"]
    assert seen == [["value", "_publish_time", "_shard", "_number"], ["_number", "value"], ["_value", "value"]]


def test_a_transform_sees_typed_rows_also_in_its_rehearsal(spark, stream, way: int, tmp_path: Path) -> None:
    stream.set(records=1, torn_every=TORN)
    spec = stream.spec(
        typed(stream),
        sink=ParquetSink(str(tmp_path / "lake")),
        transform="transforms:doubled",
        small_plan_bytes=way,
        undecodable=DecodeErrorPolicy("quarantine"),
    )
    landed = run_window(spec, spark)
    assert landed.schema == (("n", "bigint"), ("shard", "string"), ("twice", "bigint"))
    assert rows_of(tmp_path / "lake") == good(stream)
    assert len(aside_of(tmp_path / "lake")) == 1200 - len(good(stream))


@pytest.mark.parametrize(
    ("columns", "hint"),
    [(("nn",), "did you mean 'n'"), (("number",), "did you mean '_number'"), (("n", "n"), "named once each")],
)
def test_columns_that_no_row_has_are_refused(spark, stream, columns, hint: str) -> None:
    stream.set(records=1)
    with pytest.raises(InvalidRequest, match=hint):
        run_window(stream.spec(typed(stream), columns=columns), spark)


def test_one_bad_event_fails_its_window_with_its_place(spark, stream, tmp_path: Path) -> None:
    stream.set(records=1, torn_every=1101)
    spec = stream.spec(typed(stream), sink=ParquetSink(str(tmp_path / "lake")))
    with pytest.raises(DecodeError, match=r"numbers-[01]: the event at 1100 cannot be decoded") as caught:
        run_window(spec, spark)
    assert "quarantine" in str(caught.value)
    assert rows_of(tmp_path / "lake") == []
    assert not list(tmp_path.glob("lake/_staging/*"))


def test_bad_events_stand_beside_the_rows_and_are_replaced_with_them(spark, stream, way: int, tmp_path: Path) -> None:
    stream.set(records=1, torn_every=TORN)
    sink, policy = ParquetSink(str(tmp_path / "lake")), DecodeErrorPolicy("quarantine")
    spec = stream.spec(typed(stream), sink=sink, small_plan_bytes=way, undecodable=policy)
    for _ in range(2):  # a re-run replaces both
        landed = run_window(spec, spark)
        assert rows_of(tmp_path / "lake") == good(stream)
        aside = aside_of(tmp_path / "lake")
        places = sorted((row["shard"], row["number"]) for row in aside)
        assert sorted([*places, *good(stream)]) == stream.numbers
        assert landed.receipt.rows == landed.written == len(good(stream))
        assert landed.receipt.totals["quarantined"] == len(aside) == landed.receipt.undecodable
        assert landed.receipt.totals["dropped"] == 0
    assert {row["_cause"] for row in aside} != {None}
    one = next(row for row in aside if row["number"] == 1196)
    assert one["value"] == json.dumps({"shard": one["shard"], "n": 1196}).encode()[:-1]
    assert spark.read.parquet(sink.path).count() == len(good(stream))  # readers of the table see rows only
    assert not list(tmp_path.glob("lake/_staging/*"))


def test_a_window_without_bad_events_empties_its_quarantine(spark, stream, tmp_path: Path) -> None:
    stream.set(records=1, torn_every=TORN)
    sink, policy = ParquetSink(str(tmp_path / "lake")), DecodeErrorPolicy("quarantine")
    run_window(stream.spec(typed(stream), sink=sink, undecodable=policy), spark)
    assert aside_of(tmp_path / "lake")
    stream.set(torn_every=0)
    run_window(stream.spec(typed(stream), sink=sink, undecodable=policy), spark)
    assert (rows_of(tmp_path / "lake"), aside_of(tmp_path / "lake")) == (stream.numbers, [])


def test_dropped_events_are_counted_and_gone(spark, stream, tmp_path: Path) -> None:
    stream.set(records=1, torn_every=TORN)
    sink = ParquetSink(str(tmp_path / "lake"))
    spec = stream.spec(typed(stream), sink=sink, undecodable=DecodeErrorPolicy("drop", 0.2))
    landed = run_window(spec, spark)
    assert rows_of(tmp_path / "lake") == good(stream)
    assert landed.receipt.totals["dropped"] == 1200 - len(good(stream)) == landed.receipt.undecodable
    assert aside_of(tmp_path / "lake") == []


@pytest.mark.parametrize("then", ["quarantine", "drop"])
def test_more_than_the_allowed_share_fails_the_window(spark, stream, tmp_path: Path, then) -> None:
    stream.set(records=1, torn_every=TORN)
    sink = ParquetSink(str(tmp_path / "lake"))
    spec = stream.spec(typed(stream), sink=sink, undecodable=DecodeErrorPolicy(then, 0.1))
    with pytest.raises(TooManyDecodeErrors, match=r"17\d of 1,200 events .* more than the 0\.1 that max_"):
        run_window(spec, spark)
    assert rows_of(tmp_path / "lake") == []
    assert not list(tmp_path.glob("lake/_staging/*"))


def test_windows_of_a_chunk_have_their_own_quarantines_and_limits(spark, stream, way: int, tmp_path: Path) -> None:
    stream.set(records=1, torn_every=100)
    plans = [typed(stream, minute, minute + 1) for minute in range(4)]
    sink, policy = ParquetSink(str(tmp_path / "lake")), DecodeErrorPolicy("quarantine", 0.01)
    how = stream.spec(plans[0], sink=sink, small_plan_bytes=way, undecodable=policy)
    results = job.run(JobSpec.of(plans, how), spark)
    # events 99 and 199 of both shards: 2 of 120 in the second and in the fourth minute
    assert [type(result) for result in results] == [Landed, WindowFailure, Landed, WindowFailure]
    assert {result.error_type for result in results if isinstance(result, WindowFailure)} == {"TooManyDecodeErrors"}
    allowed = replace(how, undecodable=DecodeErrorPolicy("quarantine", 0.02))
    assert all(isinstance(one, Landed) for one in job.run(JobSpec.of(plans, allowed), spark))
    folders = sorted((tmp_path / "lake").glob("window_start=*"))
    assert [len(aside_of(folder)) for folder in folders] == [0, 2, 0, 2]
    assert sum(len(rows_of(folder)) for folder in folders) == 4 * 120 - 4
    assert not list(tmp_path.glob("lake/_staging/*"))


def test_a_sink_that_keeps_no_quarantine_refuses_it(spark, stream, tmp_path: Path) -> None:
    stream.set(records=1)
    spec = stream.spec(typed(stream), sink=JsonSink(str(tmp_path / "own")), undecodable=DecodeErrorPolicy("quarantine"))
    with pytest.raises(InvalidRequest, match="keeps no undecodable events"):
        run_window(spec, spark)


def test_the_format_reads_typed_rows_by_options(spark, stream, tmp_path: Path) -> None:
    from airflow_provider_streams.spark.datasource.source import data_source

    stream.set(records=1, torn_every=TORN)
    spark.dataSource.register(data_source("fake"))
    window = {"window_start": "2026-11-20T10:10:00Z", "window_end": "2026-11-20T10:20:00Z"}
    typed_rows = {"value_format": "json", "value_schema": RECORDS.columns, **window, **stream.options}
    reader = spark.read.format("fake").options(**typed_rows)
    rows = reader.option("on_decode_error", "drop").load()
    assert sorted((row.shard, row.n) for row in rows.collect()) == good(stream)
    kept = reader.options(on_decode_error="quarantine", quarantine_path=str(tmp_path / "aside")).load()
    assert kept.count() == len(good(stream))
    files = (tmp_path / "aside").glob("*.quarantine")
    assert sum(pq.ParquetFile(file).metadata.num_rows for file in files) == 1200 - len(good(stream))
    with pytest.raises(Exception, match="DecodeError: numbers-"):
        reader.option("on_decode_error", "fail").load().collect()
    with pytest.raises(Exception, match="needs a folder"):
        spark.read.format("fake").options(**typed_rows, on_decode_error="quarantine").load()
