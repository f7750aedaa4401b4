"""A journal of revision 0007 goes on: what it told of windows it tells, and new runs count what was not decoded."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from airflow_provider_streams.journal import migrate
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.model.receipt import compare
from airflow_provider_streams.model.window import Window
from tests.integration.journal.earlier import rows_of, write_as

WRITTEN = rows_of("0007")
WHO = (WRITTEN["key"], WRITTEN["reader"])
START = datetime.fromisoformat(WRITTEN["coverage"]["start"])
SPAN = (START, START + timedelta(minutes=5))
TASK = {"dag_id": "dag", "run_id": "later", "task_id": "read", "try_number": 1}


@pytest.fixture
def journal(url):
    database = Database(url)
    with database._write() as connection:
        write_as(connection, WRITTEN)
    with Journal.open(url) as opened:
        yield opened


def test_what_was_told_of_windows_is_told(journal):
    seen = journal.coverage(*WHO, *SPAN).to_json()
    assert seen.pop("quarantined") == seen.pop("dropped") == 0
    assert all(one.pop("quarantined") == one.pop("dropped") == 0 for one in seen["windows"])
    assert seen == WRITTEN["coverage"]


def test_a_run_of_before_and_one_of_now_stand_side_by_side(journal):
    window = Window(START, START + timedelta(minutes=1))
    plan, kept = journal.pinned(*WHO, window), journal.landing(*WHO)
    (before,) = journal.runs(*WHO, window)
    first, *others = before.receipt.splits
    splits = [replace(first, quarantined=3, dropped=1), *others]
    started = journal.start_run(WHO[0], plan, **TASK, landing_id=kept.id)
    journal.finish_run(started.run, Landed(compare(plan, splits, seconds=1)))
    counts = [(item.quarantined, item.dropped) for item in journal.coverage(*WHO, *SPAN).select("covered")]
    assert counts == [(3, 1), (0, 0), (0, 0)]
    assert (before.receipt.undecodable, before.receipt.rows) == (0, before.rows)


def test_the_migration_taken_up_again_changes_nothing(url, journal):
    before = journal.coverage(*WHO, *SPAN).to_json()
    with Database(url)._write() as connection:
        connection.execute(text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '0007'"))  # noqa: S608 - a constant
    with Journal.open(url) as again:
        assert again.coverage(*WHO, *SPAN).to_json() == before
