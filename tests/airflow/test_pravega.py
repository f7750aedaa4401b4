"""A real Pravega server through Airflow's classes: hook, sensors, triggers and operators."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred
from airflow.sdk import DAG
from airflow.utils.state import DagRunState

from airflow_provider_streams import Cuts, PravegaSource, Window
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest, SourceNotFound
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.model.stream.hold import HoldRequest
from airflow_provider_streams.operators.pravega import (
    PravegaCreateStreamOperator,
    PravegaDeleteStreamOperator,
    PravegaScaleStreamOperator,
    PravegaSealStreamOperator,
    PravegaTruncateStreamOperator,
)
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.cuts import CutAvailableSensor
from airflow_provider_streams.sensors.pravega import (
    PravegaBacklogSensor,
    PravegaSegmentSealedSensor,
    PravegaStreamSealedSensor,
    PravegaWatermarkSensor,
)
from airflow_provider_streams.systems.pravega.client.stream_configuration import RetentionKind
from airflow_provider_streams.systems.pravega.operations import scaling
from airflow_provider_streams.systems.pravega.operations.stream_settings import StreamSettings
from airflow_provider_streams.testing.pravega_writer import PravegaWriter

pytestmark = pytest.mark.pravega

EVENT_BYTES = 100
STORED_BYTES = EVENT_BYTES + 8


@pytest.fixture
def hook(pravega_server: Any, pravega_scope: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Any]:
    """The connection `pravega_default` is the server, with a fresh scope; the journal is empty."""
    connection = {
        "conn_type": "pravega",
        "host": "127.0.0.1",
        "port": pravega_server.port["controller"],
        "schema": pravega_scope,
        "extra": {"rest_url": pravega_server.rest_url},
    }
    monkeypatch.setenv("AIRFLOW_CONN_PRAVEGA_DEFAULT", json.dumps(connection))
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))
    with closing(PravegaHook()) as made:
        yield made


@pytest.fixture
def stream(hook: PravegaHook, pravega_scope: str) -> str:
    """A fresh stream of one segment."""
    assert hook.create_stream("s").created
    return f"{pravega_scope}/s"


@pytest.fixture
def write(hook: PravegaHook, stream: str) -> Iterator[Any]:
    """Writes so many events of 100 bytes."""
    with PravegaWriter(hook.client.endpoint, stream) as writer:
        yield lambda count: writer.write((f"k{n}", b"%0100d" % n) for n in range(count))


async def fired(trigger: Any) -> dict[str, Any]:
    """What a trigger fires, on a loop of its own."""
    [event] = [event async for event in trigger.run()]
    await trigger.cleanup()
    return event.payload


def deferred(sensor: Any) -> Any:
    """The trigger that a sensor goes on with, as the triggerer makes it."""
    sensor.deferrable = True
    with pytest.raises(TaskDeferred) as raised:
        sensor.execute({})
    path, arguments = raised.value.trigger.serialize()
    assert path.endswith(type(raised.value.trigger).__name__)
    return type(raised.value.trigger)(**json.loads(json.dumps(arguments)))


def wait(kind: Any, **arguments: Any) -> Any:
    return kind(task_id="wait", poke_interval=0.1, deferrable=False, **arguments)


async def test_the_hook_tells_what_the_server_holds_in_both_ways(hook, stream, write, pravega_scope):
    write(10)
    assert pravega_scope in hook.scopes()
    assert "_system" not in hook.scopes()
    assert hook.streams() == await hook.astreams() == (stream,), "Pravega's own streams are not the user's"
    assert hook.streams(tag="red") == ()
    assert hook.exists("s")
    assert not await hook.aexists("t")
    state = hook.describe("s")
    assert state == await hook.adescribe(stream)
    assert (state.stream, len(state.segments), state.is_sealed) == (stream, 1, False)
    assert hook.head("s") == await hook.ahead("s") == hook.cut("s", "earliest")
    tail = hook.tail("s")
    assert tail == await hook.atail("s") == hook.cut("s", hook.cut_text("s", tail))
    assert tail == hook.cut("s", json.dumps(tail.to_json()))
    assert [position.parts for position in tail.values()] == [(10 * STORED_BYTES,)]
    assert hook.unread("s").bytes == (await hook.aunread("s")).bytes == 10 * STORED_BYTES
    assert hook.unread("s", tail).bytes == 0
    with pytest.raises(SourceNotFound):
        hook.describe("nothing")
    assert not hook.exists("nothing"), "a question makes no stream"
    await hook.aclose()


def test_a_hook_asks_from_one_loop_after_the_other_and_from_many_tasks_at_once(hook, stream, write):
    write(10)

    async def ask() -> set[Any]:
        asked = (*(hook.atail("s") for _ in range(20)), *(hook.aunread("s") for _ in range(20)))
        cancelled = [asyncio.wait_for(hook.atail("s"), 0.001 * number) for number in range(1, 9)]
        found = await asyncio.gather(*asked, *cancelled, return_exceptions=True)
        return {str(answer) for answer in found if not isinstance(answer, TimeoutError)}

    async def closing_it() -> set[Any]:
        found = await ask()
        await hook.aclose()
        return found

    assert asyncio.run(closing_it()) == asyncio.run(closing_it()) == {str(hook.tail("s")), str(hook.unread("s"))}
    assert asyncio.run(hook.ahead("s")) == asyncio.run(hook.ahead("s")), "also where no code closed it"


def test_the_connection_test_asks_every_service(hook, pravega_scope):
    ok, message = hook.test_connection()
    assert ok, message
    assert hook.health() == {"controller": "up", "segment store": "up", "REST API": "up"}
    with closing(PravegaHook(options={"scope": f"{pravega_scope}s"})) as mistyped:
        ok, message = mistyped.test_connection()
    assert not ok
    assert message.endswith(f"there is no scope '{pravega_scope}s'; did you mean {pravega_scope!r}?")
    wrong = PravegaHook(options={"controller": "tcp://127.0.0.1:1", "request_timeout_seconds": "2"})
    ok, message = wrong.test_connection()
    assert not ok
    assert "127.0.0.1:1 is not available" in message


def test_settings_that_are_not_changed_stay(hook, stream):
    hook.change_settings("s", StreamSettings(retention=timedelta(days=2), tags=("red",)))
    assert hook.set_tags("s", ["blue", "red"]).updated
    settings = hook.stream_settings("s")
    assert (settings.tags, settings.retention.kind) == (("blue", "red"), RetentionKind.TIME)
    assert settings.retention.minimum == 2 * 24 * 3600 * 1000
    assert not hook.set_tags("s", ["red", "blue"]).updated, "nothing to do"


def test_an_update_that_would_scale_the_stream_is_refused(hook, stream):
    split = hook.scale("s", scaling.split(0))
    assert len(split) == 2
    with pytest.raises(InvalidRequest, match="would scale it at once"):
        hook.set_tags("s", ["red"])
    assert hook.describe("s").segments == split, "refused before anything was done"
    assert hook.stream_settings("s").tags == ()
    hook.change_settings("s", StreamSettings(segments=2, tags=("red",)))
    assert hook.describe("s").segments == split
    assert hook.change_settings("s", StreamSettings(segments=1), rescale=True).updated
    assert len(hook.describe("s").segments) == 1


def test_a_stream_is_created_once_and_updated_on_request(hook, pravega_scope):
    def make(**arguments: Any) -> Any:
        return PravegaCreateStreamOperator(task_id="make", stream="made", **arguments).execute({})

    name = f"{pravega_scope}/made"
    assert make(segments=3, retention_bytes=1 << 20) == {"stream": name, "created": True, "updated": False}
    assert len(hook.describe("made").segments) == 3
    assert make(segments=1) == {"stream": name, "created": False, "updated": False}
    assert make(tags=["red"], if_exists="update")["updated"]
    assert (hook.stream_settings("made").tags, hook.stream_settings("made").retention.minimum) == (("red",), 1 << 20)
    with pytest.raises(InvalidRequest, match="exists already") as caught:
        make(if_exists="fail")
    assert isinstance(caught.value, AirflowFailException)
    with pytest.raises(SourceNotFound, match="scope other-scope"):
        PravegaCreateStreamOperator(task_id="make", stream="other-scope/s").execute({})
    fresh = f"{pravega_scope}-fresh/s"
    assert PravegaCreateStreamOperator(task_id="make", stream=fresh, make_scope=True).execute({})["created"]


def test_scaling_twice_scales_once(hook, stream):
    def scale(**choice: Any) -> list[str]:
        answer = PravegaScaleStreamOperator(task_id="scale", stream="s", **choice).execute({})
        assert answer["stream"] == stream
        return [segment["name"].rpartition("/")[2] for segment in answer["segments"]]

    assert scale(segments=2) == scale(segments=2) == ["1.#epoch.1", "2.#epoch.1"]
    assert scale(split="2.#epoch.1", parts=2) == ["1.#epoch.1", "3.#epoch.2", "4.#epoch.2"]
    with pytest.raises(InvalidRequest, match=r"not open: 2\.#epoch\.1"):
        scale(split="2.#epoch.1")
    with pytest.raises(InvalidRequest, match="neighbours"):
        scale(merge=["1.#epoch.1", "4.#epoch.2"])
    assert scale(merge=["3.#epoch.2", "1.#epoch.1"]) == ["4.#epoch.2", "5.#epoch.3"]


def test_a_truncation_drops_what_is_before_the_cut_once(hook, stream, write):
    write(10)
    middle = hook.tail("s")
    write(5)

    def truncate(cut: Any) -> dict[str, Any]:
        return PravegaTruncateStreamOperator(task_id="truncate", source=PravegaSource(stream), cut=cut).execute({})

    head = hook.head("s").to_json()
    first = truncate(middle.to_json())
    assert (first["bytes"], first["cut"], hook.head("s")) == (10 * STORED_BYTES, middle.to_json(), middle)
    assert truncate(hook.cut_text("s", middle))["bytes"] == 0, "a retry does no harm"
    with pytest.raises(InvalidRequest):
        truncate(head)
    assert hook.unread("s").bytes == 5 * STORED_BYTES


async def test_a_sealed_stream_is_waited_for_and_has_an_end(hook, stream, write):
    write(3)
    sensor = wait(PravegaStreamSealedSensor, stream="s")
    assert not sensor.poke({}).is_done
    trigger = deferred(sensor)
    seal = PravegaSealStreamOperator(task_id="seal", stream="s")
    sealed = seal.execute({})
    assert seal.execute({}) == sealed
    assert list(sealed["cut"].values()) == [str(3 * STORED_BYTES)]
    found = await fired(trigger)
    assert found == {"status": "success", **sealed}
    assert wait(PravegaStreamSealedSensor, stream="s").execute({}) == sealed


def test_only_a_stream_that_has_ended_and_that_nothing_holds_is_deleted(hook, stream, write):
    def delete(**how: bool) -> bool:
        done = PravegaDeleteStreamOperator(task_id="delete", stream="s", **how).execute({})
        assert done["stream"] == stream
        return bool(done["deleted"])

    write(3)
    with pytest.raises(AirflowFailException, match="is open: seal it first, or let seal=True do so"):
        delete()
    hook.place_hold(HoldRequest(hook.source("s"), "kept", "kept"))
    for how in ({}, {"seal": True}):
        with pytest.raises(AirflowFailException, match=r"is held for .*/kept.*force=True"):
            delete(**how)
    assert hook.unread("s").bytes == 3 * STORED_BYTES
    assert not hook.describe("s").is_sealed, "what was refused changed nothing"
    hook.release_hold(hook.source("s"), "kept", "kept")
    assert delete(seal=True)
    assert not hook.exists("s")
    assert not delete(), "a retry does no harm"
    assert hook.create_stream("s").created
    hook.place_hold(HoldRequest(hook.source("s"), "kept", "kept"))
    hook.seal("s")
    assert delete(force=True)


async def test_sealed_segments_are_waited_for(hook, stream, write):
    write(4)
    sensor = wait(PravegaSegmentSealedSensor, stream="s", segments="0.#epoch.0")
    assert not sensor.poke({}).is_done
    trigger = deferred(sensor)
    hook.scale("s", scaling.split(0))
    ends = {f"{stream}/0.#epoch.0": 4 * STORED_BYTES}
    assert (await fired(trigger))["ends"] == sensor.execute({})["ends"] == ends
    waiting = wait(PravegaSegmentSealedSensor, stream="s", segments=["0.#epoch.0", "1.#epoch.1"])
    assert not waiting.poke({}).is_done
    hook.truncate("s", hook.tail("s"))
    assert sensor.execute({}) == {"stream": stream, "ends": {}}, "dropped segments have ended as well"
    with pytest.raises(InvalidRequest, match="never had one"):
        wait(PravegaSegmentSealedSensor, stream="s", segments="7.#epoch.0").execute({})
    with pytest.raises(SourceNotFound):
        wait(PravegaSegmentSealedSensor, stream="nothing", segments="0.#epoch.0").execute({})


async def test_unread_bytes_are_waited_for_across_a_split(hook, stream, write):
    write(5)
    cut = hook.tail("s").to_json()
    enough = wait(PravegaBacklogSensor, stream="s", cut=cut, bytes=20 * STORED_BYTES)
    assert not enough.poke({}).is_done
    trigger = deferred(enough)
    write(5)
    hook.scale("s", scaling.split(0))
    write(15)
    found = await fired(trigger)
    assert (found["bytes"], found["cut"]) == (20 * STORED_BYTES, hook.tail("s").to_json())
    assert wait(PravegaBacklogSensor, stream="s", bytes=1).execute({})["bytes"] == 25 * STORED_BYTES
    drained = wait(PravegaBacklogSensor, stream="s", bytes=0, direction="at_most", cut=found["cut_text"])
    assert drained.execute({})["bytes"] == 0
    left = wait(PravegaBacklogSensor, stream="s", bytes=0, direction="at_most")
    assert not left.poke({}).is_done
    hook.truncate("s", hook.tail("s"))
    assert left.poke({}).is_done


async def test_a_recorded_cut_is_waited_for_without_asking_the_stream(hook, stream, write):
    before = datetime.now(UTC)
    write(2)
    source = PravegaSource(stream)
    sensor = wait(CutAvailableSensor, source=source, moment=before.isoformat())
    assert not sensor.poke({}).is_done
    trigger = deferred(sensor)
    tail = hook.tail("s")
    at = datetime.now(UTC)
    with open_journal() as journal:
        journal.record_cut(source.key, tail, sampled_from=at, sampled_to=at, recorder="test")
    found = await fired(trigger)
    assert (found["cut"], found["recorder"]) == (tail.to_json(), "test")
    assert found["skew_seconds"] == pytest.approx((at - before).total_seconds(), abs=0.01)
    assert sensor.execute({})["sampled_from"] == at.isoformat()
    later = wait(CutAvailableSensor, source=source, moment=at + timedelta(days=1))
    assert not later.poke({}).is_done


async def test_a_watermark_is_waited_for(hook, stream):
    early, late = (datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (9, 10))
    sensor = wait(PravegaWatermarkSensor, stream="s", moment=late)
    assert not sensor.poke({}).is_done
    trigger = deferred(sensor)
    with PravegaWriter(hook.client.endpoint, stream) as writer:
        for moment in (early, late):
            writer.transaction([("k", b"event")], noted_time=int(moment.timestamp() * 1000))
    found = await fired(trigger)
    assert found["lower"] == int(late.timestamp() * 1000)
    assert sensor.execute({})["cut"] == found["cut"] == hook.tail("s").to_json()


async def test_a_typo_in_a_streams_name_is_an_error_and_makes_nothing(hook, stream):
    sensor = wait(PravegaStreamSealedSensor, stream="typo")
    with pytest.raises(SourceNotFound) as caught:
        sensor.execute({})
    assert isinstance(caught.value, AirflowFailException)
    assert hook.streams() == (stream,)


@pytest.mark.dagtest
def test_a_dag_waits_reads_truncates_what_it_has_read_and_seals(dag_test, spark_stand_in, hook, stream, write):
    write(30)
    source = PravegaSource(stream)
    with DAG("housekeeping", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        scaled = PravegaScaleStreamOperator(task_id="scaled", source=source, segments=2)
        formed = PravegaBacklogSensor(task_id="formed", source=source, bytes=30 * STORED_BYTES, deferrable=True)
        window = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
        read = ReadWindowOperator(
            task_id="read", source=source, window=window, basis=Cuts("earliest", "latest"), sink=None
        )
        template = "{{ ti.xcom_pull(task_ids='read')['end_cut'] | tojson }}"
        dropped = PravegaTruncateStreamOperator(task_id="dropped", source=source, cut=template)
        drained = PravegaBacklogSensor(
            task_id="drained", source=source, cut=template, bytes=0, direction="at_most", deferrable=True
        )
        scaled >> formed >> read >> dropped >> drained >> PravegaSealStreamOperator(task_id="sealed", source=source)
    run = dag_test(dag)
    assert run.state == DagRunState.SUCCESS
    found = {name: run.get_task_instance(name).xcom_pull(task_ids=name) for name in ("read", "dropped", "sealed")}
    assert found["read"]["rows"] == 30
    assert found["dropped"]["bytes"] == 30 * STORED_BYTES
    assert found["read"]["end_cut"] == found["dropped"]["cut"] == found["sealed"]["cut"]
    assert hook.describe("s").is_sealed
