"""A journal that an earlier release has written goes on: what was covered is covered, and the same plans are read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from airflow_provider_streams.errors import WindowsOverlap
from airflow_provider_streams.journal import migrate
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.landings import NewLanding
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.landing import Held, Landed, Landing
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.receipt import SplitReceipt, compare
from airflow_provider_streams.model.sink import ParquetSink
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.sources import source_from_json
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.testing.plans import plan_of
from tests.integration.journal.earlier import rows_of, write_as

WRITTEN = rows_of("0003")
"""Rows of a journal as the release of that revision left them, and what it said was covered."""

ORDERS = "persistent://shop/orders/"
PATTERN = PulsarSource(pattern=f"{ORDERS}.*", conn_id="prod")
POINTS = PulsarSource(pattern=f"{ORDERS}v.", conn_id="prod")
LOGS = PulsarSource(pattern="persistent://shop/logs/.+", conn_id="prod")
TOPICS = [
    PulsarSource("shop/orders/a+b", conn_id="prod"),
    PulsarSource("shop/orders/c+d-partition-1", conn_id="prod"),
    PulsarSource("shop/orders/n#1", conn_id="prod"),
    PulsarSource("shop/orders/chain", conn_id="prod"),
    PulsarSource(["shop/orders/w", "shop/orders/x-partition-0"], conn_id="prod"),
]
STREAM = PravegaSource("shop/orders", conn_id="prod_pravega")
SOURCES = [PATTERN, POINTS, LOGS, *TOPICS, STREAM, FakeSource("numbers")]
OLD_KEYS = {source.key: f"pulsar:prod:{source.pattern}" for source in (PATTERN, POINTS, LOGS)}

T10 = datetime(2026, 11, 20, 10, tzinfo=UTC)
TASK = {"dag_id": "dag", "run_id": "scheduled__9", "task_id": "read", "try_number": 1}
LANDING = NewLanding(Landing(ParquetSink("/lake/orders")).to_json(), "1h", "publish")


@pytest.fixture
def journal(url):
    """The journal of the earlier release, opened by this one."""
    database = Database(url)
    with database._write() as connection:
        write_as(connection, WRITTEN)
    with Journal.open(url) as opened:
        yield opened


def readers(journal):
    """Every source's key and reader: as it was, and as it is."""
    was = [(key, reader) for key, reader, _ in WRITTEN["coverage"]]
    now = {old: new for new, old in OLD_KEYS.items()}
    return [((key, reader), (now.get(key, key), reader)) for key, reader in was]


SINCE = ("verdict", "quarantined", "dropped")
"""What is told since."""


def without_digests(coverage):
    """A plan's fingerprint is another one now: it decides more."""
    windows = [
        {name: value for name, value in {**one, "fingerprint": bool(one["fingerprint"])}.items() if name not in SINCE}
        for one in coverage["windows"]
    ]
    counts = {name: value for name, value in coverage.items() if name not in SINCE}
    return {**counts, "windows": windows, "unproven": 0}


def test_every_source_and_reader_is_found_under_the_key_it_has_now(journal):
    assert journal.sources() == sorted(now for _, now in readers(journal))


def test_coverage_is_what_it_was(journal):
    expected = {(key, reader): coverage for key, reader, coverage in WRITTEN["coverage"]}
    assert len(expected) == 10
    for was, now in readers(journal):
        seen = journal.coverage(*now, T10 - timedelta(hours=1), T10 + timedelta(hours=8)).to_json()
        assert seen["unproven"] == 0
        assert without_digests(seen) == without_digests(expected[was])


def test_plans_load_hold_together_and_are_what_the_runs_have_read(journal):
    plans = 0
    for _, (key, reader) in readers(journal):
        span = journal.coverage(key, reader, T10 - timedelta(hours=1), T10 + timedelta(hours=8))
        for item in span.windows:
            plan = journal.pinned(key, reader, item.window)
            if plan is None:
                continue
            plans += 1
            plan.check()
            assert (plan.version, plan.window, plan.fingerprint) == (2, item.window, item.fingerprint)
            runs = [run for run in journal.runs(key, reader, item.window) if run.state == "covered"]
            assert all(run.receipt.fingerprint == run.fingerprint for run in runs)
            assert bool(runs) == (item.state == "covered")
    assert plans == 17


def test_a_plan_holds_what_it_held(journal):
    old = next(json.loads(row["plan"]) for row in WRITTEN["rows"]["streams_pins"] if '"append"' in row["plan"])
    new = journal.pinned(STREAM.key, "dag.read", Window.from_json(old["window"])).to_json()
    changed = {"version", "fingerprint", "checksum", "terms"}
    assert {name: new[name] for name in old if name not in changed} == {
        name: value for name, value in old.items() if name not in changed
    }
    assert new["skew_seconds"] == [0.25, 1.5]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.key)
