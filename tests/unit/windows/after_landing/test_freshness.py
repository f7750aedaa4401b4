"""When a table has everything up to a moment: by the windows of its reader, whatever order they run in."""

from __future__ import annotations

from datetime import timedelta

from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH
from airflow_provider_streams.windows.after_landing.freshness import is_fresh

MINUTE = timedelta(minutes=1)


def minute(number: int) -> Window:
    return Window(EPOCH + number * MINUTE, EPOCH + (number + 1) * MINUTE)


def test_a_table_is_fresh_when_no_window_before_the_moment_is_missing(world):
    sink = world.sink("lake")
    answer = is_fresh(world.journal, sink, minute(0).end)
    assert (answer.ready, "nothing was landed there yet" in answer.because) == (False, True)
    world.read(minute(0))
    assert is_fresh(world.journal, sink, minute(0).end).ready
    world.read(minute(2))
    answer = is_fresh(world.journal, sink, minute(2).end)
    assert not answer.ready
    assert "up to 2026-11-20T10:01:00Z" in answer.because
    world.read(minute(1))
    answer = is_fresh(world.journal, sink, minute(2).end)
    assert answer.ready
    assert answer.facts["covered_until"] == answer.facts["until"] == "2026-11-20T10:03:00Z"
    assert not is_fresh(world.journal, sink, minute(3).end).ready
    assert not is_fresh(world.journal, ParquetSink("/another/lake"), minute(0).end).ready
