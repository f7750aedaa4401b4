from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update

from airflow_provider_streams.errors import InvalidRequest, JournalError, NoCutNearby, PlanMismatch
from airflow_provider_streams.journal.evidence.recorded_edges import recorded_around
from airflow_provider_streams.journal.runs import window_runs
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.journal.tables import pins
from airflow_provider_streams.model.plan.plan import Loss, PlanRequest, Span
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.plan.time_statistics import TimeStatistics
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import FakeSource

ALSO_ON_MYSQL = MYSQL_IS_SLOW = True
KEY = "pulsar:pulsar_default:persistent://shop/orders/events"
TASK = TaskInstanceKey("dag", "manual__1", "read", 1)


@pytest.fixture
def cover(journal, landed_of):
    """Reads a window as a task would; the run's number."""

    def run(plan, *, rows=5):
        number = journal.start_run(KEY, journal.pin(KEY, plan), TASK).run
        journal.finish_run(number, landed_of(plan, rows))
        return number

    return run


@pytest.fixture
def state_of(journal):
    def ask(window, reader="dag.read"):
        (state,) = journal.coverage(KEY, reader, window.start, window.end).windows
        return state

    return ask


# What receipts prove


def test_receipts_that_tell_times_are_found_by_their_windows_the_nearest_first(journal, hour, plan_of, monkeypatch):
    def cover(number, times):
        plan = plan_of(hour(number), 10 * number, 10 * number + 10)
        reports = [SplitReceipt(one.index, entries=one.entries or 0, times=times) for one in plan.splits]
        run = journal.start_run(KEY, journal.pin(KEY, plan), TASK).run
        receipt = compare(plan, reports, seconds=1)
        journal.finish_run(run, Landed(receipt))
        return plan, receipt

    told = (TimeStatistics(Span(1, 0, 10), 5, 6, 1),)
    read = [cover(number, () if number == 1 else told) for number in range(5)]
    journal.start_run(KEY, journal.pin(KEY, plan_of(hour(5), 50, 60)), TASK)

    def found(first, last, reader="dag.read"):
        span = Window(hour(first).start, hour(last).end)
        return sorted(
            ((one.plan, one.receipt) for one in journal.proofs(KEY, reader, span)), key=lambda one: one[0].window
        )

    assert found(0, 2) == [read[0], read[2]], "one tells no times"
    assert found(3, 5) == [read[3], read[4]], "one is being read"
    assert found(0, 5, "dag.other") == found(6, 9) == []
    monkeypatch.setattr(window_runs, "MOST_PROOFS", 1)
    assert found(2, 4) in ([read[2]], [read[3]], [read[4]])
    assert found(3, 3) == [read[3]]


def test_plans_that_cannot_be_read_prove_nothing(journal, hour, plan_of, caplog):
    plan = plan_of(hour(0), 0, 10)
    reports = [
        SplitReceipt(one.index, entries=one.entries or 0, times=(TimeStatistics(Span(1, 0, 10), 5, 6),))
        for one in plan.splits
    ]
    run = journal.start_run(KEY, journal.pin(KEY, plan), TASK).run
    journal.finish_run(run, Landed(compare(plan, reports, seconds=1)))
    with journal._database.writing() as connection:
        connection.execute(update(pins).values(plan=json.dumps({**plan.to_json(), "version": 1})))
    assert journal.proofs(KEY, "dag.read", hour(0)) == ()
    assert "what earlier windows of dag.read have read is not used: this release reads plans of version" in caplog.text


# Plans


def test_the_first_pin_wins_and_comes_back_exactly(journal, hour, plan_of):
    first = plan_of(hour(0), 0, 10)
    assert journal.pinned(KEY, "dag.read", hour(0)) is None
    assert journal.pin(KEY, first) == first
    assert journal.pin(KEY, plan_of(hour(0), 5, 10)) == first
    assert journal.pinned(KEY, "dag.read", hour(0)) == first


