"""Windows of the events' own time, by a scheduled DAG on real servers: the broker's, or a decoded field's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.sdk import DAG

from airflow_provider_streams import EventTime, Json, ParquetSink, PravegaSource, PulsarSource, RecordCutsOperator
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.window import EPOCH
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.timetables import window_timetable
from tests.airflow import shop
from tests.airflow.shop import EDGES, HOURS, PLACE, TO_BE_PUBLISHED, in_folder, places, succeeded

pytestmark = [pytest.mark.dagtest, pytest.mark.usefixtures("clock_ahead")]

FIRST_DAY = datetime(2026, 11, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def reading(cron: str, source: Source, basis: EventTime, lake: Path) -> DAG:
    """Wait for the partition's window, then read it; a table, and so a reader, for each."""
    common = {"source": source, "basis": basis}
    schedule = window_timetable(cron)
    with DAG(f"{source.system}_{lake.name}", schedule=schedule, start_date=FIRST_DAY, catchup=False) as dag:
        ready = WindowReadySensor(task_id="ready", deferrable=True, poke_interval=0.1, timeout=600, **common)
        ready >> ReadWindowOperator(task_id="read", sink=ParquetSink(str(lake)), **common)
    return dag


@pytest.mark.pulsar
def test_an_hour_of_event_time_holds_the_messages_of_that_time_whenever_they_were_published(
    dag_test, pulsar, pulsar_server, pulsar_namespace
):
    """By the time that the broker keeps, and by a field of the decoded value."""
    topic = shop.take_orders(pulsar_server, f"{pulsar_namespace}/orders", TO_BE_PUBLISHED)
    wanted = topic.of_time(HOURS[1])
    assert places(wanted) != places(topic.published(HOURS[1]))

    by_broker = reading("@hourly", PulsarSource(topic.name), EventTime(30 * MINUTE), pulsar / "by_broker")
    got = succeeded(dag_test(by_broker, partition=HOURS[1].start))
    assert (got["rows"], got["basis"]) == (len(wanted), "event")
    assert sorted(in_folder(pulsar / "by_broker", *PLACE)) == places(wanted)

    source, basis = PulsarSource(topic.name, value="auto"), EventTime(30 * MINUTE, event_time="at", unit="ms")
    by_field = reading("@hourly", source, basis, pulsar / "by_field")
    got = succeeded(dag_test(by_field, partition=HOURS[1].start))
    assert (got["rows"], got["basis"]) == (len(wanted), "event")
    assert sorted(in_folder(pulsar / "by_field", "number")) == [(one.number,) for one in wanted]


@pytest.mark.pravega
def test_a_quarter_of_event_time_holds_the_events_of_that_time_whenever_they_were_stored(
    dag_test, pulsar, pravega_server, pravega
):
    """Each part of the events is between two cuts; every other event is fourteen minutes late."""
    pravega_server.create_scope("factory-event-time")
    stream = pravega_server.create_stream("factory-event-time", "readings")
    source = PravegaSource(stream, value=Json("n long, at long"))

    def at(n: int) -> datetime:
        return EDGES[n // shop.EACH] + n % shop.EACH * MINUTE - n % 2 * 14 * MINUTE

    def event(n: int) -> bytes:
        return b'{"n": %d, "at": %d}' % (n, (at(n) - EPOCH) // timedelta(microseconds=1))

    with DAG("records_cuts", schedule=None, start_date=FIRST_DAY) as recorder:
        RecordCutsOperator(task_id="record", sources=source)
    shop.write_between_cuts(dag_test, recorder, pravega_server, stream, event)
    basis = EventTime(15 * MINUTE, MINUTE, "at", "us")
    got = succeeded(dag_test(reading("*/15 * * * *", source, basis, pulsar / "by_field"), partition=EDGES[2]))
    wanted = [n for n in range(5 * shop.EACH) if EDGES[2] <= at(n) < EDGES[3]]
    assert {n // shop.EACH for n in wanted} == {2, 3}, "of two parts"
    assert (got["rows"], got["basis"]) == (len(wanted), "event")
    assert sorted(in_folder(pulsar / "by_field", "n")) == [(n,) for n in wanted]
