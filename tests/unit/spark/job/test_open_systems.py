"""A job connects to its stream system once per thread, and leaves nothing open."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_provider_streams.errors import SourceReplaced
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.sinks.landing import Landed, TableMark, TableTerms
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from airflow_provider_streams.spark.job.open_systems import OpenSystems
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem
from airflow_provider_streams.testing.landing import run_without_spark

OPTIONS = {"events": "600"}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many systems were opened, and how many of them closed."""
    found, make = {"opened": 0, "closed": 0}, FakeSystem.from_options.__func__  # type: ignore[attr-defined]

    def counted(cls: type[FakeSystem], options: dict[str, str]) -> FakeSystem:
        found["opened"] += 1
        return make(cls, options)

    def close(self: FakeSystem) -> None:
        found["closed"] += 1

    monkeypatch.setattr(FakeSystem, "from_options", classmethod(counted))
    monkeypatch.setattr(FakeSystem, "close", close)
    return found


@pytest.fixture
def spec(tmp_path: Path) -> WindowSpec:
    plan = FakeSystem.from_options(OPTIONS).plan(
        PlanRequest(FakeSource(), Window(EPOCH, EPOCH + timedelta(minutes=1)), "r", target_split_bytes=1 << 20)
    )
    terms = TableTerms(TableMark("1f", FakeSource().key, "r"))
    return WindowSpec(plan, ParquetSink(str(tmp_path / "lake")), options=OPTIONS, terms=terms)


def test_a_small_window_opens_no_more_systems_than_it_has_threads(spec: WindowSpec, counts: dict[str, int]) -> None:
    (landed,) = run_without_spark(JobSpec((spec,)))
    assert isinstance(landed, Landed)
    assert 1 <= counts["opened"] <= len(spec.plan.splits) == 2
    assert counts["closed"] == counts["opened"]


def test_one_that_failed_is_closed_and_not_used_again(spec: WindowSpec, counts: dict[str, int]) -> None:
    with closing(OpenSystems.of(spec)) as systems:
        with pytest.raises(SourceReplaced), systems.one() as first:
            raise SourceReplaced("source", "here", "there")
        with systems.one() as second:
            assert second is not first
        with systems.one() as third:
            assert third is second
    assert counts == {"opened": 2, "closed": 2}
