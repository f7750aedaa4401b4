from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.hooks.readiness import WindowQuestion
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.receipt import compare
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.operators.reading import WindowRead, covered_without_gap, fresh_plan
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem

SOURCE = FakeSource("numbers")
TASK = {"dag_id": "dag", "run_id": "run", "task_id": "read", "try_number": 1}


@pytest.fixture
def journal(tmp_path):
    with Journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        yield journal


def window(number: int) -> Window:
    """The n-th span of ten seconds."""
    return Window(EPOCH + timedelta(seconds=10 * number), EPOCH + timedelta(seconds=10 * number + 10))


def read(journal, number, *, fails=False):
    """Reads a window as a task does; its plan."""
    system = FakeSystem({})
    question = WindowQuestion(SOURCE, window(number), slack=timedelta(0))
    plan = journal.pin(SOURCE.key, fresh_plan(journal, system, WindowRead(question, "reader")))
    run = journal.start_run(SOURCE.key, plan, **TASK)
    if fails:
        journal.fail_run(run, "ReadStalled", "silent")
        return plan
    readers = [system.read(plan, split) for split in plan.splits]
    for reader in readers:
        list(reader)
    journal.finish_run(run, compare(plan, [reader.receipt for reader in readers], seconds=0))
    return plan


def test_what_is_covered_without_a_gap_ends_before_the_first_window_that_is_not(journal):
    assert covered_without_gap(journal, SOURCE.key, "reader") is None
    read(journal, 3, fails=True)
    assert covered_without_gap(journal, SOURCE.key, "reader") is None
    second = read(journal, 2)
    assert covered_without_gap(journal, SOURCE.key, "reader") == second
    read(journal, 4)
    assert covered_without_gap(journal, SOURCE.key, "reader") == second, "window 3 is still unread"
    read(journal, 3)
    assert covered_without_gap(journal, SOURCE.key, "reader").window == window(4)
    read(journal, 6)
    assert covered_without_gap(journal, SOURCE.key, "reader").window == window(4), "5 was never tried"
    assert covered_without_gap(journal, SOURCE.key, "another reader") is None


def test_a_recorded_window_carries_the_skew_of_its_edges(journal):
    start = datetime(2026, 11, 20, 12, tzinfo=UTC)
    for minute, events in ((0, 10), (60, 30)):
        cut = FakeSystem({"events": str(events)}).tail(SOURCE)
        at = start + timedelta(minutes=minute, seconds=1)
        journal.record_cut(SOURCE.key, cut, sampled_from=at, sampled_to=at + timedelta(seconds=1), recorder="r")
    question = WindowQuestion(SOURCE, Window(start, start + timedelta(hours=1)), "append")
    plan = fresh_plan(journal, FakeSystem({}), WindowRead(question, "reader"))
    assert plan.skew_seconds == (2.0, 2.0)
    assert plan.estimate.events == 2 * 20
    assert type(plan).from_json(plan.to_json()) == plan
    question = WindowQuestion.from_json(SOURCE, question.to_json())
    assert question.max_skew == timedelta(minutes=5)
