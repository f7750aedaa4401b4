from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, insert

from airflow_provider_streams.journal import pinned_plans as pinned
from airflow_provider_streams.journal import row_ids
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.tables import pins, runs
from airflow_provider_streams.model.window.window import Window

pytestmark = pytest.mark.slow

KEY = "pulsar:pulsar_default:persistent://shop/orders/events"
TASK = TaskInstanceKey("dag", "manual__1", "read", 1)


@pytest.mark.parametrize("length", [1, 1000])
def test_coverage_of_ten_thousand_windows_is_one_pass(journal, hour, plan_of, length):
    reader = row_ids.ensure_reader(journal._database, KEY, "dag.read")
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
                    **asdict(TASK),
                    "id": n,
                    "pin_id": n,
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
    statements = []
    event.listen(journal._database._engine, "before_cursor_execute", lambda *facts: statements.append(facts[2]))
    coverage = journal.coverage(KEY, "dag.read", start, start + 10_000 * minute, minute)
    counts, gaps, overlaps = coverage.counts, coverage.gaps, coverage.overlaps
    assert counts["covered"] == 10_000 - 1428
    assert len(gaps) == counts["failed"] == 1428
    assert not overlaps
    assert coverage.covered[0] == Window(start, start + 6 * minute)
    asked = [statement for statement in statements if statement.startswith("SELECT")]
    assert len(asked) <= 5, "the number of questions must not grow with the number of windows"


def test_the_last_covered_window_is_found_from_the_end_not_among_all(journal):
    """Each step of the question goes by an index, and the windows come in their order: none is sorted."""
    journal.sources()
    with journal._database.reading() as connection:
        if connection.dialect.name != "sqlite":
            pytest.skip("how another database answers hangs on how much it holds")
        asked: list[tuple[str, object]] = []
        event.listen(connection, "before_cursor_execute", lambda *facts: asked.append(facts[2:4]))
        for before in (None, datetime(2026, 11, 20, tzinfo=UTC)):
            pinned.last_covered(connection, 1, 1, before)
            steps = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked[-1][0]}", asked[-1][1])]
            assert steps[0].startswith("SEARCH streams_pins USING INDEX streams_pins_by_end (reader_id=?"), steps
            assert not [step for step in steps if step.startswith("SCAN")], steps
            assert not [step for step in steps if "FOR ORDER BY" in step and "LAST TERM" not in step], steps
