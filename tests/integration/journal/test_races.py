from __future__ import annotations

import multiprocessing
import os
import signal
import time
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import insert, inspect, select

from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.journal.tables import edges, metadata, pins, sources
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position

HOUR = timedelta(hours=1)
ALSO_ON_MYSQL = True
KEY = "pulsar:pulsar_default:persistent://shop/orders/events"
TASK = TaskInstanceKey("dag", "manual__1", "read", 1)


def generations(url):
    with Journal(url)._database.reading() as connection:
        return connection.execute(select(pins.c.generation).order_by(pins.c.generation)).scalars().all()


@pytest.mark.slow_except("sqlite", "postgres")
def test_of_sixteen_different_plans_at_once_one_is_pinned_and_all_get_it(
    url, at_once, all_insert_at_once, hour, plan_of
):
    offered = [plan_of(hour(0), number, 100) for number in range(16)]
    all_insert_at_once(pins, 16)

    def pin(number):
        with Journal.open(url) as journal:
            return journal.pin(KEY, offered[number]).fingerprint

    answers = at_once(16, pin)

    with Journal(url) as journal:
        pinned = journal.pinned(KEY, "dag.read", hour(0))
    assert set(answers) == {pinned.fingerprint}
    assert pinned in offered
    assert generations(url) == [1]


def test_of_replans_at_once_one_replaces_the_pin_and_all_get_it(url, at_once, all_insert_at_once, hour, plan_of):
    offered = [plan_of(hour(0), number, 100) for number in range(12)]
    # forked with a used journal on purpose: connections must not be shared with the parent
    journal = Journal.open(url)
    journal.pin(KEY, plan_of(hour(0), 50, 100))
    all_insert_at_once(pins, 12)

    answers = at_once(12, lambda number: journal.replan(KEY, offered[number]).fingerprint)

    replaced = journal.pinned(KEY, "dag.read", hour(0))
    assert set(answers) == {replaced.fingerprint}
    assert replaced in offered
    assert generations(url) == [1, 2]


def test_replans_whenever_they_come_leave_one_history_whose_end_counts(url, at_once, hour, plan_of):
    offered = [plan_of(hour(0), number, 100) for number in range(12)]
    journal = Journal.open(url)

    answers = at_once(12, lambda number: journal.replan(KEY, offered[number]).fingerprint)

    assert set(answers) <= {plan.fingerprint for plan in offered}
    assert journal.pinned(KEY, "dag.read", hour(0)).fingerprint in answers
    assert generations(url) == list(range(1, len(set(answers)) + 1))


def test_eight_processes_that_open_an_empty_database_at_once_find_one_schema(url, at_once):
    def use(number):
        with Journal.open(url) as journal:
            return journal.sources()

    assert at_once(8, use) == [[]] * 8
    with Journal(url)._database.reading() as connection:
        tables = set(inspect(connection).get_table_names())
        versions = connection.exec_driver_sql("SELECT version_num FROM streams_alembic_version").fetchall()
    assert tables == {*metadata.tables, "streams_alembic_version"}
    assert len(versions) == 1


def test_windows_read_at_once_all_end_covered(journal, at_once, hour, plan_of, landed_of):
    def read(number):
        window = hour(number % 4)
        plan = journal.pin(KEY, plan_of(window, number, 100))
        run = journal.start_run(KEY, plan, TASK).run
        journal.finish_run(run, landed_of(plan))
        return run

    runs = at_once(12, read)
    assert len(set(runs)) == 12
    coverage = journal.coverage(KEY, "dag.read", hour(0).start, hour(3).end)
    assert coverage.is_complete
    assert coverage.counts["covered"] == 4