def test_pins_of_other_windows_readers_and_sources_are_independent(journal, hour, plan_of):
    plans = [
        (KEY, plan_of(hour(0), 0)),
        (KEY, plan_of(hour(1), 1)),
        (KEY, plan_of(Window(hour(0).start, hour(1).end), 2)),
        (KEY, plan_of(hour(0), 3, reader="dag.other")),
        (KEY, plan_of(hour(0), 4, reader="DAG.read")),
        (KEY.upper(), plan_of(hour(0), 5)),
    ]
    for key, plan in plans:
        assert journal.pin(key, plan) == plan
    for key, plan in plans:
        assert journal.pinned(key, plan.reader, plan.window) == plan
    assert journal.sources() == sorted({(key, plan.reader) for key, plan in plans})


def test_names_longer_than_any_index_tell_sources_and_readers_apart(journal, hour, plan_of):
    keys = ["pulsar:c:" + ",".join(f"persistent://t/n/topic-{n}" for n in range(2000)) + end for end in "ab"]
    readers = ["d" * 3000 + end for end in "ab"]
    plans = {
        (key, reader): plan_of(hour(0), n, 50, reader)
        for n, (key, reader) in enumerate((k, r) for k in keys for r in readers)
    }
    for (key, _), plan in plans.items():
        journal.pin(key, plan)
    for (key, reader), plan in plans.items():
        assert journal.pinned(key, reader, hour(0)) == plan
    assert journal.sources() == sorted(plans)


@pytest.mark.slow_except("sqlite", "postgres")
def test_a_plan_of_megabytes_comes_back_exactly(journal, hour, plan_of):
    plan = plan_of(hour(0), 0, 30_000)
    splits = tuple(
        replace(plan.splits[0], index=n, start=Position.of(7, n, -1), end=Position.of(7, n + 1, -1))
        for n in range(30_000)
    )
    large = replace(plan, splits=splits)
    assert journal.pin(KEY, large) == large
    assert journal.pinned(KEY, "dag.read", hour(0)) == large


def test_windows_keep_their_microseconds(journal, hour, plan_of):
    window = Window(hour(0).start + timedelta(microseconds=1), hour(0).end - timedelta(microseconds=1))
    journal.pin(KEY, plan_of(window))
    assert journal.pinned(KEY, "dag.read", window).window == window
    assert journal.pinned(KEY, "dag.read", hour(0)) is None


def test_a_replan_replaces_the_pin_and_later_pins_get_it(journal, hour, plan_of):
    first, second, third = (plan_of(hour(0), n, 10) for n in range(3))
    journal.pin(KEY, first)
    assert journal.replan(KEY, second) == second
    assert journal.pin(KEY, first) == second
    assert journal.replan(KEY, third) == third
    assert journal.pinned(KEY, "dag.read", hour(0)) == third


def test_a_replan_of_a_window_never_planned_is_its_first_plan(journal, hour, plan_of):
    assert journal.replan(KEY, plan_of(hour(0))) == plan_of(hour(0))
    assert journal.pin(KEY, plan_of(hour(0), 3)) == plan_of(hour(0))


def test_a_pin_changed_in_the_database_is_refused(journal, hour, plan_of):
    journal.pin(KEY, plan_of(hour(0)))
    with journal._database.writing() as connection:
        connection.execute(update(pins).values(plan='{"version": 1}'))
    with pytest.raises(PlanMismatch):
        journal.pinned(KEY, "dag.read", hour(0))


def test_asking_never_creates_a_source(journal, hour):
    journal.pinned(KEY, "dag.read", hour(0))
    journal.last_covered(KEY, "dag.read")
    journal.cut_at(KEY, hour(0).start)
    assert journal.runs(KEY, "dag.read", hour(0)) == ()
    assert journal.coverage(KEY, "dag.read", hour(0).start, hour(0).end).counts["missing"] == 1
    assert journal.sources() == []


# Runs


