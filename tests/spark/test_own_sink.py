"""A sink of the user's own is one class and one line: staged, and committed only after the proof."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams import CustomSink, DataFrameSinkWriter, TableWriter
from airflow_provider_streams.errors import InvalidRequest, ReceiptMismatch
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.spark.job.job import run
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from stream_servers.waiting import wait_until
from tests.spark.conftest import WAYS
from tests.spark.own_sink import JsonSink
from tests.spark.running import run_window

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
NAMED = {
    "JsonLines": "tests.spark.own_frame_writer:JsonLines",
    "ListedFiles": "tests.spark.own_files_writer:ListedFiles",
}
SINKS: dict[str, Callable[[Path], Sink]] = {
    "JsonLines": lambda folder: CustomSink(NAMED["JsonLines"], str(folder)),
    "ListedFiles": lambda folder: CustomSink(NAMED["ListedFiles"], str(folder)),
    "a class for its values": lambda folder: JsonSink(str(folder)),
}


@pytest.fixture(params=list(SINKS))
def sink(request, tmp_path: Path) -> Sink:
    return SINKS[request.param](tmp_path / "lake")


def landed(root: Path) -> list[tuple[str, int]]:
    """The rows of all windows, as each of these tables is read."""
    folders = [root / file.read_text() for file in root.glob("[!.]*.folder")] or list(root.glob("[!.]*/"))
    lines = [line for folder in folders for file in folder.glob("*.json") for line in file.read_text().splitlines()]
    listed = [root / path for file in root.glob("[!.]*.json") for path in json.loads(file.read_text())["files"]]
    rows: list[Any] = [json.loads(line) for line in lines]
    rows += [row for file in listed for row in pq.read_table(file).to_pylist()]
    return sorted((row["shard"], row["number"]) for row in rows)


@pytest.mark.slow_except("driver-ListedFiles", "tasks-JsonLines")
def test_it_lands_a_proven_window_and_lands_it_again(spark, stream, way: int, sink, tmp_path: Path) -> None:
    assert isinstance(sink, Sink)
    spec = stream.spec(sink=sink, small_plan_bytes=way)
    assert JobSpec.from_json(JobSpec((spec,)).to_json(), spec.secret_environment()).how.sink == sink
    for _ in range(2):
        assert run_window(spec, spark).written == len(stream.numbers)
        assert landed(tmp_path / "lake") == stream.numbers


def test_an_unproven_read_commits_nothing_and_leaves_nothing(spark, stream, way: int, sink, tmp_path: Path) -> None:
    plan = stream.plan()
    stream.set(fault="drop:1:700")
    with pytest.raises(ReceiptMismatch):
        run_window(stream.spec(plan, sink=sink, small_plan_bytes=way), spark)
    assert [file for file in tmp_path.glob("lake/**/*") if file.is_file()] == []


def test_many_windows_land_one_by_one(spark, stream, way: int, sink, tmp_path: Path) -> None:
    plans = [stream.plan(minute, minute + 5) for minute in (10, 15)]
    how = stream.spec(plans[0], sink=sink, small_plan_bytes=way)
    results = run(JobSpec(tuple(replace(how, plan=plan) for plan in plans)), spark)
    assert [one.written for one in results if isinstance(one, Landed)] == [600, 600]
    assert landed(tmp_path / "lake") == stream.numbers


@pytest.mark.slow_except("ListedFiles")
@pytest.mark.parametrize("name", list(NAMED))
@pytest.mark.timeout(1800)
def test_one_whose_job_is_killed_keeps_the_old_window_and_the_retry_lands(spark, stream, name, tmp_path: Path) -> None:
    spec = stream.spec(sink=SINKS[name](tmp_path / "lake"), small_plan_bytes=WAYS["driver"])
    run_window(spec, spark)
    killed(stream, spec, tmp_path)
    assert landed(tmp_path / "lake") == stream.numbers
    assert run_window(spec, spark).written == len(stream.numbers)
    assert landed(tmp_path / "lake") == stream.numbers


def killed(stream, spec: WindowSpec, folder: Path) -> None:
    """A job of its own process that is killed while it reads."""
    hold, files = Path(f"{stream.truth}.hold"), [str(folder / name) for name in ("spec.json", "result.json")]
    hold.touch()
    stream.set(fault="hold:0")
    Path(files[0]).write_text(json.dumps(JobSpec((spec,)).to_json()))
    environment = {**os.environ, **spec.secret_environment(), "AIRFLOW_HOME": str(folder / "airflow")}
    with (folder / "output").open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, str(HERE / "launching.py"), *files],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        said = folder / "output"
        wait_until(lambda: b"splits, about" in said.read_bytes() or child.poll() is not None, "a read", seconds=120)
        assert child.poll() is None, said.read_text()
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    hold.unlink()
    stream.set(fault="")


def test_both_kinds_are_public_and_what_no_sink_can_be_is_refused() -> None:
    assert {one.__name__ for one in (DataFrameSinkWriter, TableWriter)} == {"DataFrameSinkWriter", "TableWriter"}
    for kind, target in (("own", "/lake"), ("a.b:C", "lake"), ("a.b:C", "s3://key:canary@b/x")):
        with pytest.raises(InvalidRequest) as caught:
            CustomSink(kind, target)
        assert "canary" not in str(caught.value)
