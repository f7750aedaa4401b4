"""Holds and the retention guard on a Pravega server whose retention job never rests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.utils.state import DagRunState, TaskInstanceState

from airflow_provider_streams import PravegaSource, Window
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import EventsLost, RetentionAtRisk, StartTrimmed
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.model.window.basis import RecordedCuts
from airflow_provider_streams.operators.holds import (
    HoldRetentionOperator,
    MoveHoldOperator,
    ReleaseHoldOperator,
)
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.operators.retention import CheckRetentionOperator
from airflow_provider_streams.sensors.retention import RetentionRiskSensor
from airflow_provider_streams.systems.pravega.client.controller import hold_calls, stream_calls
from airflow_provider_streams.systems.pravega.client.stream_configuration import Retention, RetentionKind, Settings
from airflow_provider_streams.systems.pravega.operations.hold import name_for
from airflow_provider_streams.systems.pravega.operations.stream_settings import StreamSettings
from airflow_provider_streams.testing.plans import plan_of
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from airflow_provider_streams.windows.plan.cut_recording import record
from stream_servers import QUICK_START, PravegaServer
from stream_servers.waiting import wait_until
from tests.unit.cli.conftest import streams  # noqa: F401 - a fixture

pytestmark = [pytest.mark.pravega, pytest.mark.timeout(1800)]

HOUR = timedelta(hours=1)
STORED_BYTES = 100 + 8
KEEPING_LITTLE = {"time": {"retention": timedelta(milliseconds=1)}, "size": {"retention_bytes": 1}}
WAIT_SECONDS = 600

_scopes = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[PravegaServer]:
    """The period of its retention job is 0 minutes: it truncates about once a second."""
    settings = {"controller.retention.frequency.minutes": "0"}
    with PravegaServer(settings, jvm=QUICK_START, heap="1g") as running:
        yield running


class Shop:
    """A scope with streams that a test writes to, and what it asks about them."""

    def __init__(self, hook: PravegaHook, scope: str) -> None:
        self.hook, self.scope = hook, scope
        self.written: dict[str, int] = {}
        self._open = ExitStack()
        self._writers: dict[str, PravegaWriter] = {}

    def make(self, name: str, **settings: Any) -> PravegaSource:
        assert self.hook.create_stream(name, StreamSettings(**settings), make_scope=True).created
        stream = f"{self.scope}/{name}"
        self._writers[stream] = self._open.enter_context(PravegaWriter(self.hook.client.endpoint, stream))
        self.written[stream] = 0
        return PravegaSource(stream)

    def write(self, *sources: PravegaSource, count: int = 5) -> None:
        """Events with the numbers that follow those written so far."""
        for source in sources:
            first = self.written[source.stream]
            self._writers[source.stream].write(("k", b"%0100d" % number) for number in range(first, first + count))
            self.written[source.stream] = first + count

    def head(self, source: PravegaSource) -> int:
        """How many events are gone."""
        ((offset,),) = (position.parts for position in self.hook.head(source.stream).values())
        assert offset % STORED_BYTES == 0
        return offset // STORED_BYTES

    def holds(self, source: PravegaSource) -> list[str]:
        return [name.partition("/")[2] for name in self.hook.call(hold_calls.list_holds(source.stream))]

    def write_until_gone(self, events: int, source: PravegaSource, *others: PravegaSource) -> None:
        """Until retention has dropped so many events of a stream."""

        def gone() -> bool:
            self.write(source, *others)
            return self.head(source) >= events

        wait_until(gone, f"{events} events of {source} to go", WAIT_SECONDS)

    def edge(self, source: PravegaSource) -> datetime:
        """Record a cut; the time whose edge it is."""
        with open_journal() as journal, closing(self.hook.system()) as system:
            (done,) = record(journal, {source.conn_id: system}, [source], "test")
        assert done.error is None
        assert done.sample is not None
        return done.sample.sampled_from

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def shop(server: PravegaServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Shop]:
    scope = f"shop{next(_scopes)}"
    extra = {"controller": server.controller_uri, "scope": scope}
    monkeypatch.setenv("AIRFLOW_CONN_PRAVEGA_DEFAULT", json.dumps({"conn_type": "pravega", "extra": extra}))
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))
    with closing(PravegaHook()) as hook, closing(Shop(hook, scope)) as made:
        yield made


def run(operator: type, **arguments: Any) -> dict[str, Any]:
    return operator(task_id="t", **arguments).execute({})


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [int(row["event"]) for row in rows]


# Holds against the retention job


@pytest.mark.slow_except("size")
@pytest.mark.parametrize("kind", KEEPING_LITTLE)
def test_a_hold_keeps_what_its_reader_has_not_covered_and_no_more(shop, kind):
    held, free = (shop.make(name, **KEEPING_LITTLE[kind]) for name in ("held", "free"))
    hold = {"source": held, "reader": "d.read"}
    assert run(HoldRetentionOperator, **hold)["placed"]
    shop.write(held, free, count=20)
    shop.write_until_gone(20, free, held)
    assert shop.head(held) == 0
    before, tail = shop.hook.head(held.stream), shop.hook.tail(held.stream)
    covered = shop.written[held.stream]
    assert run(MoveHoldOperator, **hold, at=tail.to_json())["moved"]
    assert not run(MoveHoldOperator, **hold, at=before.to_json())["moved"], "a late retry moves nothing back"
    shop.write_until_gone(covered, held, free)
    assert shop.head(held) == covered, "it moves to the hold, and stops there"
    shop.write_until_gone(covered + 20, free, held)
    assert shop.head(held) == covered
    assert not run(HoldRetentionOperator, **hold)["placed"], "one that is there stays where it is"
    assert run(ReleaseHoldOperator, **hold)["released"]
    shop.write_until_gone(covered + 20, held)


def test_a_policy_with_a_maximum_goes_beyond_a_hold_and_the_next_window_says_so(shop):
    policy = Retention(RetentionKind.SIZE, STORED_BYTES, 30 * STORED_BYTES)
    source = shop.make("bounded")
    shop.hook.run(_keeping(source.stream, policy))
    hold = {"source": source, "reader": "d.read"}
    run(HoldRetentionOperator, **hold)
    edge = shop.edge(source)
    shop.write(source, count=10)
    assert shop.head(source) == 0
    shop.write_until_gone(10, source)
    from airflow_provider_streams.windows.plan.planning import WindowRead, fresh_plan
    from airflow_provider_streams.windows.plan.readiness import WindowQuestion

    question = WindowQuestion(source, Window(edge, shop.edge(source)), RecordedCuts())
    with open_journal() as journal, closing(shop.hook.system()) as system, pytest.raises(StartTrimmed):
        fresh_plan(journal, system, WindowRead(question, "d.read"))


def test_the_command_shows_whose_holds_are_on_a_stream(shop, streams, capsys):  # noqa: F811 - the fixture
    source = shop.make("shown")
    run(HoldRetentionOperator, source=source, reader="d.read")
    run(HoldRetentionOperator, source=source, reader="d.read", name="another")
    with open_journal() as journal:
        journal.pin(source.key, plan_of([], reader="d.read"))
    capsys.readouterr()  # the operators' logs
    streams("holds", "pravega", source.stream, "--output", "json")
    shown = {one["hold"]: one["reader"] for one in json.loads(capsys.readouterr().out)}
    named = {name: f"{shop.scope}/{name_for(name, source.stream)}" for name in ("d.read", "another")}
    assert shown == {named["d.read"]: "d.read", named["another"]: None}


def _keeping(stream: str, policy: Retention) -> Any:
    answer = yield stream_calls.update_stream(stream, Settings(retention=policy))
    assert answer


# Setup and teardown


@pytest.mark.dagtest
@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_a_hold_lives_as_long_as_the_run_that_reads(dag_test, spark_stand_in, shop, monkeypatch, outcome):
    """The window is read after a stream without a hold has lost as many events."""
    from airflow_provider_streams.airflow_runtime import spark_launch

    held, free = (shop.make(name, **KEEPING_LITTLE["time"]) for name in ("held", "free"))
    launch = spark_launch.launch
    seen: list[list[str]] = []

    def launch_late(spec: Any, *spark: Any) -> Any:
        seen.append(shop.holds(held))
        shop.write_until_gone(40, free)
        if outcome == "failure":
            raise EventsLost("shard", 0, 1, "1 byte", "a test wants it")
        return launch(spec, *spark)

    monkeypatch.setattr(spark_launch, "launch", launch_late)
    reader = f"hold_{outcome}.read"
    with DAG(f"hold_{outcome}", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        hold = HoldRetentionOperator(task_id="hold", source=held, reader=reader)
        write = Writing(task_id="write", shop=shop, sources=(held, free))
        read = ReadWindowOperator(task_id="read", source=held, window="{{ ti.xcom_pull(task_ids='write') }}", sink=None)
        release = ReleaseHoldOperator(task_id="release", source=held, reader=reader)
        hold.as_setup() >> write >> read >> release.as_teardown(setups=hold)
    finished = dag_test(dag)
    assert seen == [[name_for(reader, held.stream)]], "it is there while the window is read"
    assert shop.holds(held) == [], "and not afterwards"
    assert finished.get_task_instance("release").state == TaskInstanceState.SUCCESS
    if outcome == "failure":
        assert finished.state == DagRunState.FAILED
        return
    assert finished.state == DagRunState.SUCCESS
    assert sorted(numbers(spark_stand_in.tables[0])) == list(range(40))


class Writing(CheckRetentionOperator):
    """A task that writes 40 events between two recorded cuts, and returns their window."""

    def __init__(self, *, shop: Shop, sources: tuple[PravegaSource, ...], **kwargs: Any) -> None:
        super().__init__(source=sources[0], window_length=HOUR, max_delay=HOUR, **kwargs)
        self.shop, self.sources = shop, sources

    def execute(self, context: Any) -> Any:  # noqa: ARG002 - all operators' shape
        start = self.shop.edge(self.sources[0])
        self.shop.write(*self.sources, count=40)
        return str(Window(start, self.shop.edge(self.sources[0])))


# The guard

HOURLY = {"window_length": HOUR, "max_delay": 2 * HOUR}


async def test_the_guard_knows_a_policy_by_time_and_the_readers_hold(shop):
    source = shop.make("orders")
    assert run(CheckRetentionOperator, source=source, **HOURLY)["risk"] == "safe", "everything is kept"
    shop.hook.change_settings(source.stream, StreamSettings(retention=3 * HOUR))
    asked = {"source": source, **HOURLY}
    found = run(CheckRetentionOperator, **asked)
    assert (found["risk"], found["held_seconds"], found["room_seconds"]) == ("loss", 3 * 3600, 0)
    with pytest.raises(RetentionAtRisk, match="retention keeps 3h"):
        run(CheckRetentionOperator, **asked, on_risk="fail")
    guard = RetentionRiskSensor(task_id="guard", poke_interval=0.1, **asked, reader="d.read")
    assert guard.poke({}).xcom_value == await _fired(guard)
    run(HoldRetentionOperator, source=source, reader="d.read")
    assert run(CheckRetentionOperator, **asked, reader="d.read")["risk"] == "safe"
    assert run(CheckRetentionOperator, **asked)["risk"] == "safe"
    assert run(CheckRetentionOperator, **asked, reader="another.reader")["risk"] == "loss"
    assert not guard.poke({}).is_done
    shop.hook.run(_keeping(source.stream, Retention(RetentionKind.TIME, 60_000, 5 * 3_600_000)))
    found = run(CheckRetentionOperator, **asked, reader="d.read")
    assert (found["risk"], found["held_seconds"]) == ("safe", 5 * 3600), "the policy's maximum bounds the hold"
    run(ReleaseHoldOperator, source=source, reader="d.read")
    assert run(CheckRetentionOperator, **asked, reader="d.read")["held_seconds"] == 60


async def test_the_guard_judges_a_policy_by_size_by_how_fast_the_stream_grows(shop):
    source = shop.make("orders", retention_bytes=1 << 20)
    asked = {"source": source, **HOURLY}
    shop.write(source)
    unknown = run(CheckRetentionOperator, **asked)
    assert (unknown["risk"], unknown["bytes_per_second"]) == ("unknown", None)
    assert "no recorded cut" in unknown["causes"][0]
    since = shop.edge(source)
    shop.write(source, count=100)
    least = (datetime.now(UTC) - since).total_seconds()
    found = run(CheckRetentionOperator, **asked)
    most = (datetime.now(UTC) - since).total_seconds()
    assert 100 * STORED_BYTES / most - 0.1 <= found["bytes_per_second"] <= 100 * STORED_BYTES / least + 0.1
    assert (1 << 20) / (100 * STORED_BYTES) * least <= found["held_seconds"] <= (1 << 20) / (100 * STORED_BYTES) * most
    assert (found["risk"], found["horizon"]) == ("loss", since.isoformat())
    guard = RetentionRiskSensor(task_id="guard", poke_interval=0.1, **asked)
    assert (await _fired(guard))["risk"] == "loss"
    roomy = shop.make("roomy", retention_bytes=1 << 50)
    shop.edge(roomy)
    shop.write(roomy)
    assert run(CheckRetentionOperator, source=roomy, **HOURLY)["risk"] == "safe"


async def _fired(sensor: Any) -> dict[str, Any]:
    """What the sensor's trigger tells when it fires."""
    trigger = sensor.trigger({})
    ((payload,),) = ([event.payload async for event in trigger.run()],)
    await trigger.cleanup()
    assert payload.pop("status") == "success"
    return payload