def test_a_window_is_missing_running_and_covered_in_turn(journal, state_of, hour, plan_of, landed_of):
    plan = journal.pin(KEY, plan_of(hour(0)))
    assert state_of(hour(0)).state == "missing"
    run = journal.start_run(KEY, plan, task=replace(TASK, map_index=3)).run
    running = state_of(hour(0))
    assert (running.state, running.run.id, running.run.map_index) == ("running", run, 3)
    assert str(running.run) == "dag.read manual__1 try 1"
    journal.finish_run(run, landed_of(plan, rows=8))
    covered = state_of(hour(0))
    assert (covered.state, covered.rows, covered.bytes, covered.cause) == ("covered", 8, 800, "")
    assert (covered.fingerprint, covered.attempts) == (plan.fingerprint, 1)
    assert covered.run.started <= covered.run.finished
    assert journal.runs(KEY, "dag.read", hour(0))[0].receipt == landed_of(plan, rows=8).receipt


@pytest.mark.parametrize("state", ["failed", "lost"])
def test_a_failed_run_leaves_its_cause(journal, state_of, hour, plan_of, state):
    run = journal.start_run(KEY, journal.pin(KEY, plan_of(hour(0))), TASK).run
    journal.fail_run(run, "ReadStalled", "nothing came for 60 s", state == "lost")
    found = state_of(hour(0))
    assert (found.state, found.cause, found.rows) == (state, "ReadStalled: nothing came for 60 s", 0)


def test_a_failure_before_the_plan_is_a_state_of_the_window(journal, state_of, hour, plan_of, cover):
    run = journal.fail_window(KEY, "dag.read", hour(0), TASK, error_type="StartTrimmed", message="gone", lost=True)
    assert (state_of(hour(0)).state, state_of(hour(0)).run.id) == ("lost", run)
    with pytest.raises(PlanMismatch):
        journal.finish_run(run, Landed(compare(plan_of(hour(0)), [SplitReceipt(0)], seconds=1)))
    cover(plan_of(hour(0)))
    journal.fail_window(KEY, "dag.read", hour(0), TASK, error_type="StartTrimmed", message="gone", lost=True)
    assert state_of(hour(0)).state == "covered"
    assert state_of(hour(0)).attempts == 3


def test_a_failed_rerun_of_a_covered_window_takes_nothing_away(journal, state_of, hour, plan_of, cover):
    cover(plan_of(hour(0)), rows=9)
    again = journal.start_run(KEY, plan_of(hour(0)), TASK).run
    assert state_of(hour(0)).state == "covered"
    journal.fail_run(again, "SinkError", "disk full", False)
    assert (state_of(hour(0)).state, state_of(hour(0)).rows) == ("covered", 9)
    assert [run.state for run in journal.runs(KEY, "dag.read", hour(0))] == ["covered", "failed"]


def test_a_rerun_that_covers_again_keeps_the_history(journal, state_of, hour, plan_of, cover):
    first, second = cover(plan_of(hour(0)), rows=9), cover(plan_of(hour(0)), rows=7)
    assert [(run.ref.id, run.rows) for run in journal.runs(KEY, "dag.read", hour(0))] == [(first, 9), (second, 7)]
    assert (state_of(hour(0)).rows, state_of(hour(0)).run.id) == (7, second)


def test_finishing_twice_or_failing_after_the_finish_changes_nothing(journal, state_of, hour, plan_of, landed_of):
    plan = journal.pin(KEY, plan_of(hour(0)))
    run = journal.start_run(KEY, plan, TASK).run
    journal.finish_run(run, landed_of(plan, rows=3))
    finished = state_of(hour(0))
    journal.finish_run(run, landed_of(plan, rows=4))
    journal.fail_run(run, "ValueError", "after the commit", False)
    assert state_of(hour(0)) == finished


def test_a_superseded_run_that_was_alive_may_still_cover(journal, state_of, hour, plan_of, landed_of):
    plan = journal.pin(KEY, plan_of(hour(0)))
    slow, quick = (journal.start_run(KEY, plan, TASK).run for _ in range(2))
    assert [run.error_type for run in journal.runs(KEY, "dag.read", hour(0))] == ["Superseded", ""]
    journal.fail_run(quick, "SinkError", "disk full", False)
    journal.finish_run(slow, landed_of(plan))
    (covered, _) = journal.runs(KEY, "dag.read", hour(0))
    assert (covered.state, covered.error_type, covered.error_message) == ("covered", "", "")
    assert state_of(hour(0)).state == "covered"


