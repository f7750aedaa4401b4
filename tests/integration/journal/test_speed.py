from __future__ import annotations

import time
from datetime import timedelta

import pytest
from sqlalchemy import insert

from airflow_provider_streams.journal import names
from airflow_provider_streams.journal.tables import pins, runs
from airflow_provider_streams.model.window import Window

KEY = "pulsar:pulsar_default:persistent://shop/orders/events"
TASK = {"dag_id": "dag", "run_id": "manual__1", "task_id": "read", "try_number": 1}


@pytest.mark.parametrize("length", [1, 1000])
def test_coverage_of_ten_thousand_windows_takes_less_than_a_second(journal, hour, plan_of, length):
    reader = names.ensure_reader(journal._database, KEY, "dag.read")
    start, minute = hour(0).start, timedelta(minutes=1)
    at = [
        {"reader_id": reader, "window_start": start + n * minute, "window_end": start + (n + 1) * minute}
        for n in range(10_000)
    ]
    with journal._database.writing() as connection:
        connection.execute(
            insert(pins),
            [
                {**row, "id": n, "generation": 1, "fingerprint": f"{n:032x}", "pinned_at": start, "plan": "x" * length}
                for n, row in enumerate(at, 1)
            ],
        )
        connection.execute(
            insert(runs),
            [
                {
                    **row,
                    **TASK,
                    "id": n,
                    "pin_id": n,
                    "map_index": -1,
                    "state": "covered" if n % 7 else "failed",
                    "started_at": start,
                    "rows": 1,
                    "bytes": 1,
                    "verdict": "complete",
                    "receipt": "x" * length,
                }
                for n, row in enumerate(at, 1)
            ],
        )
    # CPU time: other work on the machine must not fail this
    began = time.process_time()
    coverage = journal.coverage(KEY, "dag.read", start, start + 10_000 * minute, minute)
    counts, gaps, overlaps = coverage.counts, coverage.gaps, coverage.overlaps
    seconds = time.process_time() - began
    print(f"coverage of 10,000 windows: {seconds:.2f} s")
    assert counts["covered"] == 10_000 - 1428
    assert len(gaps) == counts["failed"] == 1428
    assert not overlaps
    assert coverage.covered[0] == Window(start, start + 6 * minute)
    assert seconds < 1
