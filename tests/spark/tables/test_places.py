"""The same table wherever Spark is, and whoever is killed. Minutes, so only when asked for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from airflow_provider_streams.model.table_sink import TableSink
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.testing.servers.waiting import wait_until
from tests.spark import clusters
from tests.spark.conftest import WAYS
from tests.spark.tables.conftest import catalog_conf

HERE = Path(__file__).parents[1]
SINK = TableSink("prod.shop.orders")

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif("STREAMS_TEST_PLACES" not in os.environ, reason="set STREAMS_TEST_PLACES=1"),
]


def start(folder: Path, spec: JobSpec, conn: str = "", conf: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    folder.mkdir()
    (folder / "spec.json").write_text(json.dumps(spec.to_json()))
    files = [str(folder / name) for name in ("spec.json", "result.json")]
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW_CONN_PLACE": conn,
        "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(HERE)]),
        "TEST_SPARK_SETTINGS": json.dumps({"conf": conf} if conf else None),
    }
    with (folder / "output").open("wb") as output:
        arguments = [sys.executable, str(HERE / "launching.py"), *files, *(["place"] if conn else [])]
        return subprocess.Popen(
            arguments, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def ended(folder: Path, *given: Any) -> dict[str, Any]:
    assert start(folder, *given).wait(600) == 0, (folder / "output").read_text()[-8000:]
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    assert "error" not in found, found
    return found


def landed(lake: Path) -> list[tuple[str, int]]:
    """As another engine reads it."""
    rows = StaticTable.from_metadata(str(lake / "shop" / "orders")).scan().to_arrow().to_pylist()
    return sorted((row["shard"], row["number"]) for row in rows)


@pytest.mark.parametrize("name", list(WAYS))
def test_a_killed_job_leaves_the_old_window_and_its_retry_lands(stream, tmp_path, name):
    lake, plan = tmp_path / "lake", stream.plan()
    conf = catalog_conf(lake)
    spec = stream.spec(plan, sink=SINK, small_plan_bytes=WAYS[name])
    ended(tmp_path / "first", spec, "", conf)
    hold = Path(f"{stream.truth}.hold")
    hold.touch()
    stream.set(fault="hold:0")
    child = start(tmp_path / "killed", spec, "", conf)
    output = tmp_path / "killed" / "output"
    wait_until(lambda: b"splits, about" in output.read_bytes() or child.poll() is not None, "a read")
    assert child.poll() is None, (tmp_path / "killed" / "output").read_text()
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert landed(lake) == stream.numbers
    hold.unlink()
    assert ended(tmp_path / "again", spec, "", conf)["written"] == 1200
    assert landed(lake) == stream.numbers


def test_spark_submit_lands_in_it(stream, tmp_path):
    spec = stream.spec(sink=SINK, small_plan_bytes=0)
    conf = {**catalog_conf(tmp_path / "lake"), "spark.pyspark.python": sys.executable}
    with clusters.standalone(tmp_path) as port:
        found = ended(tmp_path / "run", spec, f"spark://127.0.0.1:{port}", conf)
    assert found["written"] == 1200
    assert landed(tmp_path / "lake") == stream.numbers


@pytest.mark.parametrize("transform", [None, "transforms:with_a_column_more"])
def test_spark_connect_lands_in_it(stream, tmp_path, transform):
    with clusters.connect_server(tmp_path, Path(sys.executable), catalog_conf(tmp_path / "lake")) as port:
        for way in WAYS.values():
            spec = stream.spec(sink=SINK, small_plan_bytes=way, transform=transform)
            found = ended(tmp_path / f"run-{way}", spec, f"spark-connect://127.0.0.1:{port}")
            assert found["written"] == 1200
            assert landed(tmp_path / "lake") == stream.numbers
