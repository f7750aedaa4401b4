"""Windows of several sources into several tables, in one job: what is wrong with one is no matter of the others."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams import Json, Window
from airflow_provider_streams.airflow_runtime.spark_session_launchers import EmbeddedLauncher
from airflow_provider_streams.errors import LandingMismatch, SystemUnavailable
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.sinks.landing import Landed, TableMark, TableTerms
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.job import job, plan_reading, staging
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings
from airflow_provider_streams.testing.fake import EPOCH, FakeSource

NAMES = ("orders", "clicks", "views", "carts")
ROWS = {"orders": "n long", "clicks": "shard string", "views": "n long, shard string"}
"""What the rows of some are decoded as; `carts` is not."""


@pytest.fixture
def chunk(stream, tmp_path: Path) -> Any:
    """A window of each of four streams, whose rows have other columns each."""
    stream.set(events=3000, records=1)

    def make(small_plan_bytes: int = 1 << 25, names: tuple[str, ...] = NAMES, **how: Any) -> JobSpec:
        return JobSpec(
            tuple(spec_of(stream, name, tmp_path, small_plan_bytes=small_plan_bytes, **how) for name in names),
            fans_out=True,
        )

    return make


def spec_of(stream: Any, name: str, lake: Path, **how: Any) -> WindowSpec:
    source = FakeSource(name, value=Json(ROWS[name]) if name in ROWS else None)
    window = Window(EPOCH + timedelta(minutes=1), EPOCH + timedelta(minutes=2))
    plan = stream.system.plan(PlanRequest(source, window, "tests", target_split_bytes=4000))
    terms = TableTerms(TableMark(f"table-{name}", source.key, "tests"))
    sink = ParquetSink(str(lake / "lake" / name))
    return WindowSpec(plan, sink, options=stream.options, terms=terms, **how)


def table(lake: Path, name: str) -> list[dict[str, Any]]:
    files = sorted((lake / "lake" / name).glob("window_start=*/**/*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row.get("n", row.get("_number", row.get("number"))) for row in rows)


TRUTH = sorted([*range(60, 120)] * 2)


def test_each_lands_in_its_own_table_with_its_own_columns(spark, chunk, way: int, tmp_path: Path) -> None:
    made = chunk(way)
    results = job.run(made, spark)
    assert [getattr(one, "receipt", one).rows for one in results] == [120] * 4
    assert [one.receipt.fingerprint for one in results] == [spec.plan.fingerprint for spec in made.specs]
    for name in NAMES:
        assert numbers(table(tmp_path, name)) == TRUTH
    assert [set(table(tmp_path, name)[0]) - {"window_start", "window_end"} for name in NAMES[:3]] == [
        set(dict(one.schema)) for one in results[:3]
    ]
    assert "shard" in dict(results[1].schema)
    assert "n" not in dict(results[1].schema)


def test_all_are_read_in_one_pass_of_tasks(spark, chunk, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    stage = staging.stage_by_tasks

    def counted(specs: Any, *rest: Any) -> Any:
        passes.append(len(specs))
        return stage(specs, *rest)

    monkeypatch.setattr(staging, "stage_by_tasks", counted)
    job.run(chunk(small_plan_bytes=0), spark)
    assert passes == [4]


def test_one_of_an_earlier_life_fails_alone(spark, chunk, tmp_path: Path) -> None:
    made = chunk()
    plan = made.specs[2].plan
    earlier = replace(plan, source=replace(plan.source, incarnation=(("views", "0"),)))
    specs = replace(made, specs=(*made.specs[:2], replace(made.specs[2], plan=earlier), made.specs[3]))
    results = job.run(specs, spark)
    assert [getattr(one, "error_type", "") for one in results] == ["", "", "SourceReplaced", ""]
    assert numbers(table(tmp_path, "orders")) == TRUTH
    assert table(tmp_path, "views") == []


def test_what_cannot_be_read_or_written_of_one_is_no_matter_of_the_others(
    spark, chunk, way: int, tmp_path: Path
) -> None:
    made = chunk(way)
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "clicks").write_text("no folder")
    columns = replace(made.specs[0].terms, columns=(("gone", "bigint"),))
    specs = replace(made, specs=(replace(made.specs[0], terms=columns), *made.specs[1:]))
    results = job.run(specs, spark)
    assert [getattr(one, "error_type", "") for one in results] == ["LandingMismatch", "SinkError", "", ""]
    assert numbers(table(tmp_path, "views")) == TRUTH
    assert numbers(table(tmp_path, "carts")) == TRUTH


def test_what_is_wrong_with_the_one_that_is_left_is_still_its_own_matter(spark, chunk, way: int) -> None:
    made = chunk(way, names=("orders",))
    columns = replace(made.how.terms, columns=(("gone", "bigint"),))
    alone = replace(made, specs=(replace(made.how, terms=columns),))
    assert [one.error_type for one in job.run(alone, spark)] == ["LandingMismatch"]
    with pytest.raises(LandingMismatch):
        job.run(replace(alone, fans_out=False), spark)


@pytest.mark.slow_except("driver")
def test_undecodable_events_are_told_of_each(spark, chunk, way: int, stream) -> None:
    stream.set(torn_every=10)
    results = job.run(chunk(way, undecodable=DecodeErrorPolicy("quarantine")), spark)
    assert [one.receipt.totals["quarantined"] for one in results] == [12, 12, 12, 0]
    failing = job.run(chunk(way, undecodable=DecodeErrorPolicy()), spark)
    assert [getattr(one, "error_type", "") for one in failing] == ["DecodeError"] * 3 + [""]


def test_a_transform_sees_each_of_them(spark, chunk, tmp_path: Path) -> None:
    made = chunk(transform="transforms:per_shard", names=("carts", "views"))
    results = job.run(made, spark)
    assert [getattr(one, "rows", None) or getattr(one, "receipt", one).rows for one in results] == [120, 120]
    assert sorted(row["count"] for row in table(tmp_path, "carts")) == [60, 60]
    assert sorted(row["count"] for row in table(tmp_path, "views")) == [60, 60]


def test_a_chunk_is_the_same_after_its_json(chunk) -> None:
    made = chunk()
    read = JobSpec.from_json(json.loads(json.dumps(made.to_json())), made.how.secret_environment())
    assert (read.specs, read.fans_out) == (made.specs, True)
    assert len(made.to_json()["tables"]) == 4
    alike = JobSpec.of([made.how.plan] * 3, made.how)
    assert len(alike.to_json()["tables"]) == 1


def test_three_that_nobody_answers_for_are_enough(spark, chunk, stream, tmp_path: Path, monkeypatch) -> None:
    asked = []

    def silent(spec: WindowSpec, *_: Any) -> Any:
        asked.append(spec)
        raise SystemUnavailable("fake", "it says nothing")

    names = tuple(f"s{number}" for number in range(30))
    monkeypatch.setattr(plan_reading, "read_table", silent)
    results = job.run(chunk(small_plan_bytes=1 << 25, names=names), spark)
    assert {one.error_type for one in results} == {"SystemUnavailable"}
    assert all(one.retryable for one in results)
    assert len(asked) <= 3 + 4


def test_small_ones_need_no_session(chunk, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_streams.spark.launch import embedded

    started = []
    monkeypatch.setattr(embedded, "embedded_session", lambda *_, **__: started.append(1))
    results = EmbeddedLauncher(SparkSettings({})).run(chunk(small_plan_bytes=1 << 25))
    assert all(isinstance(one, Landed) for one in results)
    assert started == []


def test_small_ones_that_are_not_start_one(spark, chunk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_reading, "MOST_BYTES", 1000)
    results = EmbeddedLauncher(SparkSettings({})).run(chunk(small_plan_bytes=1 << 25))
    assert all(isinstance(one, Landed) for one in results)
    assert numbers(table(tmp_path, "views")) == TRUTH
