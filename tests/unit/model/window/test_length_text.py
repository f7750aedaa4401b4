"""Lengths of time as text."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_provider_streams.model.window.length_text import length_text


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(seconds=0.5), "0.5s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(hours=2), "2h"),
        (timedelta(days=7, minutes=1), "7d 1m"),
        (timedelta(days=1, hours=2, minutes=3, seconds=4), "1d 2h 3m 4s"),
        (-timedelta(hours=1, minutes=30), "-1h 30m"),
    ],
)
def test_a_length_reads_as_people_write_it(length: timedelta, text: str) -> None:
    assert length_text(length) == text
