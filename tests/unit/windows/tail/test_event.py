from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from airflow_provider_streams.windows.tail.event import Event, plain

MOMENT = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "json_value"),
    [
        (b"\x00\xff", "AP8="),
        (MOMENT, "2026-11-20T10:00:00Z"),
        (datetime(2026, 11, 20, 10), "2026-11-20T10:00:00"),  # noqa: DTZ001 - a time of no zone
        (date(2026, 11, 20), "2026-11-20"),
        (time(10, 1), "10:01:00"),
        (Decimal("1.10"), "1.10"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        ({"a": [b"x", {"b": None}], b"k": 1}, {"a": ["eA==", {"b": None}], "aw==": 1}),
        (1.5, 1.5),
        (True, True),
    ],
)
def test_values_as_json(value, json_value):
    assert plain(value) == json_value
    json.dumps(plain(value), allow_nan=False)


def test_a_decoded_event_has_no_bytes():
    event = Event(("t", (1, 2, -1)), {"_ledger": 1, "_publish_time": MOMENT}, MOMENT, "k", {"id": 1}, None, version="3")
    assert event.to_json() == {
        "_ledger": 1,
        "_publish_time": "2026-11-20T10:00:00Z",
        "_key": "k",
        "value": {"id": 1},
        "_schema_version": "3",
    }


def test_an_event_of_a_system_without_keys_has_none():
    event = Event(("s", (1,)), {"_offset": 1}, None, None, "x", None, has_key=False)
    assert event.to_json() == {"_offset": 1, "value": "x"}


def test_an_undecodable_event_has_its_bytes_and_the_cause():
    event = Event(("t", (1,)), {}, None, b"\xff", None, b"{", "it is no JSON")
    assert event.to_json() == {
        "_key": None,
        "_key_base64": "/w==",
        "value": None,
        "value_base64": "ew==",
        "error": "it is no JSON",
    }