def test_a_run_of_another_window_or_reader_supersedes_nothing(journal, hour, plan_of):
    plans = [plan_of(hour(0)), plan_of(hour(1)), plan_of(hour(0), reader="dag.other")]
    for plan in plans:
        journal.start_run(KEY, journal.pin(KEY, plan), TASK)
    for plan in plans:
        assert [run.state for run in journal.runs(KEY, plan.reader, plan.window)] == ["running"]


def test_a_window_planned_again_is_covered_only_by_a_run_of_the_new_plan(journal, state_of, hour, plan_of, cover):
    cover(plan_of(hour(0), 0))
    journal.replan(KEY, plan_of(hour(0), 1))
    assert (state_of(hour(0)).state, state_of(hour(0)).cause) == ("missing", "planned again, not read yet")
    cover(plan_of(hour(0), 1), rows=2)
    assert (state_of(hour(0)).state, state_of(hour(0)).rows) == ("covered", 2)
    assert [run.generation for run in journal.runs(KEY, "dag.read", hour(0))] == [1, 2]


def test_rows_of_an_earlier_plan_committed_last_uncover_the_window(journal, state_of, hour, plan_of, cover):
    slow = journal.start_run(KEY, journal.pin(KEY, plan_of(hour(0), 0)), TASK).run
    journal.replan(KEY, plan_of(hour(0), 1))
    cover(plan_of(hour(0), 1))
    journal.finish_run(slow, Landed(compare(plan_of(hour(0), 0), [SplitReceipt(0)], seconds=1)))
    assert state_of(hour(0)).state == "failed"
    assert "earlier plan" in state_of(hour(0)).cause
    assert journal.last_covered(KEY, "dag.read") is None
    cover(plan_of(hour(0), 1))
    assert state_of(hour(0)).state == "covered"


def test_only_the_pinned_plan_can_be_started(journal, hour, plan_of):
    with pytest.raises(PlanMismatch, match="none is"):
        journal.start_run(KEY, plan_of(hour(0)), TASK)
    journal.pin(KEY, plan_of(hour(0), 0))
    journal.replan(KEY, plan_of(hour(0), 1))
    with pytest.raises(PlanMismatch, match="Run the task again"):
        journal.start_run(KEY, plan_of(hour(0), 0), TASK)
    assert journal.runs(KEY, "dag.read", hour(0)) == ()


def test_only_a_receipt_of_its_own_plan_covers_a_window(journal, state_of, hour, plan_of, landed_of):
    run = journal.start_run(KEY, journal.pin(KEY, plan_of(hour(0), 0)), TASK).run
    with pytest.raises(PlanMismatch):
        journal.finish_run(run, landed_of(plan_of(hour(0), 1)))
    assert state_of(hour(0)).state == "running"


def test_a_run_that_does_not_exist_is_an_error(journal, hour, plan_of, landed_of):
    with pytest.raises(JournalError, match="no run 99"):
        journal.finish_run(99, landed_of(plan_of(hour(0))))
    with pytest.raises(JournalError, match="no run 99"):
        journal.fail_run(99, "ValueError", "", False)


def test_an_accepted_loss_is_covered_and_says_so(journal, state_of, hour, plan_of, landed_of):
    whole, rest = plan_of(hour(0), 0), plan_of(hour(0), 4)
    ((shard, start),) = whole.start_cut.items()
    gone = Loss(shard, start, rest.start_cut[shard], "trimmed")
    plan = journal.pin(KEY, replace(rest, start_cut=whole.start_cut, losses=(gone,)))
    run = journal.start_run(KEY, plan, TASK).run
    journal.finish_run(run, landed_of(plan))
    assert (state_of(hour(0)).state, state_of(hour(0)).cause) == ("covered", "loss recorded")


