"""Events that lack a field which they must have: kept aside, and rows once they need not have it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.basis import Cuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.quarantine.window_quarantine import WindowQuarantine
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.testing.landing import context_without_spark, cover_without_spark
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from airflow_provider_streams.windows.after_landing.quarantine_replay import Replayer

pytestmark = pytest.mark.pravega

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WINDOW = Window(NOON, NOON + timedelta(hours=1))


def test_events_that_lack_a_field_become_rows_where_it_may_be_null(lab, stream, pravega_server, tmp_path):
    events = [{"n": number, "name": f"c{number}"} if number % 3 else {"n": number} for number in range(30)]
    with PravegaWriter(lab.system.endpoint, stream) as writer:
        writer.write((f"k{number}", json.dumps(event).encode()) for number, event in enumerate(events))
        writer.write([("k", b"{")])
    strict, loose = Json("n long, name string not null"), Json("n long, name string")
    options, sink = {"controller_uri": pravega_server.controller_uri}, ParquetSink(str(tmp_path / "lake"))
    with Journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        how = {"sink": sink, "undecodable": DecodeErrorPolicy("quarantine"), "basis": Cuts("earliest", "latest")}
        landed = cover_without_spark(journal, PravegaSource(stream, value=strict), WINDOW, "reader", options, **how)
        assert (landed.receipt.rows, landed.receipt.totals["quarantined"]) == (20, 11)
        place, given = context_without_spark(journal, "pravega", options), PravegaSource(stream, value=loose)
        done = Replayer(place, given, "reader", TaskInstanceKey("cli", "me", "replay", 1)).replay(WINDOW)
        assert (done.rows, done.left) == (10, 1)
    files = WindowQuarantine.of(sink, WINDOW).folder.glob("*.parquet")
    found = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    assert sorted((row["n"], row["name"]) for row in found) == [(one["n"], one.get("name")) for one in events]
    assert all(row["_stream"] and row["_offset"] >= 0 for row in found)