def test_the_source_behind_a_key_is_known(journal, source):
    """A pattern's key says that it is one; what only looks like a pattern keeps its key."""
    assert source_from_json(journal.source(source.key)) == source


def test_boundaries_are_no_source(journal):
    assert journal.source(f"{STREAM.key}#epoch") is None
    assert [cut.sequence for cut in journal.recorded_cuts(f"{STREAM.key}#epoch", 9)] == [1, 2]


def test_recorded_cuts_of_a_pattern_go_on(journal):
    at = T10 + timedelta(seconds=30)
    kept = journal.cut_at(LOGS.key, at)
    assert (kept.sequence, kept.recorder) == (2, "clock")
    tail = Cut({"persistent://shop/logs/a": Position.of(7, 9, -1)})
    later = T10 + timedelta(minutes=5)
    assert journal.record_cut(LOGS.key, tail, sampled_from=later, sampled_to=later, recorder="clock") == 4
    assert journal.recorded_cuts(OLD_KEYS[LOGS.key], 9) == []
    assert kept.identity == (), "of which life it was, nobody knows"
    life = (("persistent://shop/logs/a", "2026-11-20T09:00:00+00:00"),)
    later += timedelta(minutes=5)
    journal.record_cut(LOGS.key, tail, sampled_from=later, sampled_to=later, recorder="clock", identity=life)
    assert journal.recorded_cuts(LOGS.key, 1)[0].identity == life


def test_the_first_run_makes_the_landing_its_own_and_everything_stays_covered(journal):
    kept = journal.landing(PATTERN.key, "dag.read")
    assert (kept.generation, kept.landing, kept.columns, kept.grid) == (1, None, None, None)
    adopted = journal.adopt_landing(PATTERN.key, "dag.read", LANDING)
    assert (adopted.id, adopted.table_id, adopted.target) == (kept.id, kept.table_id, "file:///lake/orders")
    seen = journal.coverage(PATTERN.key, "dag.read", T10, T10 + timedelta(hours=6))
    assert [item.state for item in seen.windows] == ["covered", "covered", "failed", "lost", "missing", "running"]


def test_a_reader_that_only_planned_has_no_landing_yet(journal):
    assert journal.landing(PATTERN.key, "dag.look") is None
    assert journal.adopt_landing(PATTERN.key, "dag.look", LANDING) is None


def test_a_migrated_plan_is_read_and_its_window_covered(journal):
    kept = journal.adopt_landing(PATTERN.key, "dag.read", LANDING)
    (window,) = [item.window for item in _windows(journal, "missing")]
    plan = journal.pinned(PATTERN.key, "dag.read", window)
    assert journal.pin(PATTERN.key, plan) == plan
    started = journal.start_run(PATTERN.key, plan, **TASK, landing_id=kept.id)
    assert started.held is None
    splits = [SplitReceipt(split.index, rows=1, bytes=9, entries=split.entries) for split in plan.splits]
    journal.finish_run(started.run, Landed(compare(plan, splits, seconds=1), written=4))
    assert window in [item.window for item in _windows(journal, "covered")]


def test_a_covered_window_of_before_holds_its_rows_and_is_in_the_way_of_others(journal):
    kept = journal.adopt_landing(PATTERN.key, "dag.read", LANDING)
    first = _windows(journal, "covered")[0]
    plan = journal.pinned(PATTERN.key, "dag.read", first.window)
    assert journal.start_run(PATTERN.key, plan, **TASK, landing_id=kept.id).held == Held(first.rows)
    half = Window(first.window.start, first.window.start + timedelta(minutes=30))
    other = journal.pin(PATTERN.key, plan_of([], reader="dag.read", window=half))
    with pytest.raises(WindowsOverlap):
        journal.start_run(PATTERN.key, other, **TASK, landing_id=kept.id)


def test_late_rows_of_before_stay_counted(journal):
    assert journal.coverage(PATTERN.key, "dag.read", T10, T10 + timedelta(hours=6)).late_rows == 2


def test_a_migration_that_was_killed_is_taken_up_again(url):
    """As on MySQL, which takes back no change of tables: all of it runs a second time."""
    database = Database(url)
    with database._write() as connection:
        write_as(connection, WRITTEN)
    Journal.open(url).close()
    with database._write() as connection:
        connection.execute(text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '0003'"))  # noqa: S608 - a constant
    with Journal.open(url) as journal:
        test_coverage_is_what_it_was(journal)
        test_plans_load_hold_together_and_are_what_the_runs_have_read(journal)
        test_every_source_and_reader_is_found_under_the_key_it_has_now(journal)


def _windows(journal, state):
    return journal.coverage(PATTERN.key, "dag.read", T10, T10 + timedelta(hours=6)).select(state)