def test_messages_of_failures_hold_no_password_and_no_unstorable_character(journal, state_of, hour, plan_of):
    run = journal.start_run(KEY, journal.pin(KEY, plan_of(hour(0))), TASK).run
    journal.fail_run(run, "E", "at s3://me:hunter2@host/x \0 \ud800 " + "y" * 100_000, False)
    cause = state_of(hour(0)).cause
    assert cause.startswith("E: at s3://me:***@host/x  ? yyy")
    assert len(cause) < 5000


# Coverage


def test_the_last_covered_window_is_the_one_with_the_greatest_end(journal, hour, plan_of, cover):
    assert journal.last_covered(KEY, "dag.read") is None
    for number in (2, 0, 1):
        cover(plan_of(hour(number), number, 100))
    journal.start_run(KEY, journal.pin(KEY, plan_of(hour(3))), TASK)
    cover(plan_of(hour(5), reader="dag.other"))
    assert journal.last_covered(KEY, "dag.read") == plan_of(hour(2), 2, 100)
    assert journal.last_covered(KEY, "dag.read", before=hour(1).end) == plan_of(hour(1), 1, 100)
    assert journal.last_covered(KEY, "dag.read", before=hour(0).start) is None


def test_a_window_planned_again_is_not_the_last_covered_one(journal, hour, plan_of, cover):
    cover(plan_of(hour(0)))
    cover(plan_of(hour(1)))
    journal.replan(KEY, plan_of(hour(1), 3))
    assert journal.last_covered(KEY, "dag.read") == plan_of(hour(0))


def test_coverage_shows_gaps_failures_and_missing_windows_of_one_reader(journal, hour, plan_of, cover):
    for number in (0, 1, 5):
        cover(plan_of(hour(number)))
    run = journal.start_run(KEY, journal.pin(KEY, plan_of(hour(2))), TASK).run
    journal.fail_run(run, "ReadStalled", "silent", False)
    cover(plan_of(hour(3), reader="dag.other"))
    coverage = journal.coverage(KEY, "dag.read", hour(0).start, hour(5).end, timedelta(hours=1))
    assert [item.state for item in coverage.windows] == [
        "covered", "covered", "failed", "missing", "missing", "covered",
    ]  # fmt: skip
    assert coverage.next_missing == hour(3)
    assert coverage.gaps == (Window(hour(2).start, hour(4).end),)


def test_daily_windows_over_hourly_ones_that_landed_nowhere_are_shown_as_overlaps(journal, hour, plan_of, cover):
    day = Window(hour(0).start, hour(23).end)
    cover(plan_of(hour(0)))
    cover(plan_of(hour(4)))
    cover(plan_of(day))
    coverage = journal.coverage(KEY, "dag.read", day.start, day.end)
    assert coverage.is_complete
    assert [overlap.span for overlap in coverage.overlaps] == [hour(0), hour(4)]


# Recorded cuts


def test_the_cut_at_a_moment_is_the_first_whose_sampling_began_at_or_after_it(journal, hour):
    start, second = hour(0).start, timedelta(seconds=1)
    cut = {n: Cut({"s": Position.of(7, n, -1)}) for n in range(3)}
    for n in range(3):
        at = start + 60 * n * second
        journal.record_cut(KEY, cut[n], sampled_from=at, sampled_to=at + second, recorder="recorder")
    journal.record_cut("other", Cut({}), sampled_from=start, sampled_to=start, recorder="r")

    found = journal.cut_at(KEY, start)
    assert (found.cut, found.sampled_from, found.sampled_to) == (cut[0], start, start + second)
    assert found.skew(start) == second
    assert journal.cut_at(KEY, start + second).cut == cut[1]
    assert journal.cut_at(KEY, start + 60 * second).cut == cut[1]
    assert journal.cut_at(KEY, start + 121 * second) is None
    assert journal.cut_at("unheard of", start) is None


