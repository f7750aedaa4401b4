"""Recorders inside Airflow's task runner and triggerer, and windows read between what they left."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.utils.state import DagRunState, TaskInstanceState

from airflow_provider_streams import PravegaSource, RecordedCuts, Window
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.window.coverage_timeline import draw
from airflow_provider_streams.operators.cuts import RecordCutsOperator
from airflow_provider_streams.operators.epoch import PravegaRollEpochOperator
from airflow_provider_streams.operators.holds import HoldRetentionOperator, MoveHoldOperator, ReleaseHoldOperator
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.systems.pravega.operations.hold import name_for
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.triggers.cuts import RecordCutsTrigger

pytestmark = pytest.mark.dagtest

SOURCE = FakeSource("numbers")
SECOND = timedelta(seconds=1)


def dag_of(dag_id: str, *operators: Any) -> DAG:
    """Operators one after the other, each given as its class and its arguments."""
    with DAG(dag_id, schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        before = None
        for kind, arguments in operators:
            task = kind(**arguments)
            if before is not None:
                before >> task
            before = task
    return dag


def recorded(source: Any = SOURCE) -> list[Any]:
    with open_journal() as journal:
        return journal.recorded_cuts(source.key, 100)


def now() -> datetime:
    return datetime.now(UTC)


def test_windows_are_read_between_what_a_frequent_dag_recorded(dag_test, fake, spark_stand_in):
    recording = dag_of("recording", (RecordCutsOperator, {"task_id": "record", "sources": SOURCE}))
    edges = []
    for events in (10, 25, 25, 60):
        fake(events=events)
        edges.append(now())
        assert dag_test(recording).state == DagRunState.SUCCESS
    rows = []
    for number in range(3):
        window = Window(edges[number], edges[number + 1])
        common = {"source": SOURCE, "window": window, "basis": "append"}
        dag = dag_of(
            f"reading_{number}",
            (WindowReadySensor, {"task_id": "ready", "deferrable": True, "poke_interval": 0.05, **common}),
            (ReadWindowOperator, {"task_id": "read", "reader": "reader", "sink": None, **common}),
        )
        run = dag_test(dag)
        assert run.state == DagRunState.SUCCESS
        result = run.get_task_instance("read").xcom_pull(task_ids="read")
        assert result["basis"] == "append"
        assert all(0 < skew < 300 for skew in result["skew_seconds"])
        rows.append(result["rows"])
    assert rows == [30, 0, 70]
    assert {entry.recorder for entry in recorded()} == {"recording.record"}
    with open_journal() as journal:
        coverage = journal.coverage(SOURCE.key, "reader", edges[0], edges[-1])
    assert coverage.is_complete
    assert coverage.windows[0].skew_seconds is not None


def test_an_edge_in_a_gap_of_the_recorder_fails_until_the_user_allows_it(dag_test, fake, spark_stand_in, capfd):
    recording = dag_of("gap_recording", (RecordCutsOperator, {"task_id": "record", "sources": [SOURCE]}))
    start, edge = now() - timedelta(hours=2), now() - timedelta(hours=1)
    assert dag_test(recording).state == DagRunState.SUCCESS
    read = {"task_id": "read", "source": SOURCE, "window": Window(start, edge), "basis": "append", "retries": 2}
    landing = {"sink": None}
    refused = dag_test(dag_of("gap_refused", (ReadWindowOperator, {**read, **landing})))
    ti = refused.get_task_instance("read")
    assert (ti.state, ti.try_number) == (TaskInstanceState.FAILED, 1), "retries cannot help"
    assert "NoCutNearby" in capfd.readouterr().out
    sensor = {**read, "task_id": "ready", "deferrable": True}
    assert dag_test(dag_of("gap_sensor", (WindowReadySensor, sensor))).state == DagRunState.FAILED
    allowed = dag_test(
        dag_of("gap_allowed", (ReadWindowOperator, {**read, **landing, "basis": RecordedCuts(timedelta(hours=3))}))
    )
    result = allowed.get_task_instance("read").xcom_pull(task_ids="read")
    assert result["rows"] == 0
    assert result["skew_seconds"][0] > 2 * 3600
    with open_journal() as journal:
        text = draw(journal.coverage(SOURCE.key, "gap_allowed.read", start, edge))
    assert "no cut was recorded earlier" in text


def test_a_clock_in_the_triggerer_records_for_a_while(dag_test, fake):
    arguments = {"every": timedelta(seconds=0.1), "duration": timedelta(seconds=2), "deferrable": True}
    dag = dag_of("clock", (RecordCutsOperator, {"task_id": "record", "sources": SOURCE, **arguments}))
    run = dag_test(dag)
    assert run.state == DagRunState.SUCCESS
    result = run.get_task_instance("record").xcom_pull(task_ids="record")
    entries = recorded()
    assert result["stored"] == len(entries) >= 2
    assert result["failing"] == {}
    late = [entry.sampled_from.timestamp() % 0.1 for entry in entries[1:]]
    assert min(late) < 0.09, "ticks lie on multiples of the interval"


def test_one_source_that_fails_is_named_and_the_others_are_recorded(dag_test, fake, monkeypatch, tmp_path):
    broken = {"conn_type": "fake", "extra": {"truth": str(tmp_path / "nowhere.json")}}
    monkeypatch.setenv("AIRFLOW_CONN_BROKEN", json.dumps(broken))
    sources = [FakeSource("numbers", conn_id="broken"), SOURCE]
    dag = dag_of("partly", (RecordCutsOperator, {"task_id": "record", "sources": sources}))
    assert dag_test(dag).state == DagRunState.FAILED
    assert len(recorded()) == 1


def test_a_connection_that_does_not_exist_keeps_no_good_one_from_being_recorded(dag_test, fake, capfd):
    sources = [FakeSource("numbers", conn_id="nobody_made_it"), SOURCE]
    dag = dag_of("no_connection", (RecordCutsOperator, {"task_id": "record", "sources": sources}))
    assert dag_test(dag).state == DagRunState.FAILED
    assert "nobody_made_it" in capfd.readouterr().out
    assert len(recorded()) == 1
    assert recorded(sources[0]) == []


async def test_the_trigger_records_beside_a_connection_that_does_not_exist(fake):
    sources = [FakeSource("numbers", conn_id="nobody_made_it"), SOURCE]
    trigger = RecordCutsTrigger(sources, 0.05, "watcher", (now() + SECOND / 2).isoformat())
    (payload,) = [event.payload async for event in trigger.run()]
    assert payload["stored"] == len(recorded()) >= 1
    assert payload["failing"] == {sources[0].key: "InvalidRequest"}


async def test_the_trigger_survives_a_server_that_is_away(fake, tmp_path):
    (tmp_path / "truth.json").unlink()
    trigger = RecordCutsTrigger([source_to_json(SOURCE)], 0.05, "watcher", (now() + SECOND).isoformat())
    (payload,) = [event.payload async for event in trigger.run()]
    assert payload["stored"] == 0 < payload["ticks"]
    assert payload["failing"] == {SOURCE.key: "SystemUnavailable"}


def test_old_cuts_are_forgotten_and_the_last_one_stays(dag_test, fake):
    arguments = {"task_id": "record", "sources": SOURCE, "keep": timedelta(0)}
    for number in range(3):
        assert dag_test(dag_of(f"pruning_{number}", (RecordCutsOperator, arguments))).state == DagRunState.SUCCESS
    assert [entry.sequence for entry in recorded()] == [3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"sources": []},
        {"sources": "orders"},
        {"sources": SOURCE, "every": SECOND},
        {"sources": SOURCE, "every": SECOND, "duration": SECOND, "deferrable": False},
        {"sources": SOURCE, "every": timedelta(0), "duration": SECOND, "deferrable": True},
    ],
)
def test_what_cannot_work_is_refused_when_the_dag_is_parsed(wrong):
    with pytest.raises(InvalidRequest):
        RecordCutsOperator(task_id="record", **wrong)


@pytest.mark.pravega
def test_pravega_from_hold_to_release(dag_test, fake, spark_stand_in, pravega_server, pravega_scope, monkeypatch):  # noqa: PLR0917 - fixtures
    monkeypatch.setenv(
        "AIRFLOW_CONN_PRAVEGA_DEFAULT",
        json.dumps({"conn_type": "pravega", "extra": {"controller": pravega_server.controller_uri}}),
    )
    source = PravegaSource(pravega_server.create_stream(pravega_scope, "orders", segments=2))
    common = {"source": source, "reader": "reader"}
    roll = {"source": source, "moment": "{{ dag_run.conf['at'] }}"}
    start = now()
    opening = dag_of(
        "pravega_opening",
        (HoldRetentionOperator, {"task_id": "hold", **common}),
        (PravegaRollEpochOperator, {"task_id": "roll", **roll}),
    )
    assert dag_test(opening, run_conf={"at": start.isoformat()}).state == DagRunState.SUCCESS
    end = now()
    with DAG("pravega_window", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        tick = PravegaRollEpochOperator(task_id="roll", **roll)
        ready = WindowReadySensor(task_id="ready", source=source, window=Window(start, end), poke_interval=0.1)
        read = ReadWindowOperator(task_id="read", window=Window(start, end), sink=None, **common)
        move = MoveHoldOperator(task_id="move", **common)
        release = ReleaseHoldOperator(task_id="release", **common)
        tick >> ready >> read >> move >> release
    run = dag_test(dag, run_conf={"at": end.isoformat()})
    assert run.state == DagRunState.SUCCESS
    results = {task: run.get_task_instance(task).xcom_pull(task_ids=task) for task in ("roll", "read", "move")}
    assert results["read"]["basis"] == "append", "Pravega's default"
    assert results["roll"]["is_edge"]
    assert results["move"]["cut"] == results["roll"]["cut"]
    assert run.get_task_instance("release").xcom_pull(task_ids="release") == {
        "hold": name_for("reader", source.stream),
        "released": [source.stream],
    }
