"""One job, three places to run it: each ships what it needs, and shows no secret on the way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import psutil
import pyarrow.dataset as ds
import pytest
from pyiceberg.catalog import load_catalog

from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.sinks.sink import IcebergSink, ParquetSink
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from stream_servers.waiting import wait_until
from tests.integration.lake.duck import connect
from tests.spark import watching
from tests.spark.acknowledged import Acknowledged
from tests.spark.ends import until_ended

HERE = Path(__file__).parent
CANARY = f"canary-{token_hex(8)}"
"""The stream's password; another one in each run, for the whole machine is searched for it."""
LAUNCHER = token_hex(8)
"""In the environment of all that is launched here: a JVM may end long after the test that began it."""
KEY = f"canary-{token_hex(8)}"
"""A secret among Spark's settings."""
CATALOG = "iceberg_test"
"""The connection to the tables of real streams."""
WAYS = {"driver": 1 << 25, "tasks": 0}
"""`small_plan_bytes` that choose the two ways to read."""

# each starts several JVMs: a minute on a quiet machine, many on a busy one
pytestmark = pytest.mark.timeout(3600)
STARTED = "runs in this process"
"""What is logged when a JVM was started."""
QUERY_PAGE = "/SQL/execution/"
"""In the address of the page that Spark's UI has of a query."""
LONG = 1500.0
"""Seconds for one job, even so."""


@pytest.fixture(scope="module")
def clusters():
    sys.path.insert(0, str(HERE))
    import clusters

    return clusters