def test_cuts_around_a_window_of_event_time_are_sampled_before_and_after_all_that_belongs_to_it(journal, hour):
    start, minute, second = hour(0).start, timedelta(minutes=1), timedelta(seconds=1)
    source = FakeSource("numbers")
    cut = {n: Cut({"s": Position.of(7, n, -1)}) for n in range(20)}
    for n in range(20):
        at = start + n * minute
        journal.record_cut(source.key, cut[n], sampled_from=at, sampled_to=at + second, recorder="r")

    def around(first, last, slack=minute, lateness=5 * minute):
        window = Window(start + first * minute, start + last * minute)
        event = EventTime(lateness)
        return recorded_around(journal, PlanRequest(source, window, "reader", basis="event", slack=slack, event=event))

    found = around(4, 10)
    # not the one of minute 3: its sampling ended after what is a minute early may have been stored
    assert (found.start, found.since, found.until, found.end) == (cut[2], cut[4], cut[10], cut[15])
    assert around(4, 10, slack=minute - second).start == cut[3]
    assert around(10, 14, lateness=minute).since == found.until, "whatever lateness is asked of each"
    assert around(0, 4).start is None
    assert around(10, 15) is None, "nothing was recorded after all of it may have been stored"


def test_the_plans_beside_a_window_are_those_that_count_now(journal, hour, plan_of):
    reader = plan_of(hour(0)).reader
    assert journal.neighbors(KEY, reader, hour(1)) == (None, None)
    before, following = plan_of(hour(0), 0, 10), plan_of(hour(2), 20, 30)
    for plan in (before, following, plan_of(hour(1), 10, 20), plan_of(hour(3), 30, 40)):
        journal.pin(KEY, plan)
    assert journal.neighbors(KEY, reader, hour(1)) == (before, following)
    assert journal.neighbors(KEY, "another", hour(1)) == (None, None)
    again = journal.replan(KEY, plan_of(hour(0), 0, 12))
    assert journal.neighbors(KEY, reader, hour(1)) == (again, following)
    day = journal.pin(KEY, plan_of(Window(hour(2).start, hour(5).end), 20, 60))
    assert journal.neighbors(KEY, reader, hour(1)) == (again, day), "of several the one that was pinned last"


def test_a_cut_stored_late_does_not_change_an_edge_that_was_given_away(journal, hour):
    start, second = hour(0).start, timedelta(seconds=1)
    quick, slow = (Cut({"s": Position.of(7, n, -1)}) for n in range(2))
    journal.record_cut(KEY, quick, sampled_from=start + 2 * second, sampled_to=start + 3 * second, recorder="quick")
    assert journal.cut_at(KEY, start).cut == quick
    late = journal.record_cut(KEY, slow, sampled_from=start, sampled_to=start + 9 * second, recorder="slow")
    assert late is None
    assert journal.cut_at(KEY, start).cut == quick
    assert [entry.recorder for entry in journal.recorded_cuts(KEY, 10)] == ["quick"]


def test_overlapping_samplings_never_leave_cuts_that_cross(journal, hour):
    start, second = hour(0).start, timedelta(seconds=1)
    first, crossing = (Cut({"a": Position.of(a), "b": Position.of(b)}) for a, b in ((5, 5), (6, 4)))
    journal.record_cut(KEY, first, sampled_from=start, sampled_to=start + 9 * second, recorder="one")
    taken = journal.record_cut(
        KEY, crossing, sampled_from=start + second, sampled_to=start + 2 * second, recorder="two"
    )
    assert taken is None
    assert journal.cut_at(KEY, start + second) is None


def test_a_tail_that_went_back_is_an_error_until_the_source_is_declared_made_again(journal, hour):
    start, second = hour(0).start, timedelta(seconds=1)
    journal.record_cut(KEY, Cut({"s": Position.of(9)}), sampled_from=start, sampled_to=start, recorder="r")
    later = {"sampled_from": start + second, "sampled_to": start + second, "recorder": "r"}
    with pytest.raises(InvalidRequest, match="deleted and made again"):
        journal.record_cut(KEY, Cut({"s": Position.of(1)}), **later)
    assert journal.record_cut(KEY, Cut({"s": Position.of(1)}), **later, go_on=None) == 2


