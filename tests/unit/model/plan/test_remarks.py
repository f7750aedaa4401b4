"""Remarks of many plans: each told once, those on events of no window first."""

from __future__ import annotations

from datetime import timedelta

from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.model.plan.plan_summary import by_remark
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.backfill import PlannedWindow, Preview
from airflow_provider_streams.model.window.coverage import WindowState
from airflow_provider_streams.model.window.window import EPOCH, Window
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.testing.plans import plan_of
from airflow_provider_streams.windows.run.preparation import PreparedTable
from airflow_provider_streams.windows.run.request import OneWindow, ReadRequest
from airflow_provider_streams.windows.run.summary import tables_text

WINDOW = Window(EPOCH, EPOCH + timedelta(hours=1))
BLIND = "events without at are in no window"


def test_each_remark_is_told_once_and_those_on_events_of_no_window_first():
    told = by_remark([("a", ["read 1", BLIND]), ("b", ["read 2", "late"]), ("c", ["late", BLIND])])
    assert list(told.items()) == [(BLIND, ["a", "c"]), ("read 1", ["a"]), ("read 2", ["b"]), ("late", ["b", "c"])]


def test_plans_of_many_tables_show_their_remarks():
    item = PlannedWindow.of(WindowState(WINDOW, "missing"), plan_of([], window=WINDOW, remarks=(BLIND,)))
    windows, ids = OneWindow(WINDOW), TaskInstanceKey("dag", "run", "read", 1)
    requests = [
        ReadRequest(PulsarSource(f"public/shop/{name}"), "r", windows, ids, Landing(ParquetSink(f"/lake/{name}")))
        for name in "abcd"
    ]
    text = tables_text([PreparedTable(one, Preview(WINDOW, (), (item,))) for one in requests], 1)
    names = [str(one.source) for one in requests]
    assert f" note  {names[0]}, {names[1]}, {names[2]} and 1 more: {BLIND}" in text
