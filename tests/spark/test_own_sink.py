"""A sink of the user's own is staged, and committed only after the proof."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_streams.errors import ReceiptMismatch
from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.spark.batch_job import run_chunk
from airflow_provider_streams.spark.batch_spec import ChunkSpec
from airflow_provider_streams.spark.job import run
from airflow_provider_streams.spark.spec import JobSpec
from tests.spark.own_sink import JsonSink

pytestmark = pytest.mark.spark


def landed(root: Path) -> list[tuple[str, int]]:
    files = root.glob("[!.]*/*.json")
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sorted((row["shard"], row["number"]) for row in rows)


def test_it_lands_a_proven_window_and_lands_it_again(spark, stream, way: int, tmp_path: Path) -> None:
    sink = JsonSink(str(tmp_path / "lake"))
    assert isinstance(sink, Sink)
    spec = stream.spec(sink=sink, small_plan_bytes=way)
    assert JobSpec.from_json(spec.to_json(), spec.secret_environment()).sink == sink
    for _ in range(2):
        assert run(spec, spark).written == len(stream.numbers)
        assert landed(tmp_path / "lake") == stream.numbers


def test_an_unproven_read_commits_nothing_and_leaves_nothing(spark, stream, way: int, tmp_path: Path) -> None:
    plan = stream.plan()
    stream.set(fault="drop:1:700")
    with pytest.raises(ReceiptMismatch):
        run(stream.spec(plan, sink=JsonSink(str(tmp_path / "lake")), small_plan_bytes=way), spark)
    assert [*(tmp_path / "lake").glob("*")] == []


def test_many_windows_land_one_by_one(spark, stream, way: int, tmp_path: Path) -> None:
    plans = [stream.plan(minute, minute + 5) for minute in (10, 15)]
    how = stream.spec(plans[0], sink=JsonSink(str(tmp_path / "lake")), small_plan_bytes=way)
    results = run_chunk(ChunkSpec(tuple(replace(how, plan=plan) for plan in plans)), spark)
    assert [one.written for one in results if isinstance(one, Landed)] == [600, 600]
    assert landed(tmp_path / "lake") == stream.numbers
