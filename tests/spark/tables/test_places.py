"""The same table wherever Spark is, and whatever is killed, compared with what real servers acknowledged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
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
    wait_until_read(child, folder, hold)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    hold.unlink()


def wait_until_read(child: subprocess.Popen[bytes], folder: Path, hold: Path) -> None:
    """Until tasks have rows in their hands."""
    reached = Path(f"{hold}.reached")
    wait_until(lambda: reached.exists() or child.poll() is not None, "tasks that read", seconds=300)
    assert child.poll() is None, (folder / "output").read_text()[-8000:]


def landed(lake: Path, real: Acknowledged) -> list[tuple[int, ...]]:
    """As another engine reads it."""
    rows = StaticTable.from_metadata(str(lake / "places" / real.system)).scan().to_arrow()
    return real.of(rows.to_pylist())


@pytest.mark.parametrize("system", ["pulsar", "pravega"])
def test_a_killed_job_leaves_the_old_window_and_its_retry_lands(spark, real_streams, tmp_path, system):
    real = real_streams[system]
    lake, hold = Path(spark.conf.get("spark.sql.catalog.prod.warehouse")), tmp_path / "hold"
    assert run_window(held(real), spark).written == len(real.rows)
    hold.touch()
    kill(start(tmp_path / "killed", held(real), "", catalog_conf(lake), hold), tmp_path / "killed", hold)
    assert landed(lake, real) == real.rows
    assert run_window(held(real), spark).written == len(real.rows)
    assert landed(lake, real) == real.rows


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory):
    """A standalone cluster: its port, and the folder of its executors."""
    folder = tmp_path_factory.mktemp("cluster")
    with clusters.standalone(folder) as port:
        yield port, folder / "work"


@pytest.mark.parametrize("system", ["pulsar", "pravega"])
def test_spark_submit_lands_in_it_although_an_executor_is_killed(cluster, real_streams, tmp_path, system):
    port, work = cluster
    real, lake, folder, hold = real_streams[system], tmp_path / "lake", tmp_path / "run", tmp_path / "hold"
    conf = {**catalog_conf(lake), "spark.pyspark.python": sys.executable}
    hold.touch()
    run = start(folder, held(real), f"spark://127.0.0.1:{port}", conf, hold)
    try:
        wait_until_read(run, folder, hold)
        (executor,) = executors(work)
        executor.kill()
        wait_until(
            lambda: run.poll() is not None or executors(work) not in ([], [executor]), "another one", seconds=300
        )
    finally:
        hold.unlink()
    assert run.wait(1500) == 0, (folder / "output").read_text()[-8000:]
    assert len(list(max(work.glob("app-*")).iterdir())) > 1, "no other executor went on"
    found = json.loads((folder / "result.json").read_text())
    assert found.get("written") == len(real.rows), found
    assert landed(lake, real) == real.rows


def executors(work: Path) -> list[psutil.Process]:
    """Those that run in the folders of a cluster's worker."""
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.name() == "java" and Path(one.cwd()).is_relative_to(work):
                found.append(one)
    return found
