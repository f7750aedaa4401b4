from __future__ import annotations

import pytest

from airflow_provider_streams.errors.plurals import counted


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [
        (0, "window", "0 windows"),
        (1, "window", "1 window"),
        (1200, "window", "1,200 windows"),
        (1, "entry", "1 entry"),
        (2, "entry", "2 entries"),
        (2, "day", "2 days"),
        (1, "Spark job", "1 Spark job"),
    ],
)
def test_a_number_and_its_noun(number: int, noun: str, expected: str) -> None:
    assert counted(number, noun) == expected
