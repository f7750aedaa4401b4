"""Rows that tasks and replays write are as Spark's own: the same types, in one table that Spark reads."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.formats.arrow.arrow_types import SIMPLE
from airflow_provider_streams.lake.column_types import stored_schema
from airflow_provider_streams.lake.data_files import FileTarget
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.job import job, staging
from airflow_provider_streams.spark.job.dataframes import frame_of
from airflow_provider_streams.spark.job.job_spec import JobSpec
from airflow_provider_streams.spark.quarantine.replay import ParquetReplay, Redecoding
from airflow_provider_streams.testing.fake import FakeSource
from tests.spark.conftest import TERMS
from tests.spark.running import run_window

NOON = datetime(2026, 11, 20, 12, 0, 0, 123456, UTC)
VALUES = {
    "boolean": True,
    **dict.fromkeys(("byte", "short", "int", "long"), -7),
    **dict.fromkeys(("float", "double"), 0.5),
    "string": "é",
    "binary": b"\0\xff",
    "date": date(1900, 1, 1),
    "time": time(23, 59, 59, 123456),
    "timestamp": NOON,
    "timestamp_ntz": NOON.replace(tzinfo=None),
}
NESTED = {
    "small": (pa.decimal128(7, 2), Decimal("-12345.67")),
    "middle": (pa.decimal128(18, 3), Decimal("1.234")),
    "large": (pa.decimal128(38, 10), Decimal("1.5")),
    "list": (pa.list_(pa.field("element", pa.timestamp("us", tz="UTC"))), [NOON, None]),
    "map": (pa.map_(pa.string(), pa.decimal128(4, 1)), [("a", Decimal("1.5"))]),
    "struct": (pa.struct([("a", pa.int8()), ("b", pa.list_(pa.field("element", pa.time64("ns"))))]), None),
}


def every_type() -> pa.Table:
    """One row of values, and one of nulls."""
    types = {**SIMPLE, **{name: type_ for name, (type_, _) in NESTED.items()}}
    values = {**VALUES, **{name: value for name, (_, value) in NESTED.items()}}
    values["struct"] = {"a": 1, "b": [time(1, 2, 3)]}
    nanoseconds = pa.array([86_399_999_999_999, None]).cast(pa.time64("ns"))  # Spark also cuts them
    return pa.table(
        {name: pa.array([values[name], None], type_) for name, type_ in types.items()} | {"nano": nanoseconds}
    )


def schema_of(file: Path) -> list[str]:
    found = pq.ParquetFile(file).schema
    return [str(found.column(number)) for number in range(len(found))]


def test_every_type_is_written_as_spark_writes_it(spark, stream, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    table = every_type()
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    frame_of(spark, table).write.parquet(f"file://{tmp_path}/both")
    theirs = next(file for file in (tmp_path / "both").glob("*.parquet") if pq.ParquetFile(file).metadata.num_rows)
    target = FileTarget(Storage(f"file://{tmp_path}/both"), "", "ours-", stored_schema(table.schema))
    (ours,) = staging.write_table(table, target)
    assert schema_of(tmp_path / "both" / ours.path) == schema_of(theirs)
    one = spark.read.parquet(f"file://{tmp_path}/both/{ours.path}")
    assert one.schema == spark.read.parquet(f"file://{theirs}").schema
    both = spark.read.parquet(f"file://{tmp_path}/both")
    assert (both.count(), both.drop("map").distinct().count()) == (4, 2)
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    spark.conf.unset("spark.sql.timeType.enabled")


def test_a_replayed_window_is_one_table_for_spark(spark, stream, tmp_path: Path) -> None:
    stream.set(records=1, bare_every=6)
    sink = ParquetSink(str(tmp_path / "lake"))
    plan = typed(stream, Json("n long, shard string not null"))
    spec = stream.spec(plan, sink=sink, undecodable=DecodeErrorPolicy("quarantine"))
    landed = run_window(spec, spark)
    assert landed.receipt.totals["quarantined"] == 200
    before = spark.read.parquet(sink.path).schema
    redecoded = replace(plan, decoding=typed(stream, Json("n long, shard string")).decoding)
    replay = ParquetReplay(sink, TERMS, Redecoding(redecoded, landed.receipt, None, landed.schema))
    with closing(stream.system) as system:
        assert replay.decode(system).schema == landed.schema
    replay.put()
    replay.discard()
    table = spark.read.parquet(sink.path)
    assert table.schema == before
    assert sorted((row["_shard"], row["n"]) for row in table.collect()) == stream.numbers
    assert table.filter("shard is null").count() == 200
    files = ParquetTable(sink.path).folder_of(plan.window).glob("*.parquet")
    assert len({tuple(schema_of(file)) for file in files}) == 1


def typed(stream, value: Json, minute: int | None = None):
    plan = stream.plan() if minute is None else stream.plan(minute, minute + 1)
    return stream.system.plan(PlanRequest(FakeSource(value=value), plan.window, "tests", target_split_bytes=4000))


def test_windows_of_one_chunk_whose_plans_decode_otherwise_are_read_apart(spark, stream, way, tmp_path: Path) -> None:
    """As after a replay, or a new schema: columns are never those of another window."""
    stream.set(records=1)
    values = (Json("n long, shard string"), Json("n long, other string"), Json("n long, shard string, other string"))
    plans = [typed(stream, value, 10 + number) for number, value in enumerate(values)]
    sink = ParquetSink(str(tmp_path / "lake"))
    chunk = JobSpec.of(plans, stream.spec(plans[0], sink=sink, small_plan_bytes=way))
    results = job.run(chunk, spark)
    assert [getattr(one, "error_type", "landed") for one in results] == ["landed", "LandingMismatch", "landed"]
    rows = spark.read.option("mergeSchema", "true").parquet(sink.path).collect()
    assert len(rows) == 240
    assert all(row["shard"] == row["_shard"] and row["other"] is None for row in rows)


def test_a_window_of_an_older_plan_lands_as_it_did_after_one_that_brings_columns(
    spark, stream, way, tmp_path: Path
) -> None:
    """The table gets them in this very job: after all plans of the job were pinned."""
    stream.set(records=1)
    narrow, wide = Json("n long"), Json("n long, shard string")
    sink = ParquetSink(str(tmp_path / "lake"))
    plans = [typed(stream, value, 10 + number) for number, value in enumerate((narrow, wide, narrow))]
    how = stream.spec(plans[0], sink=sink, small_plan_bytes=way)
    terms = replace(TERMS, columns=run_window(how, spark).schema)
    chunk = JobSpec.of([plans[1], plans[0], plans[2]], replace(how, terms=terms))
    for _ in range(2):
        results = job.run(chunk, spark)
        assert [len(one.schema) for one in results] == [5, 4, 4]
        rows = spark.read.option("mergeSchema", "true").parquet(sink.path).collect()
        assert sorted((row["_shard"], row["n"]) for row in rows) == [one for one in stream.numbers if one[1] < 780]
        assert sum(row["shard"] is None for row in rows) == 240
