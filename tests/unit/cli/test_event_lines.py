from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from airflow_provider_streams.cli.event_lines import EventLines, printable
from airflow_provider_streams.windows.tail.event import Event

MOMENT = datetime(2026, 11, 20, 10, 0, 1, 234567, tzinfo=UTC)
COLORS = re.compile(r"\x1b\[[0-9]*m")


def event(**values: Any) -> Event:
    given = {"moment": MOMENT, "key": "k1", "value": None, "payload": b"hello", **values}
    return Event(("persistent://shop/orders/events-partition-0", (12, 4, 0)), {}, **given)


def test_a_line_tells_time_place_key_and_value():
    assert EventLines(None).line(event()) == (
        "2026-11-20T10:00:01.234Z  shop/orders/events-partition-0  12:4:0  k1  hello"
    )


@pytest.mark.parametrize(
    ("values", "end"),
    [
        ({"payload": None, "value": {"id": 1, "name": "Zoë"}}, 'k1  {"id": 1, "name": "Zoë"}'),
        ({"payload": b"\xff\x00"}, "k1  0xff00"),
        ({"payload": b"a\nb"}, "k1  a\\nb"),
        ({"payload": b"\x00a"}, "k1  0x0061"),
        ({"key": None, "payload": None}, "12:4:0  null"),
        ({"key": b"\xff"}, "0xff  hello"),
        ({"cause": "it is no JSON", "payload": b"{"}, "k1  cannot be decoded: it is no JSON: {"),
    ],
)
def test_values_as_text(values, end):
    assert EventLines(None).line(event(**values)).endswith(end)


HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\x9b31m\u202e\u2028\u200b\x7f"


def test_hostile_text_reaches_no_terminal():
    for one in (
        event(key=HOSTILE),
        event(payload=HOSTILE.encode()),
        event(payload=None, value={HOSTILE: [HOSTILE]}),
        event(cause=HOSTILE),
    ):
        for width in (None, 60, 1000):
            assert COLORS.sub("", EventLines(width).line(one)).isprintable()


@given(st.text(), st.integers(1, 120))
def test_a_line_is_never_wider_than_the_terminal(text, width):
    shown = COLORS.sub("", EventLines(width).line(event(payload=None, value=text)))
    assert cell_len(shown) <= width
    assert shown.isprintable()


@given(st.text())
def test_printable_text_is_printable(text):
    assert printable(text).isprintable()


def test_what_no_terminal_shows_is_whole_and_has_no_color():
    long = "a" * 5000
    assert EventLines(None).line(event(payload=long.encode())).endswith(long)
    assert "\x1b" not in EventLines(None).line(event(cause="x"))
