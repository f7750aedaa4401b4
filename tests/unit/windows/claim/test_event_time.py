"""Windows by event time that do not tile are kept out of one table: those of two fields, or of two bases."""

from datetime import timedelta

import pytest

from airflow_provider_streams.errors import LandingMismatch
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.window.basis import EventTime, PublishTime, event_time_of
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH

MINUTE = timedelta(minutes=1)


def minute(number):
    return Window(EPOCH + number * MINUTE, EPOCH + (number + 1) * MINUTE)


def test_a_reader_has_one_time_that_counts(world):
    created, updated = (EventTime(MINUTE, event_time=name) for name in ("created_at", "updated_at"))
    world.read(minute(0), basis=created)
    world.read(minute(1), basis=EventTime(2 * MINUTE, event_time="created_at"))
    for other, told in (
        (updated, "'event' event_time='updated_at'"),
        (EventTime(), "'event'"),
        ("publish", "'publish'"),
    ):
        with pytest.raises(LandingMismatch, match=f"basis {told} instead of 'event' event_time='created_at'"):
            world.read(minute(2), basis=other)
    world.read(minute(2), basis=updated, full_refresh=True)


def test_what_is_said_of_a_time_is_what_is_not_as_usual():
    assert event_time_of(EventTime()) is event_time_of(PublishTime()) is None
    assert event_time_of(EventTime(rows="superset")) == {"rows": "superset"}
    assert event_time_of(EventTime(MINUTE, event_time="at", unit="s")) == {"event_time": "at", "unit": "s"}


def test_windows_by_a_field_keep_one_decoding(world):
    """An event that one window decodes, and another does not, has two times: it would be in both, or in none."""
    world.hold(events=600, records=1)
    old, new = Json("n long not null, shard string"), Json("n long, shard string")
    by_field = EventTime(MINUTE, event_time="n", unit="s")
    world.read(minute(0), value=old, basis=by_field)
    for acts in ({}, {"replan": True}):
        with pytest.raises(LandingMismatch, match="its windows are by a field of theirs"):
            world.read(minute(1), value=new, basis=by_field, **acts)
    world.read(minute(1), value=new, basis=by_field, full_refresh=True)
    world.read(minute(0), value=old, reader="by publish time", sink="other")
    world.read(minute(1), value=new, reader="by publish time", sink="other", replan=True)
