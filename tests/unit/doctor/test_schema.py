"""How values would land, and whether the last events are what their schema says."""

from __future__ import annotations

import json

import pytest

from airflow_provider_streams.doctor.finding import Notes
from airflow_provider_streams.doctor.schema import check_schema, judge_events, judge_versions
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.errors import WindowNotReady
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.systems.schemas import SchemaVersion
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.windows.tail.event import Event
from airflow_provider_streams.windows.tail.tail import Tail


def event(value, cause=""):
    return Event(("orders", (1, 2)), {}, None, None, value, None, cause)


def judged(events, unreadable=()):
    notes = Notes("schema")
    judge_events(notes, events, unreadable)
    (found,) = notes.findings
    return found


@pytest.mark.parametrize(
    ("causes", "level"),
    [([], "skipped"), (["", ""], "ok"), (["", "no JSON"], "warning"), (["no JSON", "no JSON"], "error")],
)
def test_events_that_cannot_be_decoded_are_named(causes, level):
    assert judged([event(None if cause else {"id": 1}, cause) for cause in causes]).level == level


def test_columns_that_no_event_has_are_a_warning():
    assert judged([event({"nope": None}), event({"nope": None})]).level == "warning"
    assert judged([event({"nope": None}), event({"nope": 0})]).level == "ok"
    assert judged([event(None), event(None)]).level == "ok", "values that are null"


def test_events_that_cannot_be_read_are_an_error_that_names_why():
    found = judged([], ["not all can be shown: entry 42:7 is encrypted"])
    assert (found.level, "42:7 is encrypted" in found.says) == ("error", True)


def test_bytes_although_a_schema_is_known_are_a_warning():
    notes = Notes("schema")
    text = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
    judge_versions(notes, {"orders": (SchemaVersion("3", "AVRO", text, WriterSchema("avro", text)),)})
    (one,) = notes.findings
    assert one.level == "warning"
    assert "orders version 3 (AVRO): id bigint" in one.says.replace("id long", "id bigint")
    assert "value='auto'" in one.next_step


def test_no_schema_is_no_problem():
    notes = Notes("schema")
    judge_versions(notes, {"orders": ()})
    assert [one.level for one in notes.findings] == ["ok"]


@pytest.mark.parametrize(("records", "level"), [("1", "ok"), ("0", "error")])
def test_the_last_events_are_decoded_as_a_reader_would(monkeypatch, tmp_path, records, level):
    """Without records, the values of the tests' system are bytes that are no JSON."""
    monkeypatch.setenv(
        "AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": {"events": "60", "records": records}})
    )
    monkeypatch.setenv(
        "AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "journal.db")})
    )
    source = FakeSource("numbers", value=Json("n long, shard string"))
    found = {one.check: one for one in check_schema(Setup("fake", "fake_default", source), hook_for(source))}
    assert found["columns"].level == "ok"
    assert "n long" in found["columns"].says
    assert found["events"].level == level


def test_a_clock_that_is_ahead_is_no_question_of_grants(monkeypatch):
    def refuse(*_):
        raise WindowNotReady("numbers", "10:00/11:00", "the server's clock does not show more than 10:55")

    monkeypatch.setattr(Tail, "last", refuse)
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": {"events": "60"}}))
    source = FakeSource("numbers", value=Json("n long"))
    checked = check_schema(Setup("fake", "fake_default", source), hook_for(source))
    (found,) = [one for one in checked if one.check == "events"]
    assert (found.level, found.next_step) == ("skipped", "Run doctor again later; if clocks differ, see the area clock")
    assert "does not show more than 10:55" in found.says
