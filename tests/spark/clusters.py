"""Sparks of their own on loopback, whose Python has our dependencies but not our package."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from stream_servers.waiting import wait_until

SPARK_HOME = Path(pyspark.__file__).parent
SHIPPED_SEPARATELY = {"pyspark", "airflow_provider_streams"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def clean_python(folder: Path) -> Path:
    """A Python with this one's packages, except ours: no `site`, so no editable install either."""
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for path in SPARK_HOME.parent.iterdir():
        if path.name.partition(".")[0] not in SHIPPED_SEPARATELY and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    found = subprocess.run(
        [python, "-c", "import pyarrow; import airflow_provider_streams"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert "No module named 'airflow_provider_streams'" in found.stderr
    return python


@contextmanager
def process(arguments: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        # a Python finds packages in its folder as well: not in this checkout
        started = subprocess.Popen(arguments, env=environment, stdout=out, stderr=subprocess.STDOUT, cwd=log.parent)
        try:
            yield started
        finally:
            started.terminate()
            started.wait(600)


@contextmanager
def standalone(folder: Path) -> Iterator[int]:
    """A standalone master and one worker in an otherwise empty environment; the master's port."""
    port, worker_port = free_port(), free_port()
    bare = {"PATH": os.environ["PATH"], "SPARK_LOCAL_IP": "127.0.0.1", "HOME": str(folder)}
    if "JAVA_HOME" in os.environ:
        bare["JAVA_HOME"] = os.environ["JAVA_HOME"]
    spark_class, deploy = str(SPARK_HOME / "bin" / "spark-class"), "org.apache.spark.deploy"
    ports = ["--host", "127.0.0.1", "--webui-port", "0"]
    master = [spark_class, f"{deploy}.master.Master", *ports, "--port", str(port)]
    worker = [spark_class, f"{deploy}.worker.Worker", *ports, "--port", str(worker_port), "-c", "2", "-m", "2g"]
    with process(master, bare, folder / "master.log"):
        wait_until(lambda: answers(port), "the Spark master")
        with process([*worker, "-d", str(folder / "work"), f"spark://127.0.0.1:{port}"], bare, folder / "worker.log"):
            registered = folder / "master.log"
            wait_until(lambda: "Registering worker" in registered.read_text(), "the Spark worker")
            yield port


@contextmanager
def connect_server(folder: Path, python: Path, more: Mapping[str, str] | None = None) -> Iterator[int]:
    """A Spark Connect server whose Python does not know this package, with more settings; its port."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **(more or {}),
    }
    arguments = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2,3]"]
    arguments += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        arguments += ["--conf", f"{name}={value}"]
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    environment.pop("PYTHONPATH", None)
    with process(arguments, environment, folder / "connect.log"):
        wait_until(lambda: answers(port), "the Spark Connect server")
        yield port
