"""The examples that need Airflow's own processes, as they are, on a real broker: an approval, a watcher."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_streams import ParquetSink, PublishTime, PulsarSource, Window
from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.testing.landing import cover_without_spark
from tests.airflow.shop import DAY, PLACE, QUARTERS, Topic, in_folder, in_window, places
from tests.airflow.stack.acts import Dag, connect

pytestmark = [pytest.mark.stack, pytest.mark.pulsar, pytest.mark.timeout(1800)]

EVENTS = PulsarSource("shop/orders/events", conn_id="pulsar_default")


@pytest.fixture(scope="module")
def orders(airflow_stack: Any, pulsar_server: Any, shop_orders: Topic) -> Topic:
    """The topic of the examples, where their connection leads."""
    addresses = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
    connect(airflow_stack, EVENTS.conn_id, "pulsar", **addresses)
    return shop_orders


@pytest.fixture
def table(airflow_stack: Any) -> Iterator[Path]:
    """The folder in which the examples land; each has it for itself."""
    folder = airflow_stack.home / "lake-of-examples" / "orders"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_backfill_that_a_person_allows_fills_the_hours_of_a_day_and_so_completes_it(airflow_stack, orders, table):
    stack, fill, day = airflow_stack, Dag(airflow_stack, "backfill_approved"), Dag(airflow_stack, "daily_from_hours")
    with day.unpaused(), fill.unpaused():
        run = fill.start({"start": DAY.start.isoformat(), "end": DAY.end.isoformat()})
        fill.asking(run, "approve")
        asked = stack.call("GET", f"{fill.path}/dagRuns/{run}/taskInstances/approve/-1/hitlDetails")
        preview = fill.xcom(run, "preview")
        assert asked["subject"] == f"Backfill from {DAY.start.isoformat()} to {DAY.end.isoformat()}?"
        assert f"24 windows, {preview['bytes']} bytes in 1 Spark jobs" in asked["body"]
        assert not table.exists(), "a preview reads nothing"
        fill.answer(run, "approve", "Approve")
        fill.succeed(run)
        got = fill.xcom(run, "fill")
        wanted = orders.published(DAY)
        assert (got["rows"], got["jobs"], len(got["covered"])) == (len(wanted), 1, 24)
        assert sorted(in_folder(table, *PLACE)) == places(wanted)
        (one,) = day.until("no run", day.runs)
        if has(Feature.PARTITION_EVENTS):
            assert one["partition_key"] == f"{DAY.start:%Y-%m-%d}", "its hours' events completed the day"
        day.succeed(one["dag_run_id"])
        assert day.xcom(one["dag_run_id"], "report") == [f"{DAY.start:%Y-%m-%d}"]


@pytest.mark.slow
def test_windows_that_a_watcher_announces_are_read_by_a_task_each(airflow_stack, orders, table, pulsar_server):
    stack, dag = airflow_stack, Dag(airflow_stack, "pulsar_new_windows", watches="complete_quarters_of_orders")
    newest = QUARTERS.before(datetime.now(UTC))
    first, *rest = QUARTERS.cells(newest - 4 * QUARTERS.length, newest - QUARTERS.length)
    with Journal.open(f"sqlite:///{stack.home}/streams_journal.db") as journal:
        options = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
        cover_without_spark(
            journal, EVENTS, first, "orders", options, sink=ParquetSink(str(table)), basis=PublishTime()
        )
        with dag.unpaused():

            def covered() -> list[Window]:
                seen = journal.coverage(EVENTS.key, "orders", first.start, rest[-1].end, QUARTERS.length).windows
                return [item.window for item in seen if item.state == "covered"]

            dag.until("the windows were not read", lambda: covered() == [first, *rest])
            for run in dag.runs():
                dag.succeed(run["dag_run_id"])
    for window in (first, *rest):  # a quarter that ended meanwhile may also be there
        assert sorted(in_window(table, window, *PLACE)) == places(orders.published(window))