def test_a_shard_that_a_later_tail_does_not_name_keeps_its_place(journal, hour):
    start, second = hour(0).start, timedelta(seconds=1)
    both, one = Cut({"a": Position.of(1), "b": Position.of(2)}), Cut({"a": Position.of(4)})
    for n, cut in enumerate((both, one)):
        at = start + n * second
        journal.record_cut(KEY, cut, sampled_from=at, sampled_to=at, recorder="r")
    assert journal.cut_at(KEY, start + second).cut == Cut({"a": Position.of(4), "b": Position.of(2)})


def test_a_cut_keeps_which_life_of_its_source_it_is_of(journal, hour):
    start, second = hour(0).start, timedelta(seconds=1)
    one, both = Cut({"a": Position.of(1)}), Cut({"a": Position.of(4), "b": Position.of(2)})
    entries = [(one, ()), (both, (("a", "10:00"), ("b", "10:01"))), (one, (("a", "10:05"),)), (both, ())]
    for n, (cut, life) in enumerate(entries):
        at = start + n * second
        go_on = {"go_on": None} if n == 3 else {"go_on": lambda earlier, later: Cut({**earlier, **later})}
        journal.record_cut(KEY, cut, sampled_from=at, sampled_to=at, recorder="r", incarnation=life, **go_on)
    kept = [dict(entry.incarnation) for entry in journal.recorded_cuts(KEY, 9)]
    both_lives = {"a": "10:00", "b": "10:01"}
    assert kept == [{}, both_lives, {"a": "10:05", "b": "10:01"}, {}], (
        "b was not sampled: its place is of its incarnation then"
    )
    assert dict(journal.cut_at(KEY, start + second).incarnation) == both_lives


def test_pruning_forgets_old_cuts_and_keeps_the_edges_of_the_others(journal, hour):
    start, minute = hour(0).start, timedelta(minutes=1)
    for n in range(4):
        at = start + n * minute
        journal.record_cut(KEY, Cut({"s": Position.of(n)}), sampled_from=at, sampled_to=at, recorder="r")
    assert journal.cut_at(KEY, start).cut == Cut({"s": Position.of(0)})
    kept = journal.cut_at(KEY, start + 1.5 * minute)
    assert kept.cut == Cut({"s": Position.of(2)})
    assert journal.prune_cuts(start) == 0
    assert journal.prune_cuts(start + 2 * minute, "another source") == 0
    assert journal.prune_cuts(start + 2 * minute) == 2
    assert journal.prune_cuts(start + 2 * minute) == 0
    assert journal.cut_at(KEY, start + 1.5 * minute) == kept
    assert journal.cut_at(KEY, start + 2 * minute) == kept
    assert journal.cut_at(KEY, start + 2.5 * minute).cut == Cut({"s": Position.of(3)})
    # the pruned entry of this moment may have been given to the window before it
    for moment in (start, start + minute, start + 1.9 * minute):
        with pytest.raises(NoCutNearby, match="pruned"):
            journal.cut_at(KEY, moment)
    assert journal.prune_cuts(start + 99 * minute) == 1
    assert [entry.sequence for entry in journal.recorded_cuts(KEY, 10)] == [4]
    (history,) = journal.cut_histories()
    assert (history.source_key, history.count, history.first) == (KEY, 1, start + 3 * minute)


def test_a_cut_sampled_backwards_or_at_naive_times_is_refused(journal, hour):
    start = hour(0).start
    for begin, end in [(start, start - timedelta(seconds=1)), (start.replace(tzinfo=None), start)]:
        with pytest.raises(InvalidRequest):
            journal.record_cut(KEY, Cut({}), sampled_from=begin, sampled_to=end, recorder="r")


def test_a_second_open_finds_what_the_first_one_left(journal, url, hour, plan_of):
    journal.pin(KEY, plan_of(hour(0)))
    journal.close()
    with Journal.open(url) as again:
        assert again.pinned(KEY, "dag.read", hour(0)) == plan_of(hour(0))
