from __future__ import annotations

import multiprocessing
import os
import signal
import time

from sqlalchemy import insert, inspect

from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.journal.tables import metadata, sources

KEY = "pulsar:pulsar_default:persistent://shop/orders/events"
TASK = {"dag_id": "dag", "run_id": "manual__1", "task_id": "read", "try_number": 1}


def test_of_sixteen_different_plans_at_once_one_is_pinned_and_all_get_it(url, at_once, hour, plan_of):
    def pin(number):
        with Journal.open(url) as journal:
            return journal.pin(KEY, plan_of(hour(0), number, 100)).fingerprint

    answers = at_once(16, pin)

    offered = {plan_of(hour(0), number, 100).fingerprint for number in range(16)}
    with Journal(url) as journal:
        pinned = journal.pinned(KEY, "dag.read", hour(0))
    assert set(answers) == {pinned.fingerprint}
    assert pinned.fingerprint in offered


def test_of_replans_at_once_one_replaces_the_pin_and_all_get_a_pinned_plan(journal, url, at_once, hour, plan_of):
    journal.pin(KEY, plan_of(hour(0), 0, 100))
    for first in (1, 101):
        # forked with an open journal on purpose: connections must not be shared with the parent
        answers = at_once(12, lambda n, first=first: journal.replan(KEY, plan_of(hour(0), first + n, 300)).fingerprint)
        with Journal(url) as other:
            newest = other.pinned(KEY, "dag.read", hour(0)).fingerprint
        assert newest in answers
        assert newest in {plan_of(hour(0), first + n, 300).fingerprint for n in range(12)}
        assert set(answers) <= {plan_of(hour(0), first + n, 300).fingerprint for n in range(12)}


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


def test_windows_read_at_once_all_end_covered(journal, at_once, hour, plan_of, receipt_of):
    def read(number):
        window = hour(number % 4)
        plan = journal.pin(KEY, plan_of(window, number, 100))
        run = journal.start_run(KEY, plan, **TASK)
        journal.finish_run(run, receipt_of(plan))
        return run

    runs = at_once(12, read)
    assert len(set(runs)) == 12
    coverage = journal.coverage(KEY, "dag.read", hour(0).start, hour(3).end)
    assert coverage.is_complete
    assert coverage.counts["covered"] == 4


def test_a_moment_asked_for_at_once_gets_one_cut(journal, at_once, hour, plan_of):
    moment = hour(0).start
    cut = plan_of(hour(0)).start_cut

    def ask(number):
        if number % 2:
            journal.record_cut(KEY, cut, sampled_from=moment, sampled_to=moment, recorder=f"r{number}")
        return (found := journal.cut_at(KEY, moment)) and found.id

    answers = {answer for answer in at_once(10, ask) if answer is not None}
    assert answers == {journal.cut_at(KEY, moment).id}


def test_a_process_killed_between_pin_and_start_leaves_its_plan_to_the_retry(journal, hour, plan_of, receipt_of):
    _killed_after(lambda: journal.pin(KEY, plan_of(hour(0), 0, 10)))

    known = journal.coverage(KEY, "dag.read", hour(0).start, hour(0).end).windows
    assert [(item.state, item.cause) for item in known] == [("missing", "planned, not read yet")]
    plan = journal.pin(KEY, plan_of(hour(0), 3, 10))
    assert plan.fingerprint == plan_of(hour(0), 0, 10).fingerprint
    journal.finish_run(journal.start_run(KEY, plan, **TASK), receipt_of(plan))
    assert journal.coverage(KEY, "dag.read", hour(0).start, hour(0).end).is_complete


def test_a_process_killed_while_reading_looks_running_until_the_retry_starts(journal, hour, plan_of):
    plan = journal.pin(KEY, plan_of(hour(0)))
    _killed_after(lambda: journal.start_run(KEY, plan, **TASK))
    assert journal.coverage(KEY, "dag.read", hour(0).start, hour(0).end).counts["running"] == 1

    journal.start_run(KEY, plan, **{**TASK, "try_number": 2})
    states = [(run.ref.try_number, run.state, run.error_type) for run in journal.runs(KEY, "dag.read", hour(0))]
    assert states == [(1, "failed", "Superseded"), (2, "running", "")]


def test_a_process_killed_inside_a_transaction_leaves_nothing_and_blocks_nobody(journal, hour, plan_of):
    opened = []

    def half_a_transaction():
        opened.append(journal._database.writing())  # referenced, so that it stays open
        opened[0].__enter__().execute(insert(sources).values(digest="d", source_key="half"))

    _killed_after(half_a_transaction)
    began = time.monotonic()
    journal.pin(KEY, plan_of(hour(0)))
    assert time.monotonic() - began < 10
    assert journal.sources() == [(KEY, "dag.read")]


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
    assert done.wait(60), "the child never came so far"
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
