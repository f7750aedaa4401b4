"""A job's description holds no secrets; they travel separately."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest, PreflightFailed, RedirectRefused, SinkError
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.sinks.landing import Held, TableMark, TableTerms
from airflow_provider_streams.model.sinks.sink import ParquetSink, Sink
from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.error_transport import typed
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem


@pytest.fixture
def spec() -> WindowSpec:
    window = Window(EPOCH, EPOCH + timedelta(minutes=1))
    plan = FakeSystem({}).plan(PlanRequest(FakeSource(), window, "r"))
    mark = TableMark("1f", "fake:fake_default:numbers", "r")
    return WindowSpec(
        plan,
        ParquetSink("/lake"),
        ("value",),
        "m:f",
        "record",
        {"token": "hunter2", "events": "100"},
        5,
        terms=TableTerms(mark, (("value", "binary"),), replace_overlaps=True, set_aside=True),
        held=Held(7, 2),
        table={"uri": "http://catalog", "s3.secret-access-key": "hunter3"},
    )


def test_it_survives_the_way_to_another_process(spec: WindowSpec) -> None:
    job = JobSpec((spec,))
    assert JobSpec.from_json(json.loads(json.dumps(job.to_json())), spec.secret_environment()) == job


def test_its_texts_hold_no_secret(spec: WindowSpec) -> None:
    assert "hunter" not in json.dumps(JobSpec((spec,)).to_json()) + repr(spec)
    environment = spec.secret_environment()
    assert environment.pop("STREAMS_SECRET_TOKEN") == "hunter2"
    assert {name: json.loads(text) for name, text in environment.items()} == {
        "STREAMS_SECRET_TABLE_CONNECTION": {"uri": "http://catalog", "s3.secret-access-key": "hunter3"}
    }
    assert set(spec.hidden) == {"hunter2", "hunter3"}


def test_an_error_of_a_job_shows_the_addresses_of_the_connection(spec: WindowSpec) -> None:
    """Users must copy the address into the connection; only its secrets are hidden."""
    refused = RedirectRefused("http://catalog:8181", "http://10.0.0.7:26663", "its answer sets s3.endpoint")
    spec = replace(spec, table={"uri": "http://catalog:8181/iceberg", "s3.secret-access-key": "hunter3"})
    assert str(typed(refused, spec.hidden)) == str(refused)
    assert "http://10.0.0.7:26663" in str(refused)
    assert "hunter3" not in str(typed(SinkError("lake", "hunter3"), spec.hidden))


def test_a_secret_that_did_not_arrive_is_named(spec: WindowSpec) -> None:
    with pytest.raises(PreflightFailed, match="STREAMS_SECRET_TOKEN"):
        JobSpec.from_json(JobSpec((spec,)).to_json(), {})


def test_a_table_without_an_owner_is_refused(spec: WindowSpec) -> None:
    with pytest.raises(InvalidRequest, match="one owner"):
        WindowSpec(spec.plan, ParquetSink("/lake"))


@pytest.mark.parametrize(
    ("sink", "transform", "small_plan_bytes", "idle"),
    [
        (ParquetSink("/lake"), None, 0, "idle: tasks write what they read"),
        (ParquetSink("/lake"), "m:f", 0, ""),
        (ParquetSink("/lake"), "m:f", 1 << 30, "idle: few rows"),
        (TableSink("prod.shop.orders"), None, 0, ""),
        (None, None, 0, ""),
    ],
)
def test_the_jvm_is_idle_where_rows_do_not_pass_it(
    spec: WindowSpec, sink: Sink | None, transform: str | None, small_plan_bytes: int, idle: str
) -> None:
    one = replace(spec, sink=sink, transform=transform, small_plan_bytes=small_plan_bytes)
    assert JobSpec((one,)).leaves_jvm_idle == JobSpec((one, one)).leaves_jvm_idle == bool(idle)
