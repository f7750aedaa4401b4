"""Windows of an Iceberg table, replaced by Spark's own `overwrite`."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from airflow_provider_streams.errors import (
    CommitStateUnknown,
    LandingMismatch,
    ReceiptMismatch,
    SinkError,
    TableOwnedByOther,
    TableUnavailable,
    WindowsOverlap,
)
from airflow_provider_streams.lake.table_properties import mark_in
from airflow_provider_streams.model.sinks.landing import Landed, TableMark, TableTerms
from airflow_provider_streams.spark.catalog.table import SparkTable
from airflow_provider_streams.spark.job import commit_checks
from airflow_provider_streams.spark.job.job import run
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from airflow_provider_streams.systems.registry import declaration_of
from tests.spark.conftest import TERMS, WAYS
from tests.spark.running import run_window
from tests.spark.tables.landing import failing_overwrites

TASKS = WAYS["tasks"]


def landed(spark, sink) -> list[tuple[str, int]]:
    return sorted((row["shard"], row["number"]) for row in spark.table(sink.table).select("shard", "number").collect())


def windows(spark, sink) -> list[datetime]:
    rows = spark.sql(f"SELECT DISTINCT date_format(window_start, 'HH:mm') AS at FROM {sink.table}").collect()  # noqa: S608
    return sorted(row["at"] for row in rows)


@pytest.mark.parametrize(("name", "transform"), [("driver", "transforms:with_a_column_more"), ("tasks", None)])
def test_a_window_lands_is_replaced_and_emptied(spark, stream, sink, name, transform):
    way = WAYS[name]
    for plan in (stream.plan(10, 20), stream.plan(20, 30), stream.plan(10, 20)):
        spec = stream.spec(plan, sink=sink, small_plan_bytes=way, transform=transform)
        assert JobSpec.from_json(JobSpec((spec,)).to_json(), spec.secret_environment()).how == spec
        before = len(spark._jsc.getPersistentRDDs())
        done = run_window(spec, spark)
        assert done.written == done.receipt.rows == 1200
        assert len(spark._jsc.getPersistentRDDs()) <= before  # nothing of it stays on the executors' disks
    numbers = [(f"numbers-{shard}", number) for shard in range(2) for number in range(600, 1800)]
    assert landed(spark, sink) == numbers
    assert windows(spark, sink) == ["10:10", "10:20"]
    empty = stream.spec(stream.empty_plan(), sink=sink, small_plan_bytes=way, transform=transform)
    assert run_window(empty, spark).written == 0
    assert windows(spark, sink) == ["10:20"]


def test_its_table_says_whose_it_is_and_each_commit_which_plan_it_holds(spark, stream, sink):
    plan = stream.plan()
    run_window(stream.spec(plan, sink=sink), spark)
    properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {sink.table}").collect()}
    assert mark_in(properties) == TERMS.mark
    newest = spark.sql(f"SELECT summary FROM {sink.table}.snapshots ORDER BY committed_at DESC").first()["summary"]  # noqa: S608
    assert newest["streams.fingerprint"] == plan.fingerprint
    assert newest["streams.window"] == str(plan.window)
    files = spark.sql(f"SELECT partition.window_start AS start FROM {sink.table}.files").collect()  # noqa: S608
    assert len({row["start"] for row in files}) == 1


def test_an_unproven_read_leaves_the_old_window(spark, stream, sink):
    way = TASKS
    plan = stream.plan()
    run_window(stream.spec(plan, sink=sink, small_plan_bytes=way), spark)
    stream.set(fault="drop:1:700")
    with pytest.raises(ReceiptMismatch):
        run_window(stream.spec(plan, sink=sink, small_plan_bytes=way), spark)
    assert landed(spark, sink) == stream.numbers


def test_a_task_that_dies_is_tried_again_and_no_row_is_there_twice(spark, stream, sink):
    stream.set(fault="crash:0")
    assert run_window(stream.spec(sink=sink, small_plan_bytes=TASKS), spark).written == 1200
    assert landed(spark, sink) == stream.numbers


def test_rows_that_are_lost_after_the_proof_are_not_read_again(spark, stream, sink, monkeypatch):
    plan = stream.plan()
    run_window(stream.spec(plan, sink=sink, small_plan_bytes=TASKS), spark)
    commit = commit_checks.commit

    def lose(*given: Any) -> Any:
        blocks = spark._jsc.sc().env().blockManager()
        for number in list(spark._jsc.getPersistentRDDs()):
            blocks.removeRdd(number)
        return commit(*given)

    monkeypatch.setattr(commit_checks, "commit", lose)
    with pytest.raises(TableUnavailable):
        run_window(stream.spec(plan, sink=sink, small_plan_bytes=TASKS), spark)
    assert landed(spark, sink) == stream.numbers


@pytest.mark.parametrize("faults", [("answer lost",), ("before", "answer lost", "before")])
def test_a_lost_answer_is_settled_by_overwriting_again(spark, stream, sink, monkeypatch, faults):
    plan = stream.plan()
    left = failing_overwrites(monkeypatch, *faults)
    if len(faults) == 3:
        with pytest.raises(CommitStateUnknown):
            run_window(stream.spec(plan, sink=sink), spark)
    assert run_window(stream.spec(plan, sink=sink), spark).written == 1200
    assert not left
    assert landed(spark, sink) == stream.numbers


def test_windows_that_share_time_are_refused_or_taken_out(spark, stream, sink):
    run_window(stream.spec(stream.plan(10, 20), sink=sink), spark)
    other = stream.spec(stream.plan(15, 25), sink=sink)
    with pytest.raises(WindowsOverlap):
        run_window(other, spark)
    assert windows(spark, sink) == ["10:10"]
    run_window(replace(other, terms=replace(TERMS, replace_overlaps=True)), spark)
    assert windows(spark, sink) == ["10:15"]


def test_a_table_of_another_reader_is_left_alone(spark, stream, sink):
    run_window(stream.spec(sink=sink), spark)
    for mark in (TableMark("spark-tests", TERMS.mark.source, "other"), replace(TERMS.mark, id="renewed")):
        with pytest.raises(TableOwnedByOther):
            run_window(stream.spec(sink=sink, terms=TableTerms(mark)), spark)
    assert landed(spark, sink) == stream.numbers


@pytest.mark.parametrize(
    "terms", [{"set_aside": True}, {"earlier": (TERMS.mark.id,)}], ids=lambda given: next(iter(given))
)
def test_what_was_landed_under_an_earlier_mark_is_set_aside(spark, stream, sink, terms):
    run_window(stream.spec(stream.plan(20, 30), sink=sink), spark)
    renewed = TableTerms(replace(TERMS.mark, id="renewed"))
    run_window(stream.spec(sink=sink, terms=replace(renewed, **terms)), spark)
    assert windows(spark, sink) == ["10:10"]
    run_window(stream.spec(stream.plan(20, 30), sink=sink, terms=renewed), spark)
    assert windows(spark, sink) == ["10:10", "10:20"]


def test_a_table_of_another_engine_is_claimed_while_it_is_empty(spark, stream, sink):
    columns = "shard string, number bigint, window_start timestamp, window_end timestamp"
    widens = replace(sink, widen=True)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {sink.table.rpartition('.')[0]}")
    spark.sql(f"CREATE TABLE {sink.table} ({columns})")
    assert run_window(stream.spec(sink=widens), spark).written == 1200
    spark.sql(f"DROP TABLE {sink.table}")
    spark.sql(f"CREATE TABLE {sink.table} ({columns})")
    spark.sql(f"INSERT INTO {sink.table} VALUES ('mine', 1, current_timestamp(), current_timestamp())")  # noqa: S608
    with pytest.raises(TableOwnedByOther, match="whose"):
        run_window(stream.spec(sink=widens), spark)
    assert landed(spark, sink) == [("mine", 1)]


def test_a_refused_window_leaves_an_unowned_table_as_it_was(spark, stream, sink):
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {sink.table.rpartition('.')[0]}")
    spark.sql(f"CREATE TABLE {sink.table} (shard string)")
    with pytest.raises(SinkError, match="it lacks"):
        run_window(stream.spec(sink=sink), spark)
    properties = {row[0] for row in spark.sql(f"SHOW TBLPROPERTIES {sink.table}").collect()}
    assert not [name for name in properties if name.startswith("streams.")]
    spark.sql(f"INSERT INTO {sink.table} VALUES ('mine')")  # noqa: S608
    with pytest.raises(TableOwnedByOther, match="whose"):
        run_window(stream.spec(sink=replace(sink, widen=True)), spark)


@pytest.mark.parametrize("system", ["pulsar", "pravega"])
def test_spark_selects_rows_with_all_metadata_columns(spark, sink, system):
    declared = declaration_of(system)
    names = [declared.metadata_name(name) for name in declared.columns]
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {sink.table.rpartition('.')[0]}")
    spark.sql(f"CREATE TABLE {sink.table} ({', '.join(f'{name} INT' for name in names)})")
    rows = spark.table(sink.table)
    assert (rows.columns, rows.collect()) == (names, [])
    spark.sql(f"ALTER TABLE {sink.table} ADD COLUMN _partition INT")
    with pytest.raises(Exception, match="reserved for Iceberg metadata columns"):
        spark.table(sink.table).collect()


def test_a_table_that_is_gone_is_made_again_only_on_request(spark, stream, sink):
    held = replace(TERMS, columns=run_window(stream.spec(sink=sink), spark).schema)
    spark.sql(f"DROP TABLE {sink.table}")
    with pytest.raises(TableOwnedByOther, match="is gone"):
        run_window(stream.spec(sink=sink, terms=held), spark)
    run_window(stream.spec(sink=sink, terms=replace(held, set_aside=True)), spark)
    assert landed(spark, sink) == stream.numbers


def test_columns_that_it_lacks_are_added_where_they_may(spark, stream, sink):
    run_window(stream.spec(sink=sink, transform="tests.spark.tables.test_landing:with_a_point"), spark)
    more = stream.spec(sink=sink, transform="tests.spark.tables.test_landing:with_more_of_it")
    with pytest.raises(SinkError, match=r"lacks .*point .*widen=True"):
        run_window(more, spark)
    run_window(replace(more, sink=replace(sink, widen=True)), spark)
    row = spark.sql(f"SELECT point.x AS x, point.y AS y, `odd ``name` AS odd FROM {sink.table}").first()  # noqa: S608
    assert (row["x"], row["y"], row["odd"]) == (1, 2, "z")
    assert "${env:HOME}" in spark.table(sink.table).columns
    with pytest.raises(SinkError, match="the rows have"):
        run_window(replace(more, transform="tests.spark.tables.test_landing:with_another_point"), spark)


def test_what_the_table_got_after_the_plan_of_a_window_is_null_in_its_rows(spark, stream, sink):
    widening = replace(sink, widen=True)
    older, newer = ("shard", "number"), ("shard", "number", "value")
    run_window(stream.spec(sink=widening, columns=older), spark)
    grown = run_window(stream.spec(stream.plan(20, 30), sink=widening, columns=newer), spark).schema
    again = stream.spec(sink=widening, columns=older, terms=replace(TERMS, columns=grown))
    with pytest.raises(LandingMismatch, match="value is missing, it was binary"):
        run_window(again, spark)
    run_window(replace(again, terms=replace(again.terms, later=("value",))), spark)
    counted = spark.sql(f"SELECT window_start, count(value) AS n FROM {sink.table} GROUP BY ALL ORDER BY 1")  # noqa: S608
    assert [row["n"] for row in counted.collect()] == [0, 1200]
    assert [one for one in landed(spark, sink) if one[1] < 1200] == stream.numbers


def test_columns_that_another_attempt_adds_meanwhile_are_there(spark, stream, sink, monkeypatch):
    run_window(stream.spec(sink=sink), spark)
    more = stream.spec(sink=replace(sink, widen=True), transform="transforms:with_a_column_more")
    before = spark.table(sink.table).schema
    spark.sql(f"ALTER TABLE {sink.table} ADD COLUMNS (twice bigint)")
    known, real = [before], SparkTable.columns
    monkeypatch.setattr(SparkTable, "columns", lambda table: known.pop() if known else real(table))
    assert run_window(more, spark).written == 1200
    assert not known


def with_a_point(df: Any) -> Any:
    return df.selectExpr("*", "named_struct('x', 1) AS point")


def with_more_of_it(df: Any) -> Any:
    more = df.selectExpr("*", "named_struct('x', 1, 'y', 2) AS point", "'z' AS `odd ``name`")
    return more.withColumn("${env:HOME}", F.lit(1))


NARROW = (
    "named_struct('x', 1) AS point",
    "array(named_struct('x', 2), null) AS points",
    "map('k', named_struct('x', 3)) AS named",
    "named_struct('a', array(named_struct('x', 4))) AS deep",
    "cast(null AS struct<x: int>) AS none",
)


def with_narrow_structs(df: Any) -> Any:
    return df.selectExpr("*", *NARROW)


def with_wide_structs(df: Any) -> Any:
    wide = [one.replace("('x'", "('odd.`name', 7, 'x'") for one in NARROW]
    return df.selectExpr("*", *(one.replace("<x:", "<`odd.``name`: int, x:") for one in wide))


def test_narrower_structs_go_into_a_table_that_has_wider_ones(spark, stream, sink):
    widening, nested = replace(sink, widen=True), ("point", "points", "named", "deep", "none")
    for minute, name in ((10, "narrow"), (20, "wide"), (10, "narrow"), (30, "narrow")):
        transform = f"tests.spark.tables.test_landing:with_{name}_structs"
        run_window(stream.spec(stream.plan(minute, minute + 10), sink=widening, transform=transform), spark)
    at = "date_format(window_start, 'mm') AS at"
    rows = (
        spark.table(sink.table).selectExpr(at, *(f"to_json({name}) AS {name}" for name in nested)).distinct().collect()
    )
    narrow = ('{"x":1}', '[{"x":2},null]', '{"k":{"x":3}}', '{"a":[{"x":4}]}', None)
    wide = tuple(one and one.replace("}", ',"odd.`name":7}', 1) for one in narrow)
    assert {row["at"]: row[1:] for row in rows} == {"10": narrow, "20": wide, "30": narrow}


NUMBERS = {
    "short": ("1", "cast(0.5 AS float)", "cast(1.25 AS decimal(9,2))"),
    "long": ("1099511627776", "0.1D", "cast(1234567890.25 AS decimal(12,2))"),
}


def _with_numbers(df: Any, whole: str, broken: str, amount: str) -> Any:
    inner = f"named_struct('x', {whole}, 'amount', {amount})"
    columns = (f"{whole} AS whole", f"{broken} AS broken", f"{amount} AS amount", f"{inner} AS inside")
    return df.selectExpr("*", *columns, f"array({inner}, null) AS listed", f"map('k', {broken}) AS named")


def with_short_numbers(df: Any) -> Any:
    return _with_numbers(df, *NUMBERS["short"])


def with_long_numbers(df: Any) -> Any:
    return _with_numbers(df, *NUMBERS["long"])


def test_numbers_become_wider_where_they_may(spark, stream, sink):
    widening, nested = replace(sink, widen=True), ("whole", "broken", "amount", "inside", "listed", "named")

    def spec(minute: int, name: str, target: Any = widening) -> WindowSpec:
        transform = f"tests.spark.tables.test_landing:with_{name}_numbers"
        return stream.spec(stream.plan(minute, minute + 10), sink=target, transform=transform)

    run_window(spec(10, "short"), spark)
    with pytest.raises(SinkError, match=r"whole as long.*widen=True"):
        run_window(spec(20, "long", sink), spark)
    for minute, name in ((20, "long"), (30, "short"), (10, "short")):
        run_window(spec(minute, name), spark)
    at = "date_format(window_start, 'mm') AS at"
    found = spark.table(sink.table).selectExpr(at, *(f"to_json(struct({name})) AS {name}" for name in nested))
    inner = [f'"x":{whole},"amount":{amount}' for whole, amount in ((1, 1.25), (2**40, 1234567890.25))]
    short, long = (
        tuple(
            f"{{{one}}}"
            for one in (
                f'"whole":{whole}',
                f'"broken":{broken}',
                f'"amount":{amount}',
                f'"inside":{{{inside}}}',
                f'"listed":[{{{inside}}},null]',
                f'"named":{{"k":{broken}}}',
            )
        )
        for whole, broken, amount, inside in ((1, 0.5, 1.25, inner[0]), (2**40, 0.1, 1234567890.25, inner[1]))
    )
    assert {row["at"]: row[1:] for row in found.distinct().collect()} == {"10": short, "20": long, "30": short}


def with_another_point(df: Any) -> Any:
    return df.selectExpr("*", "'x' AS point")


def test_many_windows_of_a_job_and_two_jobs_at_once(spark, stream, sink):
    plans = [stream.plan(minute, minute + 5) for minute in (10, 15)]
    how = stream.spec(plans[0], sink=sink)
    chunk = JobSpec(tuple(replace(how, plan=plan) for plan in plans))
    found: list[Any] = []
    jobs = [threading.Thread(target=lambda: found.extend(run(chunk, spark))) for _ in range(2)]
    for one in jobs:
        one.start()
    for one in jobs:
        one.join()
    assert [one.written for one in found if isinstance(one, Landed)] == [600] * 4, found
    assert landed(spark, sink) == stream.numbers
    assert windows(spark, sink) == ["10:10", "10:15"]


def test_each_topic_of_a_job_lands_in_its_own_table(spark, stream, sink):
    sinks = [replace(sink, table=f"{sink.table}_{name}") for name in ("one", "two")]
    specs = [stream.spec(stream.plan(10, 15 + 5 * number), sink=one) for number, one in enumerate(sinks)]
    found = run(JobSpec(tuple(specs), fans_out=True), spark)
    assert [one.written for one in found if isinstance(one, Landed)] == [600, 1200], found
    assert [len(landed(spark, one)) for one in sinks] == [600, 1200]
