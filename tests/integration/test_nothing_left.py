"""Planning, waiting and reading leave a stream system as they found it, however they end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_streams.errors import SourceNotFound, WindowNotReady
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import Basis, Chained, PublishTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.pravega.client.controller import hold_calls, segment_calls, stream_calls
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from airflow_provider_streams.windows.plan.readiness import WindowQuestion, check_planned, plan_request
from stream_servers import PravegaServer, PulsarServer, wait_until

ROOT = Path(__file__).parents[2]


@dataclass
class Place:
    """A source on a real server, and all that a reader could leave there."""

    system: StreamSystem
    options: dict[str, str]
    source: Source
    missing: Source
    """Named nowhere on the server, in a place where the server would make it on request."""
    bases: tuple[Basis, ...]
    events: int
    state: Callable[[], Any]

    def plan(self, source: Source, basis: Basis) -> Plan:
        now = datetime.now(UTC)
        question = WindowQuestion(source, Window(now - timedelta(hours=1), now - timedelta(milliseconds=50)), basis)
        with suppress(WindowNotReady):  # the sensors' question: its answer does not matter here
            check_planned(self.system, question)
        return self.system.plan(replace(plan_request(self.system, question, "tests"), on_unproven="record"))

    def read(self, plan: Plan, *, batches: int | None = None) -> int:
        """How many rows all splits have, or so many batches of each."""
        rows = 0
        for split in plan.splits:
            with closing(self.system.read(plan, split)) as reader:
                for number, batch in enumerate(reader, 1):
                    rows += len(batch)
                    if number == batches:
                        break
        return rows

    def read_killed(self, plan: Plan) -> None:
        """A process that is killed while it reads every split."""
        told = {"system": self.system.name, "options": self.options, "plan": plan.to_json()}
        command = [sys.executable, "-m", "tests.integration.leaving_reader", json.dumps(told)]
        ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, timeout=600, check=False)
        assert ended.returncode == -signal.SIGKILL
        assert int(ended.stdout) > 0, "it was killed in the middle of a read"


@pytest.fixture
def pulsar(pulsar_server: PulsarServer, pulsar_namespace: str) -> Place:
    import pulsar as peer

    topic = pulsar_server.create_topic(f"{pulsar_namespace}/orders", 3)
    client = peer.Client(pulsar_server.service_url)
    producer = client.create_producer(topic, schema=peer.schema.StringSchema())
    for number in range(300):
        producer.send_async(str(number), lambda *_: None)
    producer.flush()
    client.close()
    creates = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2}
    namespace = f"namespaces/{pulsar_namespace}"
    pulsar_server.admin("POST", f"{namespace}/autoTopicCreation", {**creates})
    options = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}

    def state() -> Any:
        shards = [f"{topic}-partition-{number}".replace("://", "/", 1) for number in range(3)]
        stats = [pulsar_server.admin("GET", f"{shard}/internalStats") for shard in shards]
        return {
            "subscriptions": pulsar_server.inventory(),
            "partitioned": pulsar_server.admin("GET", f"persistent/{pulsar_namespace}/partitioned"),
            "policies": pulsar_server.admin("GET", namespace),
            "ledgers": [[ledger["ledgerId"] for ledger in one["ledgers"]] for one in stats],
            "cursors": [sorted(one["cursors"]) for one in stats],
            "schema": pulsar_server.admin("GET", f"schemas/{pulsar_namespace}/orders/schemas"),
        }

    return Place(
        PulsarSystem.from_options(options),
        options,
        PulsarSource(topic),
        PulsarSource(f"{pulsar_namespace}/missing"),
        (PublishTime(timedelta(milliseconds=1)), Chained()),
        300,
        state,
    )


@pytest.fixture
def pravega(pravega_server: PravegaServer, pravega_scope: str) -> Place:
    from airflow_provider_streams.testing.pravega_writer import PravegaWriter

    stream = pravega_server.create_stream(pravega_scope, "orders", 3)
    options = {"controller": pravega_server.controller_uri, "request_timeout_seconds": "20", "stall_seconds": "20"}
    system = PravegaSystem.from_options(options)
    with closing(PravegaWriter(system.endpoint, stream)) as writer:
        writer.write((str(number), b"%d" % number) for number in range(300))

    def state() -> Any:
        call = system.client.call
        streams = call(stream_calls.list_streams(pravega_scope)).names
        current = call(segment_calls.current_segments(stream))
        return {
            "scopes": sorted(call(stream_calls.list_scopes()).names),
            "streams": sorted(streams),  # reader groups and marks are streams of the scope
            "holds": call(hold_calls.list_holds(stream)),
            "segments": sorted(one.segment_id for one in current),
            "tail": system.tail(PravegaSource(stream)).to_json(),
        }

    return Place(
        system,
        options,
        PravegaSource(stream),
        PravegaSource(f"{pravega_scope}/missing"),
        (Chained(),),
        300,
        state,
    )


@pytest.mark.parametrize(
    "name", [pytest.param("pulsar", marks=pytest.mark.pulsar), pytest.param("pravega", marks=pytest.mark.pravega)]
)
def test_planning_waiting_and_reading_leave_nothing_however_they_end(name: str, request: pytest.FixtureRequest) -> None:
    place: Place = request.getfixturevalue(name)
    with closing(place.system):
        before = place.state()
        place.system.observe_tail(place.source)
        place.system.tail(place.source)
        place.system.parse_cut(place.source, "latest")
        for basis in place.bases:
            plan = place.plan(place.source, basis)
            assert place.read(plan) == place.events
            assert 0 < place.read(plan, batches=1) <= place.events
            place.read_killed(plan)
            with pytest.raises(SourceNotFound):
                place.plan(place.missing, basis)
        wait_until(lambda: place.state() == before, "the server to forget the connections of a killed reader")
