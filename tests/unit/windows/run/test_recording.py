from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import EventsLost, JournalError, ReadStalled
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window.basis import RecordedCuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem
from airflow_provider_streams.windows.claim.decision import TableClaim
from airflow_provider_streams.windows.plan.planning import WindowRead, fresh_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from airflow_provider_streams.windows.run.recording import RunStart, noting_on, recorded_planning, recorded_run

SOURCE = FakeSource("numbers")
TASK = TaskInstanceKey("dag", "run", "read", 1)
BEGIN = RunStart(TableClaim(None, None), TASK)


@pytest.fixture
def journal(tmp_path):
    with Journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        yield journal


def window(number: int) -> Window:
    """The n-th span of ten seconds."""
    return Window(EPOCH + timedelta(seconds=10 * number), EPOCH + timedelta(seconds=10 * number + 10))


def test_a_recorded_window_carries_the_skew_of_its_edges(journal):
    start = datetime(2026, 11, 20, 12, tzinfo=UTC)
    for minute, events in ((0, 10), (60, 30)):
        cut = FakeSystem({"events": str(events)}).tail(SOURCE)
        at = start + timedelta(minutes=minute, seconds=1)
        journal.record_cut(SOURCE.key, cut, sampled_from=at, sampled_to=at + timedelta(seconds=1), recorder="r")
    question = WindowQuestion(SOURCE, Window(start, start + timedelta(hours=1)), RecordedCuts())
    plan = fresh_plan(journal, FakeSystem({}), WindowRead(question, "reader"))
    assert plan.skew_seconds == (2.0, 2.0)
    assert plan.estimate.events == 2 * 20
    assert type(plan).from_json(plan.to_json()) == plan
    question = WindowQuestion.from_json(SOURCE, question.to_json())
    assert question.basis == RecordedCuts(timedelta(minutes=5))


def break_journal(path):
    """Whatever is written to a run fails from now on; reading goes on."""
    with sqlite3.connect(path / "journal.db") as database:
        for event in ("INSERT", "UPDATE"):
            database.execute(
                f"CREATE TRIGGER broken_{event} BEFORE {event} ON streams_runs BEGIN SELECT RAISE(ABORT, 'full'); END"
            )
    database.close()


def fail_with_broken_journal(path):
    break_journal(path)
    raise ZeroDivisionError


def test_the_journal_failing_does_not_take_the_place_of_what_ended_a_run(journal, tmp_path, caplog):
    plan = fresh_plan(journal, FakeSystem({}), WindowRead(WindowQuestion(SOURCE, window(1)), "reader"))
    journal.pin(SOURCE.key, plan)
    with pytest.raises(ZeroDivisionError) as caught, recorded_run(journal, SOURCE.key, plan, BEGIN):
        fail_with_broken_journal(tmp_path)
    (note,) = caught.value.__notes__
    assert "could not record this failure: JournalError" in note
    assert "full" in note
    assert note in caplog.text


def test_the_journal_failing_does_not_take_the_place_of_why_a_read_ended(world, tmp_path):
    stalled = ReadStalled("numbers-0", 5, 9, seconds=60)

    def fail(_spec):
        break_journal(tmp_path)
        raise stalled

    world.before = fail
    with pytest.raises(ReadStalled) as caught:
        world.read(window(1))
    assert caught.value is stalled
    assert "could not record this failure: JournalError" in stalled.__notes__[0]


def test_runs_whose_end_cannot_be_recorded_have_failed(world, monkeypatch):
    def refuse(*_given):
        raise JournalError("the disk is full")

    monkeypatch.setattr(Journal, "finish_run", refuse)
    span, minute = Window(EPOCH, EPOCH + timedelta(minutes=2)), timedelta(minutes=1)
    with pytest.raises(JournalError):
        world.backfill(span)
    for one in (Window(EPOCH, EPOCH + minute), Window(EPOCH + minute, span.end)):
        (run,) = world.journal.runs(SOURCE.key, "reader", one)
        assert (run.state, run.error_type) == ("failed", "JournalError")


def test_the_journal_failing_does_not_take_the_place_of_why_a_window_cannot_be_planned(journal, tmp_path):
    read = WindowRead(WindowQuestion(SOURCE, window(1)), "reader")
    journal.pinned(SOURCE.key, "reader", window(1))  # makes its tables
    break_journal(tmp_path)
    lost = EventsLost("numbers-0", 1, 2, "1 event", "trimmed")
    with pytest.raises(EventsLost) as caught, recorded_planning(journal, read, TASK):
        raise lost
    assert caught.value is lost
    assert len(lost.__notes__) == 1


def test_a_failure_that_is_recorded_gets_no_note(journal):
    plan = fresh_plan(journal, FakeSystem({}), WindowRead(WindowQuestion(SOURCE, window(1)), "reader"))
    journal.pin(SOURCE.key, plan)
    with pytest.raises(ReadStalled) as caught, recorded_run(journal, SOURCE.key, plan, BEGIN):
        raise ReadStalled("numbers-0", 5, 9, seconds=60)
    assert not hasattr(caught.value, "__notes__")
    (item,) = journal.coverage(SOURCE.key, "reader", window(1).start, window(1).end).windows
    assert item.state == "failed"


def test_what_a_foreign_error_says_is_not_noted():
    error = ReadStalled("numbers-0", 5, 9, seconds=60)
    with noting_on(error):
        raise RuntimeError("password=secret")
    assert error.__notes__ == ["The journal could not record this failure: RuntimeError: see the task's log"]


def test_a_kill_while_a_failure_is_recorded_is_not_held_up():
    with pytest.raises(KeyboardInterrupt), noting_on(ValueError()):
        raise KeyboardInterrupt


@pytest.mark.parametrize("error", [JournalError("the disk is full"), KeyboardInterrupt()], ids=["error", "kill"])
def test_a_run_that_began_is_failed_when_the_next_one_of_its_job_cannot_begin(world, monkeypatch, error):
    begin, minute = Journal.start_run, timedelta(minutes=1)

    def begin_once(journal, key, plan, **ids):
        if plan.window.start > EPOCH:
            raise error
        return begin(journal, key, plan, **ids)

    monkeypatch.setattr(Journal, "start_run", begin_once)
    with pytest.raises(type(error)):
        world.backfill(Window(EPOCH, EPOCH + 3 * minute))
    first = world.journal.runs(SOURCE.key, "reader", Window(EPOCH, EPOCH + minute))
    assert [(run.state, run.error_type) for run in first] == [("failed", type(error).__name__)]
    assert world.windows() == []

    monkeypatch.undo()
    world.backfill(Window(EPOCH, EPOCH + 3 * minute))
    assert world.states(Window(EPOCH, EPOCH + 3 * minute)) == ["covered"] * 3