@pytest.fixture(scope="module")
def python(clusters, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clusters.clean_python(tmp_path_factory.mktemp("python"))


@dataclass
class Launched:
    result: dict[str, object]
    output: str
    command_lines: set[str]
    pages: set[str]
    """Of Spark's UI, that were looked at while it ran."""
    traces: list[str]
    """Where a secret was seen."""


def start(
    folder: Path,
    spec: WindowSpec | JobSpec,
    conn_id: str = "",
    conn: str = "",
    settings: dict[str, object] | None = None,
    *,
    ui_port: int | None = None,
    hold: Path | None = None,
) -> Launched:
    """Launch a job in a process of its own, and look for secrets wherever others could see them meanwhile.

    Args:
        hold: the stream or the transform waits for the end of this file: until the page of the job's query was seen.
    """
    folder.mkdir(exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    job = spec if isinstance(spec, JobSpec) else JobSpec((spec,))
    (folder / "spec.json").write_text(json.dumps(job.to_json()))
    arguments = [sys.executable, str(HERE / "launching.py"), str(folder / "spec.json"), str(folder / "result.json")]
    arguments += [conn_id]
    environment = {
        **os.environ,
        **job.how.secret_environment(),
        "AIRFLOW_HOME": str(folder / "airflow"),
        f"AIRFLOW_CONN_{conn_id.upper()}": conn,
        "PYTHONPATH": str(HERE),
        "TEST_SPARK_SETTINGS": json.dumps(settings),
        "TMPDIR": str(folder / "tmp"),
        "TEST_LAUNCHED_BY": LAUNCHER,
        "TEST_HOLD": str(hold or folder / "no-hold"),
    }
    with (folder / "output").open("w+") as output:
        child = subprocess.Popen(arguments, env=environment, stdout=output, stderr=subprocess.STDOUT)
        watch = watching.Watch((CANARY, KEY), LAUNCHER, ui_port)
        deadline = time.monotonic() + LONG
        while child.poll() is None and time.monotonic() < deadline:
            watch.look()
            if hold and any(QUERY_PAGE in url for url in tuple(watch.pages)):
                hold.unlink(missing_ok=True)
            with suppress(subprocess.TimeoutExpired):
                child.wait(0.5)
        watch.end()
        until_ended(child, folder / "output", 1)
        output.seek(0)
        text = output.read()
    assert (folder / "result.json").exists(), text
    traces = sorted(watch.seen) + [file for secret in (CANARY, KEY) for file in watching.files_with(folder, secret)]
    result = json.loads((folder / "result.json").read_text())
    return Launched(result, text, watch.command_lines, watch.pages, traces)


def landed(lake: Path) -> list[tuple[str, int]]:
    table = ds.dataset(lake, format="parquet", partitioning="hive").to_table(columns=["shard", "number"])
    return sorted((row["shard"], row["number"]) for row in table.to_pylist())


def assert_looked_everywhere(launched: Launched, folder: Path) -> None:
    """There were pages and a log of events to look at: a search of nothing proves nothing."""
    assert [url for url in launched.pages if QUERY_PAGE in url], launched.pages
    assert [url for url in launched.pages if "/environment" in url]
    logs = [file.read_bytes() for file in (folder / "events").iterdir()]
    assert any(b"SparkListenerSQLExecutionStart" in log for log in logs)
    assert watching.files_with(folder, CANARY) + watching.files_with(folder, KEY) == []


@pytest.fixture
def secretive(stream):
    """The stream asks for a password, so that a read proves that the secret arrived."""
    stream.set(password=CANARY)
    stream.token = CANARY
    return stream


def assert_landed_without_a_trace(launched: Launched, stream, lake: Path) -> None:
    assert "receipt" in launched.result, f"{launched.result}\n{launched.output}"
    assert launched.result["receipt"]["totals"]["rows"] == 1200
    assert landed(lake) == stream.numbers
    assert launched.traces == []


@dataclass
class Lake:
    """Iceberg tables of real streams, under a catalog of their own; the connections to all have secrets."""

    streams: dict[str, Acknowledged]
    catalog: dict[str, str]

    def spec(self, system: str, **how: object) -> WindowSpec:
        """The system's window is read by tasks, into its table."""
        options = {"token": CANARY} if system == "pulsar" else {"username": "reader", "password": CANARY}
        told = {"sink": IcebergSink(f"shop.{system}", conn_id=CATALOG), "table": self.catalog, "options": options}
        return self.streams[system].spec(small_plan_bytes=0, **told, **how)

    def assert_holds(self, system: str, launched: Launched) -> None:
        """The job left no trace of a secret, and its table has, for DuckDB, what the server acknowledged."""
        real = self.streams[system]
        assert "receipt" in launched.result, f"{launched.result}\n{launched.output}"
        assert launched.result["receipt"]["verdict"] == "complete"
        assert launched.result["receipt"]["totals"]["rows"] == len(real.rows)
        assert launched.traces == []
        with load_catalog(CATALOG, **self.catalog) as catalog:
            file = catalog.load_table(f"shop.{system}").metadata_location.removeprefix("file://")
        with connect(Storage(file), "avro", "iceberg") as duck:
            found = duck.execute(f"SELECT * FROM iceberg_scan('{file}')").arrow().read_all()  # noqa: S608
        assert real.of(found.to_pylist()) == real.rows


@pytest.fixture
def lake(real_streams, tmp_path: Path) -> Lake:
    """Without tables."""
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    return Lake(real_streams, {"type": "sql", **place, "s3.secret-access-key": KEY})


def assert_echo_is_masked(launched: Launched) -> None:
    """The server wrote the secret into its refusal, whole and in part."""
    assert launched.result["error"] == "SystemUnavailable", launched.output
    assert "it refuses *** (***.., ***)" in str(launched.result["message"])
    assert launched.traces == []
    assert CANARY[:16] not in launched.output + str(launched.result)


def settings_in(lake: Path, launched: Launched) -> dict[str, str]:
    """What `transforms:settings` found, and no secret of it elsewhere."""
    assert "receipt" in launched.result, f"{launched.result}\n{launched.output}"
    assert launched.traces == []
    rows = ds.dataset(lake, format="parquet", exclude_invalid_files=True).to_table().to_pylist()
    assert len({json.dumps(row, sort_keys=True) for row in rows}) == 1
    return rows[0]


def test_a_small_window_is_read_and_landed_by_its_own_process_and_starts_no_jvm(secretive, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    launched = start(tmp_path / "run", secretive.spec(sink=ParquetSink(str(lake))))
    assert_landed_without_a_trace(launched, secretive, lake)
    proven = start(tmp_path / "proven", secretive.spec())
    assert proven.result["receipt"]["totals"]["rows"] == 1200, proven.output
    assert STARTED not in launched.output + proven.output


@pytest.mark.slow_except("tasks")
@pytest.mark.parametrize("way", WAYS)
def test_embedded_shows_no_secret_with_its_ui_on(clusters, secretive, tmp_path: Path, way: str) -> None:
    lake, port = tmp_path / "lake", clusters.free_port()
    # of a small plan's rows, Spark sees only what a transform is given, after all is read
    transform = "transforms:held" if WAYS[way] else None
    spec = secretive.spec(sink=ParquetSink(str(lake)), small_plan_bytes=WAYS[way], transform=transform)
    conf = {**watching.settings(tmp_path, port), "spark.hadoop.fs.s3a.secret.key": KEY}
    secretive.set(fault="" if transform else "hold", batch_rows=100)
    hold = Path(f"{secretive.truth}.hold")
    hold.touch()
    launched = start(tmp_path / "run", spec, settings={"conf": conf}, ui_port=port, hold=hold)
    assert_landed_without_a_trace(launched, secretive, lake)
    assert STARTED in launched.output
    secretive.set(fault="echo:0")
    assert_echo_is_masked(start(tmp_path / "echo", spec, settings={"conf": conf}, ui_port=port))
    assert_looked_everywhere(launched, tmp_path)


@pytest.mark.slow
@pytest.mark.pulsar
@pytest.mark.pravega
def test_spark_submit_ships_what_a_clean_worker_lacks(clusters, python: Path, lake, secretive, tmp_path: Path) -> None:
    conf = {
        "spark.pyspark.python": str(python),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.hadoop.fs.s3a.secret.key": KEY,
        **watching.settings(tmp_path, ui_port := clusters.free_port()),
    }
    with clusters.standalone(tmp_path) as port:
        conn = f"spark://127.0.0.1:{port}"
        spec = lake.spec("pulsar", transform="transforms:with_itself")
        good = start(tmp_path / "pulsar", spec, "cluster", conn, {"conf": conf}, ui_port=ui_port)
        spec = lake.spec("pravega")
        direct = start(tmp_path / "pravega", spec, "cluster", conn, {"conf": conf}, ui_port=ui_port)
        secretive.set(fault="echo:0")
        spec = secretive.spec(small_plan_bytes=0)
        echo = start(tmp_path / "echo", spec, "cluster", conn, {"conf": conf}, ui_port=ui_port)
    lake.assert_holds("pulsar", good)
    lake.assert_holds("pravega", direct)
    assert_echo_is_masked(echo)
    assert_looked_everywhere(good, tmp_path)
    assert [line for line in good.command_lines if "--py-files" in line]


@pytest.mark.slow
@pytest.mark.pulsar
@pytest.mark.pravega
def test_spark_connect_ships_what_a_clean_server_lacks(clusters, python: Path, lake, secretive, tmp_path: Path) -> None:
    shown = watching.settings(tmp_path, ui_port := clusters.free_port())
    with clusters.connect_server(tmp_path, python, shown) as port:
        conn = f"spark-connect://127.0.0.1:{port}"
        for system in lake.streams:
            lake.assert_holds(system, start(tmp_path / system, lake.spec(system), "connect", conn))
        plan = secretive.plan()
        spec = secretive.spec(plan, sink=ParquetSink(str(tmp_path / "told")), transform="transforms:settings")
        conf = {"spark.hadoop.fs.s3a.secret.key": KEY, "spark.sql.shuffle.partitions": 7}
        told = start(tmp_path / "told-run", spec, "connect", conn, {"conf": conf})
        refused = start(tmp_path / "refused", spec, "connect", conn, {"conf": conf, "driver_memory": "700m"})
        acting = secretive.spec(plan, sink=ParquetSink(str(tmp_path / "told")), transform="transforms:acts")
        acted = start(tmp_path / "acting", acting, "connect", conn)
        slow = start_and_wait_for_progress(secretive, tmp_path / "slow", plan, conn)
        secretive.set(fault="trim:0:700")
        bad = start(tmp_path / "bad", secretive.spec(plan, small_plan_bytes=0), "connect", conn)
        secretive.set(fault="echo:0")
        echo = start(tmp_path / "echo", secretive.spec(plan, small_plan_bytes=0), "connect", conn)
        pages = watching.pages(ui_port)
    assert "receipt" in slow.result
    assert_echo_is_masked(echo)
    assert [url for url, text in pages.items() if watching.has(text, CANARY)] == []
    assert [url for url in pages if "/connect/session/" in url]
    assert [url for url in pages if QUERY_PAGE in url]
    found = settings_in(tmp_path / "told", told)
    assert watching.files_with(tmp_path, CANARY) == []
    # the other secret is a setting of a session: a literal of that transform, and, as Spark has it, in the event log
    assert "a Spark Connect server writes what a session sets into its event log" in told.output
    assert bad.result["error"] == "EventsLost", bad.output
    assert acted.result["error"] == "InvalidRequest"
    assert "transforms:acts ran a Spark action" in acted.result["message"]
    assert (found["spark_hadoop_fs_s3a_secret_key"], found["spark_sql_shuffle_partitions"]) == (KEY, "7")
    assert refused.result["error"] == "PreflightFailed"
    assert "no longer takes spark.driver.memory: set it where Spark is started" in refused.result["message"]
    assert KEY not in refused.output + str(refused.result)


def start_and_wait_for_progress(stream, folder: Path, plan: Plan, conn: str) -> Launched:
    """A job of a Spark Connect server whose tasks wait until it has said how far it is."""
    hold = Path(f"{stream.truth}.hold")
    hold.touch()
    stream.set(fault="hold", batch_rows=100)
    told = re.compile(r"[0-9] of [0-9]+ tasks are read")
    output = folder / "output"
    with ThreadPoolExecutor(1) as pool:
        try:
            job = pool.submit(start, folder, stream.spec(plan, small_plan_bytes=0), "connect", conn)
            wait_until(
                lambda: job.done() or (output.exists() and told.search(output.read_text())), "a line", seconds=LONG
            )
        finally:
            hold.unlink()
        launched = job.result()
    assert told.search(launched.output), launched.output
    return launched


def test_a_killed_driver_leaves_the_old_window_and_the_retry_the_new(stream, tmp_path: Path) -> None:
    """kill -9 of the driver, its JVM and its workers while rows are written; then the same job again."""
    lake = tmp_path / "lake"
    stream.set(value_bytes=4000, batch_rows=100)
    plan = stream.plan(target_split_bytes=1 << 24)
    spec = stream.spec(plan, sink=ParquetSink(str(lake)), small_plan_bytes=0)
    first = stream.spec(plan, sink=ParquetSink(str(lake)), small_plan_bytes=WAYS["driver"])
    assert "receipt" in start(tmp_path / "first", first).result
    before = sorted(lake.rglob("*"))
    stream.set(fault="slow:600000")
    folder = tmp_path / "killed"
    folder.mkdir()
    (folder / "spec.json").write_text(json.dumps(JobSpec((spec,)).to_json()))
    child = subprocess.Popen(
        [sys.executable, str(HERE / "launching.py"), str(folder / "spec.json"), str(folder / "result.json")],
        env={**os.environ, "AIRFLOW_HOME": str(folder), "PYTHONPATH": str(HERE), "TEST_ROW_GROUP_BYTES": "100000"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(lambda: list(lake.glob("_staging/*/part-*")), "tasks that write", seconds=180)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert not (folder / "result.json").exists()
    assert [path for path in before if not path.exists()] == []
    assert landed(lake) == stream.numbers
    stream.set(fault="")
    assert "receipt" in start(tmp_path / "again", spec).result
    assert landed(lake) == stream.numbers
    assert not list((lake / "_staging").iterdir())


@pytest.mark.slow
def test_a_submitted_job_ends_with_its_task_and_never_lands_late(stream, tmp_path: Path) -> None:
    """kill -9 of the task alone: spark-submit and the driver program are not its, and would go on without it."""
    lake, folder = tmp_path / "lake", tmp_path / "killed"
    Path(f"{stream.truth}.hold").touch()
    stream.set(fault="hold", batch_rows=100)
    folder.mkdir()
    spec = stream.spec(sink=ParquetSink(str(lake)), small_plan_bytes=0)
    (folder / "spec.json").write_text(json.dumps(JobSpec((spec,)).to_json()))
    spark = json.dumps({"conn_type": "spark", "host": "local[2]"})
    child = subprocess.Popen(
        [sys.executable, str(HERE / "launching.py"), str(folder / "spec.json"), str(folder / "result.json"), "local"],
        env={**os.environ, "AIRFLOW_HOME": str(folder), "AIRFLOW_CONN_LOCAL": spark, "PYTHONPATH": str(HERE)},
        stdout=(folder / "output").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        # through Airflow's hook, into the task's log
        reading = r"INFO.*0 of [0-9]+ tasks are read, 0 events"
        wait_until(lambda: re.search(reading, (folder / "output").read_text()), "a job that reads", seconds=180)
        job = psutil.Process(child.pid).children(recursive=True)
        child.kill()
        child.wait()
        assert job
        wait_until(lambda: not psutil.wait_procs(job, timeout=0)[1], "the job's end", seconds=600)
        assert not list(lake.glob("window_start=*"))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


@pytest.mark.slow_except("driver")
@pytest.mark.parametrize("way", WAYS)
def test_a_task_that_is_ended_says_so_although_its_spark_may_be_gone_first(stream, tmp_path: Path, way: str) -> None:
    """Airflow ends a task by a signal to its whole process group: JVM, workers and task alike."""
    with reading_task(stream, tmp_path, WAYS[way]) as (child, output):
        os.killpg(child.pid, signal.SIGTERM)
        until_ended(child, output, 60)
    assert_says_that_it_was_ended(tmp_path)


@pytest.mark.slow_except("that answers")
@pytest.mark.parametrize("spark", ["that answers", "that hangs"])
def test_a_task_that_is_ended_alone_cancels_its_job(stream, tmp_path: Path, spark: str) -> None:
    """A supervisor that gets a signal itself (a pod that is deleted) hands it on to the task and to nothing else."""
    hold = Path(f"{stream.truth}.hold")
    hold.touch()
    with reading_task(stream, tmp_path, WAYS["tasks"], fault="hold") as (child, output):
        if spark == "that hangs":
            jvm_of(child).suspend()
        child.terminate()
        until_ended(child, output, 60)
    assert hold.exists(), "the read could not end by itself"
    assert_says_that_it_was_ended(tmp_path)


def assert_says_that_it_was_ended(folder: Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    output = (folder / "output").read_text()
    assert result["error"] == "TaskCancelled", output[-6000:]
    assert not list((folder / "lake").glob("window_start=*"))
    assert "/py4j/" not in output, "what Py4J says of a JVM that is gone, a megabyte"


@pytest.mark.slow
def test_a_jvm_that_is_killed_is_a_passing_failure_in_words(stream, tmp_path: Path) -> None:
    with reading_task(stream, tmp_path, WAYS["tasks"]) as (child, output):
        jvm_of(child).kill()
        until_ended(child, output, 60)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["error"] == "SparkUnavailable", output.read_text()[-6000:]
    assert "/py4j/" not in output.read_text(), "what Py4J says of it, a megabyte"
    assert result["message"].startswith("Spark's JVM is not available: the connection to it broke")


@contextmanager
def reading_task(
    stream, folder: Path, small_plan_bytes: int, fault: str = "slow:2000"
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A task whose reads wait before their second batch, once they do; and its output.

    One of its threads is logging when its interpreter ends.
    """
    stream.set(fault=fault, batch_rows=100)
    spec = stream.spec(sink=ParquetSink(str(folder / "lake")), small_plan_bytes=small_plan_bytes)
    (folder / "spec.json").write_text(json.dumps(JobSpec((spec,)).to_json()))
    output = folder / "output"
    child = subprocess.Popen(
        [sys.executable, str(HERE / "launching.py"), str(folder / "spec.json"), str(folder / "result.json")],
        env={
            **os.environ,
            "AIRFLOW_HOME": str(folder),
            "PYTHONPATH": str(HERE),
            "TEST_SURPRISED_WHILE_LOGGING": "yes",
        },
        stdout=output.open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        reading = "about .* bytes, of plan " + spec.plan.fingerprint
        wait_until(lambda: re.search(reading, output.read_text()), "a job that reads", seconds=180)
        if not small_plan_bytes:
            workers = "pyspark.daemon"
            wait_until(lambda: any(workers in line for line in family(child)), "workers that read", seconds=180)
        yield child, output
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def jvm_of(child: subprocess.Popen[bytes]) -> psutil.Process:
    (jvm,) = [one for one in psutil.Process(child.pid).children() if one.name() == "java"]
    return jvm


def family(child: subprocess.Popen[bytes]) -> Iterator[str]:
    for one in psutil.Process(child.pid).children(recursive=True):
        with suppress(psutil.Error):
            yield " ".join(one.cmdline())
