"""The same table wherever Spark is, and whatever is killed, compared with what real servers acknowledged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from stream_servers.waiting import wait_until
from tests.spark import clusters
from tests.spark.acknowledged import ADDRESSES, Acknowledged
from tests.spark.running import run_window
from tests.spark.tables.conftest import catalog_conf

HERE = Path(__file__).parents[1]

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def real_streams() -> dict[str, Acknowledged]:
    """Those of the tests that started this process."""
    told = json.loads(Path(os.environ[ADDRESSES]).read_text())
    return {system: Acknowledged.from_json(one) for system, one in told.items()}


def held(real: Acknowledged) -> WindowSpec:
    """Tasks that wait read it, for as long as the test wants."""
    return real.spec(sink=TableSink(f"prod.places.{real.system}"), small_plan_bytes=0, transform="transforms:held")


def start(folder: Path, spec: WindowSpec, conn: str, conf: dict[str, str], hold: Path) -> subprocess.Popen[bytes]:
    folder.mkdir()
    (folder / "spec.json").write_text(json.dumps(JobSpec((spec,)).to_json()))
    files = [str(folder / name) for name in ("spec.json", "result.json")]
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW_CONN_PLACE": conn,
        "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(HERE)]),
        "TEST_HOLD": str(hold),
        "TEST_SPARK_SETTINGS": json.dumps({"conf": conf}),
    }
    with (folder / "output").open("wb") as output:
        arguments = [sys.executable, str(HERE / "launching.py"), *files, *(["place"] if conn else [])]
        return subprocess.Popen(
            arguments, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def kill(child: subprocess.Popen[bytes], folder: Path, hold: Path) -> None:
    """The whole job, while its tasks have rows in their hands; then tasks wait no more."""
    reached = Path(f"{hold}.reached")
    wait_until(lambda: reached.exists() or child.poll() is not None, "tasks that read", seconds=300)
    assert child.poll() is None, (folder / "output").read_text()[-8000:]
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    hold.unlink()


def landed(lake: Path, real: Acknowledged) -> list[tuple[int, ...]]:
    """As another engine reads it."""
    rows = StaticTable.from_metadata(str(lake / "places" / real.system)).scan().to_arrow()
    return real.of(rows.to_pylist())


def test_a_killed_job_leaves_the_old_window_and_its_retry_lands(spark, real_streams, tmp_path):
    real = real_streams["pravega"]
    lake, hold = Path(spark.conf.get("spark.sql.catalog.prod.warehouse")), tmp_path / "hold"
    assert run_window(held(real), spark).written == len(real.rows)
    hold.touch()
    kill(start(tmp_path / "killed", held(real), "", catalog_conf(lake), hold), tmp_path / "killed", hold)
    assert landed(lake, real) == real.rows
    assert run_window(held(real), spark).written == len(real.rows)
    assert landed(lake, real) == real.rows


def test_spark_submit_lands_in_it(real_streams, tmp_path):
    real, lake, folder = real_streams["pulsar"], tmp_path / "lake", tmp_path / "run"
    conf = {**catalog_conf(lake), "spark.pyspark.python": sys.executable}
    with clusters.standalone(tmp_path) as port:
        run = start(folder, held(real), f"spark://127.0.0.1:{port}", conf, tmp_path / "no hold")
        assert run.wait(600) == 0, (folder / "output").read_text()[-8000:]
    found = json.loads((folder / "result.json").read_text())
    assert found.get("written") == len(real.rows), found
    assert landed(lake, real) == real.rows
