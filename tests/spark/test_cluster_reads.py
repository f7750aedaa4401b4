"""Both formats on a cluster whose Python does not know this package: real servers, real executors, and what is sent."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from airflow_provider_streams.systems.pravega.operations import administration
from airflow_provider_streams.systems.pravega.operations.stream_settings import StreamSettings
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from tests.integration.pulsar.conftest import Workbench
from tests.spark import clusters

# a master, a worker, a driver and its executors: half a minute on a quiet machine, many on a busy one
pytestmark = [pytest.mark.pulsar, pytest.mark.pravega, pytest.mark.timeout(1800)]

NUMBERS = list(range(300))


@pytest.fixture
def orders(pulsar_server, pulsar_namespace):
    """Options that read 300 numbers of two partitions."""
    import pulsar

    with closing(pulsar.Client(**Endpoint(pulsar_server.service_url).client_arguments())) as client:
        bench = Workbench(pulsar_server, pulsar_namespace, client)
        topic = bench.topic("orders", 2)
        bench.write(topic, [b"%d" % number for number in NUMBERS], batch=5)
    return {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url, "topic": topic}


@pytest.fixture
def readings(pravega_server):
    """Options that read 300 numbers of one stream."""
    stream = f"cluster-{secrets.token_hex(4)}/readings"
    options = {"controller": pravega_server.controller_uri}
    with closing(PravegaSystem.from_options(options)) as system:
        system.client.run(administration.create(stream, StreamSettings(), make_scope=True))
        with PravegaWriter(system.client.endpoint, stream) as writer:
            writer.write((f"k{number % 9}", b"%d" % number) for number in NUMBERS)
    scope, _, name = stream.partition("/")
    return {**options, "scope": scope, "stream": name}


@pytest.mark.slow
def test_executors_read_both_systems_with_what_was_sent_to_them(orders, readings, tmp_path: Path) -> None:
    python = clusters.clean_python(tmp_path / "python")
    whole = {"start_cut": "earliest", "end_cut": "latest"}
    asked = {"pulsar": ({**orders, **whole}, "value"), "pravega": ({**readings, **whole}, "event")}
    program, answer = Path(__file__).with_name("reading_cluster.py"), tmp_path / "answer.json"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    with clusters.standalone(tmp_path) as port:
        command = [sys.executable, program, f"spark://127.0.0.1:{port}", json.dumps(asked), answer]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.exists(), done.stderr[-4000:]
    found = json.loads(answer.read_text())
    assert {system: one["values"] for system, one in found.items()} == {"pulsar": NUMBERS, "pravega": NUMBERS}
    assert found["pulsar"]["tasks"] >= 2
