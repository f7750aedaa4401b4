from __future__ import annotations

import pytest

from airflow_provider_streams.model.read_progress import PROGRESS_SECONDS, Pace, ReadProgress

MB = 1_000_000


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (
            ReadProgress(12, 40, "task", 300 * MB, 1000 * MB, 10.0, 3_000_000),
            (
                "12 of 40 tasks are read, 3,000,000 events (300,000 a second), 300.0 of 1,000.0 MB stored (30 %), "
                "30.0 MB/s, about 23 s left"
            ),
        ),
        (
            ReadProgress(1, 40, "task", 10 * MB, 1000 * MB, 10.0),
            "1 of 40 tasks are read, 10.0 of 1,000.0 MB stored (1 %), 1.0 MB/s, about 16 min 30 s left",
        ),
        (
            ReadProgress(0, 4, "split", 0, 64 * MB, 5.0, 500),
            "0 of 4 splits are read, 500 events (100 a second), 64.0 MB stored in all",
        ),
        (
            ReadProgress(0, 0, "split", 0, 0, 0.0, 0),
            "0 of 0 splits are read, 0 events (0 a second), 0.0 MB stored in all",
        ),
    ],
)
def test_a_line(progress, text):
    assert str(progress) == text


def test_a_line_is_due_every_few_seconds():
    now = [100.0]
    pace = Pace(lambda: now[0])
    assert not pace.is_due()
    now[0] += PROGRESS_SECONDS
    assert pace.is_due()
    assert not pace.is_due()
    now[0] += 3 * PROGRESS_SECONDS
    assert pace.is_due()
    assert pace.seconds == 4 * PROGRESS_SECONDS
