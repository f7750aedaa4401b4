"""A week of hourly windows in one job, against as many single runs: what a window costs either way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem

WINDOWS = 168
SINGLES = 3
"""Runs of one window that are measured; each is a process of its own, as a task is."""


WAYS = {"read by the driver": 1 << 30, "read by tasks": 0}
"""How windows are read, and the `small_plan_bytes` that choose it."""


def run(scale: float) -> None:
    """168 windows of some thousand events each; the fake system, so that only our own cost is measured."""
    events = max(1, int(500 * scale))
    options = {"events": str(WINDOWS * events), "interval_ms": str(3_600_000 // events), "value_bytes": "100"}
    plans = _plans(options)
    single = min(_seconds(plans[index : index + 1], options) for index in range(SINGLES))
    ways = {way: _seconds(plans, options, small_plan_bytes=limit) for way, limit in WAYS.items()}
    print(f"\nbackfill: {WINDOWS} hourly windows of {2 * events:,} events, embedded Spark, process start included")
    print(f"  {'one window in one run':<42}{single:>8.2f} s")
    for way, together in ways.items():
        each = together / WINDOWS
        print(f"  {f'{WINDOWS} windows in one job, {way}':<42}{together:>8.2f} s", end="")
        print(f"   {each:>6.3f} s each: {each / single:.1%} of a single run", flush=True)


def _plans(options: dict[str, str]) -> list[Plan]:
    system = FakeSystem.from_options(options)
    windows = Every(timedelta(hours=1)).cells(EPOCH, EPOCH + timedelta(hours=WINDOWS))
    return [system.plan(PlanRequest(FakeSource(), window, "bench", slack=timedelta(0))) for window in windows]


def _seconds(plans: Sequence[Plan], options: dict[str, str], *, small_plan_bytes: int = 1 << 30) -> float:
    """From the start of a process to its end."""
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "spec.json"
        spec.write_text(
            json.dumps(
                {
                    "plans": [plan.to_json() for plan in plans],
                    "options": options,
                    "lake": f"{folder}/lake",
                    "small_plan_bytes": small_plan_bytes,
                }
            )
        )
        began = time.perf_counter()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-W", "ignore", __file__, str(spec)]
        subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
        return time.perf_counter() - began


def _job(spec_file: str) -> None:
    from airflow_provider_streams.model.sinks.landing import Landed, TableMark, TableTerms
    from airflow_provider_streams.model.sinks.sink import ParquetSink
    from airflow_provider_streams.spark.job.job import run
    from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
    from airflow_provider_streams.spark.launch.embedded import embedded_session
    from airflow_provider_streams.spark.settings.spark_settings import SparkSettings
    from airflow_provider_streams.systems.registry import register

    register("fake", "airflow_provider_streams.testing.fake.declaration:Fake")
    data = json.loads(Path(spec_file).read_text())
    plans = [Plan.from_json(plan) for plan in data["plans"]]
    how = WindowSpec(
        plans[0],
        ParquetSink(data["lake"]),
        options=data["options"],
        small_plan_bytes=data["small_plan_bytes"],
        terms=TableTerms(TableMark("bench", "fake", "bench")),
    )
    spark = embedded_session(SparkSettings({"spark.log.level": "OFF"}), quick_start=True)
    results = run(JobSpec.of(plans, how), spark)
    assert all(isinstance(result, Landed) for result in results)
    spark.stop()


if __name__ == "__main__":
    _job(sys.argv[1])
