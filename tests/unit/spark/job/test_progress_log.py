from __future__ import annotations

import logging
import threading
from types import SimpleNamespace

import pytest

from airflow_provider_streams.model.read_progress import PROGRESS_SECONDS, Pace
from airflow_provider_streams.spark.job.progress_log import SplitProgress, TaskProgress, watched


@pytest.fixture
def pace():
    """Each look at the clock is a line later."""
    now = [0.0]

    def clock() -> float:
        now[0] += PROGRESS_SECONDS
        return now[0]

    return Pace(clock)


def shares(*sizes):
    return [[SimpleNamespace(split=SimpleNamespace(bytes=size))] for size in sizes]


def test_splits_that_this_process_reads(pace, caplog):
    caplog.set_level(logging.INFO)
    progress = SplitProgress([1_000_000, 3_000_000], pace)
    progress.read(500)
    progress.end_split(1_000_000)
    progress.read(500)
    first, second = caplog.messages
    assert first.startswith("0 of 2 splits are read, 500 events")
    assert second.startswith("1 of 2 splits are read, 1,000 events")
    assert "1.0 of 4.0 MB stored (25 %)" in second


def test_tasks_that_spark_ends(pace, caplog):
    caplog.set_level(logging.INFO)
    progress = TaskProgress(shares(1_000_000, 3_000_000), lambda: 77, pace)
    progress.ended(1)
    progress.ended(2)  # all: the job says what came of them
    (line,) = caplog.messages
    assert line.startswith("1 of 2 tasks are read, 77 events")
    assert "(25 %)" in line


def test_only_the_stage_that_reads_counts(pace, caplog):
    """A transform may shuffle the rows into as many tasks."""
    caplog.set_level(logging.INFO)
    progress = TaskProgress(shares(1_000_000, 3_000_000, 1_000_000), None, pace)
    progress.saw([(7, 200, 9), (6, 3, 2)])
    progress.saw([(8, 3, 0), (9, 3, 1)])
    (line,) = caplog.messages
    assert line.startswith("2 of 3 tasks are read, 4.0 of 5.0 MB stored")


def test_nothing_is_said_of_short_reads(caplog):
    caplog.set_level(logging.INFO)
    progress = SplitProgress([10])
    progress.read(5)
    progress.end_split(10)
    assert not caplog.messages


def test_a_spark_that_is_gone_only_ends_its_lines():
    class Gone:
        @property
        def sparkContext(self) -> None:  # noqa: N802
            asked.set()
            raise ConnectionResetError

    asked = threading.Event()
    with watched(Gone(), TaskProgress(shares(10)), every=0.001):
        assert asked.wait(600)
