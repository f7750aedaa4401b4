"""What a task announces of many tables, without Airflow's task runner: real journal, Airflow's own accessors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_streams import ParquetSink, Window
from airflow_provider_streams.airflow_features import Feature
from airflow_provider_streams.airflow_runtime import asset_events
from airflow_provider_streams.airflow_runtime.asset_events import Announcement, asset_of
from airflow_provider_streams.journal.landings import NewLanding
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan import Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.sinks.landing import Landed, Landing
from airflow_provider_streams.model.sinks.placeholders import SourceTable
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.partition_key import KeyRule, PartitionKeys
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.testing.plans import plan_of
from tests.airflow_versions import needs

HOUR = timedelta(hours=1)
TASK = TaskInstanceKey("dag", "run", "read", 1)
ROWS = 5


def hour(number: int) -> Window:
    return Window(EPOCH + number * HOUR, EPOCH + (number + 1) * HOUR)


@dataclass
class Reader:
    """A reader of streams that have a table each, and what it tells Airflow of them."""

    journal: Journal
    sink: ParquetSink

    def table(self, name: str) -> SourceTable:
        return SourceTable(FakeSource(name), ParquetSink(self.sink.path.replace("{topic}", name)))

    def land(self, name: str, *hours: int) -> None:
        table = self.table(name)
        new = NewLanding(Landing(table.sink).to_json(), "1h", "publish")
        kept = self.journal.landing(table.source.key, "r") or self.journal.land_as(
            table.source.key, "r", new, after=None
        )
        for number in hours:
            plan = plan_of([Split(0, f"{name}-0", Position.of(7, 0, -1), Position.of(7, 9, -1), 9)], reader="r")
            plan = self.journal.pin(table.source.key, replace(plan, window=hour(number)))
            started = self.journal.start_run(table.source.key, plan, TASK, landing_id=kept.id)
            receipt = compare(plan, [SplitReceipt(0, rows=ROWS, bytes=9)], seconds=1)
            self.journal.finish_run(started.run, Landed(receipt, ROWS))

    def fail(self, name: str, number: int) -> None:
        key, failure = self.table(name).source.key, {"error_type": "ReadStalled", "message": "stalled", "lost": False}
        self.journal.fail_window(key, "r", hour(number), TASK, **failure)

    def tell(self, *names: str, outlets: str = "", keys: PartitionKeys | None = None) -> tuple[dict[str, Any], int]:
        """What a task whose outlets are all tables, and those named, tells; the hours and rows by asset and key."""
        followed = [asset_of(self.table(name).sink) for name in outlets.split()]
        with DAG("dag", schedule=None):
            task = BaseOperator(task_id="read", outlets=[asset_of(self.sink), *followed])
        ti = SimpleNamespace(dag_id="dag", run_id="run", task_id="read", map_index=-1)
        events = OutletEventAccessors()
        context: Any = {"ti": ti, "outlet_events": events, "task": task}
        announcement = Announcement(
            self.journal, task, context, reader="r", sink=self.sink, keys=keys or PartitionKeys(key_format=None)
        )
        left = announcement.send([self.table(name) for name in names])
        self.journal.confirm(run.ref.id for one in names for run in self.unconfirmed(one))
        return {_name(key): _said(one.extra) for key, one in events._dict.items()}, left

    def unconfirmed(self, name: str) -> Iterator[Any]:
        found = self.journal.unannounced(self.table(name).source.key, "r")
        return (run for run in found if run.announced_by is not None)


def _name(key: Any) -> str:
    """`*` for all tables, a table's name, each with its partition."""
    name, partition = key.uri.rpartition("/")[2], getattr(key, "partition", "")
    return f"{name} {partition}".strip()


def _said(extra: dict[str, Any]) -> dict[int, Any]:
    """Hours, with the number of tables and the rows."""

    def number(fact: Any) -> int:
        return (Window.from_json(fact["window"]).start - EPOCH) // HOUR

    return {number(fact): (fact.get("tables", 1), fact["rows"]) for fact in extra["windows"]}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with Journal.open(f"sqlite:///{tmp_path}/journal.db") as journal:
        yield Reader(journal, ParquetSink(f"{tmp_path}/lake/{{topic}}"))


def test_an_hour_is_announced_for_all_tables_once_each_of_them_has_it(reader, caplog):
    reader.land("orders", 0)
    reader.fail("clicks", 0)
    reader.land("orders", 1)
    reader.land("clicks", 1)
    with caplog.at_level(logging.WARNING):
        told, left = reader.tell("orders", "clicks")
    assert told == {"*": {1: (2, 2 * ROWS)}}
    assert left == 1
    assert f"{hour(0)} has no event of file://" in caplog.text
    assert "it has not landed from clicks." in caplog.text
    reader.land("clicks", 0)
    assert reader.tell("orders", "clicks") == ({"*": {0: (2, 2 * ROWS)}}, 0)


def test_a_table_among_the_outlets_does_not_wait_for_the_others(reader):
    reader.land("orders", 0)
    reader.fail("clicks", 0)
    assert reader.tell("orders", "clicks", outlets="orders clicks") == ({"orders": {0: (1, ROWS)}}, 0)
    reader.land("clicks", 0)
    told, _ = reader.tell("orders", "clicks", outlets="orders clicks")
    assert told == {"*": {0: (2, 2 * ROWS)}, "clicks": {0: (1, ROWS)}}, "all tables, also the one announced before"


def test_a_new_table_does_not_hold_back_hours_from_before_it(reader):
    reader.land("orders", 0, 1)
    reader.land("views", 1)
    assert reader.tell("orders", "views")[0] == {"*": {0: (1, ROWS), 1: (2, 2 * ROWS)}}


def test_hours_that_wait_for_a_table_do_not_take_the_place_of_others(reader, monkeypatch):
    monkeypatch.setattr(asset_events, "MOST_EVENTS", 1)
    reader.land("orders", 0, 1)
    reader.land("clicks", 1)
    reader.fail("clicks", 0)
    assert reader.tell("orders", "clicks") == ({"*": {1: (2, 2 * ROWS)}}, 1)


@needs(Feature.PARTITION_EVENTS)
def test_a_key_of_another_window_in_any_table_is_not_given_again(reader):
    one_key = PartitionKeys(timetable=lambda _: "same")
    reader.land("orders", 0)
    assert "* same" in reader.tell("orders", keys=one_key)[0]
    reader.land("clicks", 1)
    reader.land("views", 1)
    told, _ = reader.tell("views", "clicks", "orders", keys=one_key)
    assert "* same" not in told


@needs(Feature.PARTITION_EVENTS)
def test_a_new_table_has_the_keys_of_the_dag_that_reads_the_others(reader):
    reader.land("orders", 0)
    reader.journal.note_key_rule(reader.table("orders").source.key, "r", KeyRule("%Y%m%d.%H", "UTC"))
    reader.land("views", 1)
    told, _ = reader.tell("views", "orders", keys=PartitionKeys())
    assert {name for name in told if " " in name} == {"* 20261120.10", "* 20261120.11"}