def test_a_moment_asked_for_at_once_gets_one_cut(journal, url, at_once, all_insert_at_once, hour):
    moment, cut = hour(0).start, Cut({"s": Position.of(7)})
    all_insert_at_once(edges, 10)

    def ask(number):
        at = moment + HOUR + timedelta(seconds=number)
        journal.record_cut(KEY, cut, sampled_from=at, sampled_to=at, recorder=f"r{number}")
        return journal.cut_at(KEY, moment).id

    journal.record_cut(KEY, cut, sampled_from=moment + HOUR, sampled_to=moment + HOUR, recorder="first")
    answers = at_once(10, ask)
    assert set(answers) == {journal.cut_at(KEY, moment).id}
    with Journal(url)._database.reading() as connection:
        assert len(connection.execute(select(edges)).all()) == 1


def test_recorders_at_once_leave_one_line_of_cuts(journal, at_once, hour):
    moment = hour(0).start

    def recording(number):
        at = moment + timedelta(seconds=number)
        tail = Cut({"a": Position.of(number), "b": Position.of(2 * number)})
        until = at + timedelta(seconds=5)  # longer than it takes the next one to begin
        return journal.record_cut(KEY, tail, sampled_from=at, sampled_to=until, recorder=f"r{number}")

    numbers = [number for number in at_once(12, recording) if number is not None]
    entries = journal.recorded_cuts(KEY, 100)
    assert sorted(numbers) == [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    for before, after in pairwise(entries):
        assert before.sampled_from < after.sampled_from
        assert before.cut.extend(after.cut) == after.cut
    assert entries[-1].recorder == "r11", "the last one to begin is always taken"


def test_a_process_killed_between_pin_and_start_leaves_its_plan_to_the_retry(journal, hour, plan_of, landed_of):
    _killed_after(lambda: journal.pin(KEY, plan_of(hour(0), 0, 10)))

    known = journal.coverage(KEY, "dag.read", hour(0).start, hour(0).end).windows
    assert [(item.state, item.cause) for item in known] == [("missing", "planned, not read yet")]
    plan = journal.pin(KEY, plan_of(hour(0), 3, 10))
    assert plan.fingerprint == plan_of(hour(0), 0, 10).fingerprint
    journal.finish_run(journal.start_run(KEY, plan, TASK).run, landed_of(plan))
    assert journal.coverage(KEY, "dag.read", hour(0).start, hour(0).end).is_complete


def test_a_process_killed_while_reading_looks_running_until_the_retry_starts(journal, hour, plan_of):
    plan = journal.pin(KEY, plan_of(hour(0)))
    _killed_after(lambda: journal.start_run(KEY, plan, TASK))
    assert journal.coverage(KEY, "dag.read", hour(0).start, hour(0).end).counts["running"] == 1

    journal.start_run(KEY, plan, task=replace(TASK, try_number=2))
    states = [(run.ref.try_number, run.state, run.error_type) for run in journal.runs(KEY, "dag.read", hour(0))]
    assert states == [(1, "failed", "Superseded"), (2, "running", "")]


def test_a_process_killed_inside_a_transaction_leaves_nothing_and_blocks_nobody(journal, hour, plan_of):
    opened = []

    def half_a_transaction():
        opened.append(journal._database.writing())  # referenced, so that it stays open
        opened[0].__enter__().execute(insert(sources).values(digest="d", source_key="half"))

    _killed_after(half_a_transaction)
    first, second = (seconds_of(lambda number=number: journal.pin(KEY, plan_of(hour(number)))) for number in (0, 1))
    assert first < 10 + 10 * second
    assert journal.sources() == [(KEY, "dag.read")]


def seconds_of(work) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _killed_after(function) -> None:
    """Runs `function` in a forked process that is killed by SIGKILL as soon as it has returned."""
    context = multiprocessing.get_context("fork")
    done = context.Event()

    def body():
        function()
        done.set()
        signal.pause()

    process = context.Process(target=body)
    process.start()
    assert done.wait(600), "the child never came so far"
    os.kill(process.pid, signal.SIGKILL)
    process.join(600)
    assert process.exitcode == -signal.SIGKILL
