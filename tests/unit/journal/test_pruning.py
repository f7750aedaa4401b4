"""Pruning forgets what decides nothing: whatever was done, all that the journal tells of windows stays as it was."""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from airflow_provider_streams.errors import InvalidRequest, JournalUnavailable, StreamsError
from airflow_provider_streams.journal import pruning
from airflow_provider_streams.journal.landings import NewLanding
from airflow_provider_streams.journal.reader_overview import basis_of, overviews, schedule_of
from airflow_provider_streams.journal.row_ids import find_reader
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.runs.run_transitions import start
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.journal.tables import pins, readers, runs
from airflow_provider_streams.model.plan.plan import Plan, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.sinks.landing import Held, Landed, Landing
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.plans import plan_of
from tests.seeds import examples

KEY, READER = "fake:f:numbers", "dag.read"
T0 = datetime(2026, 1, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOURS = 4
TASK = TaskInstanceKey("dag", "r", "read", 1)

ACTS = (
    "pin",
    "replan",
    "begin",
    "cover",
    "cover an earlier run",
    "fail",
    "fail unplanned",
    "announce",
    "count late",
    "land elsewhere",
    "uncover",
    "chain",
    "chain again",
)


def hour(number: int) -> Window:
    return Window(T0 + number * HOUR, T0 + (number + 1) * HOUR)


class Story:
    """What may happen to the windows of a reader."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.begun: list[tuple[int, Plan]] = []
        self._places = 0

    def plan(self, number: int, basis: str = "publish") -> Plan:
        self._places += 10
        split = Split(0, "n-0", Position.of(self._places), Position.of(self._places + 10), 100)
        return plan_of([split], reader=READER, window=hour(number), basis=basis)

    def act(self, name: str, number: int) -> None:
        with suppress(StreamsError):  # not now
            getattr(self, name.replace(" ", "_"))(number)

    def pin(self, number: int) -> None:
        self.journal.pin(KEY, self.plan(number))

    def replan(self, number: int) -> None:
        self.journal.replan(KEY, self.plan(number))

    def begin(self, number: int) -> None:
        plan, kept = self.journal.pinned(KEY, READER, hour(number)), self.journal.landing(KEY, READER)
        if plan is not None:
            how = {"landing_id": kept.id if kept else None, "allow_fewer_rows": True}
            self.begun.append((self.journal.start_run(KEY, plan, TASK, **how).run, plan))

    def cover(self, number: int) -> None:
        self.begin(number)
        self.cover_an_earlier_run(-1)

    def cover_an_earlier_run(self, number: int) -> None:
        if self.begun:
            run, plan = self.begun[max(-len(self.begun), -abs(number))]
            self.journal.finish_run(run, Landed(compare(plan, [SplitReceipt(0, rows=len(self.begun))], seconds=1)))

    def fail(self, number: int) -> None:
        if self.begun:
            self.journal.fail_run(self.begun[-1][0], "ReadStalled", "silent", lost=number == 0)

    def fail_unplanned(self, number: int) -> None:
        self.journal.fail_window(KEY, READER, hour(number), TASK, error_type="E", message="m", lost=False)

    def announce(self, number: int) -> None:
        self.journal.announce([run for run, _ in self.begun[number:]])

    def count_late(self, number: int) -> None:
        if self.begun:
            self.journal.count_late(self.begun[-1][0], number)

    def land_elsewhere(self, number: int) -> None:
        landing = NewLanding(Landing(ParquetSink(f"/lake/{number}")).to_json())
        self.journal.land_as(KEY, READER, landing, after=self.journal.landing(KEY, READER))

    def uncover(self, number: int) -> None:
        if (kept := self.journal.landing(KEY, READER)) is not None:
            self.journal.uncover(KEY, READER, kept.id, [hour(number)], "removed")

    def chain(self, number: int, *, replan: bool = False) -> None:
        plan = self.plan(number, "chained")
        self.journal.pin_chained(KEY, plan, self.journal.chain(KEY, READER, plan.window), replan=replan)

    def chain_again(self, number: int) -> None:
        self.chain(number, replan=True)


def told(journal: Journal) -> dict[str, Any]:
    """Every answer about the reader's windows, except how often each was tried."""
    span = (T0 - HOUR, T0 + (HOURS + 1) * HOUR)
    coverage = journal.coverage(KEY, READER, *span).to_json()
    states = [{name: value for name, value in item.items() if name != "attempts"} for item in coverage["windows"]]
    hours = [hour(number) for number in range(HOURS)]
    last = journal.last_covered(KEY, READER)
    with journal._database.reading() as connection:
        seen = [(schedule_of(connection, one), basis_of(connection, one)) for one in overviews(connection)]
    return {
        "coverage": {**coverage, "windows": states},
        "tried": [bool(item["attempts"]) for item in coverage["windows"]],
        "stretches": [item.window for item in journal.stretches(KEY, READER, *span).select("covered")],
        "plans": [journal.pinned(KEY, READER, window) for window in hours],
        "last": last,
        "chains": [journal.chain(KEY, READER, window) for window in hours],
        "unannounced": unannounced(journal),
        "ways": seen,
        "held": [held(journal, window) for window in hours],
    }


def unannounced(journal: Journal) -> list[int]:
    """Also of what is proven only, which no task announces."""
    with journal._database.reading() as connection:
        found = select(runs.c.id).where(runs.c.state == "covered", runs.c.announced_at.is_(None)).order_by(runs.c.id)
        return list(connection.execute(found).scalars())


def held(journal: Journal, window: Window) -> object:
    """What the next run of a window would be told, in a transaction that is taken back."""
    plan, kept = journal.pinned(KEY, READER, window), journal.landing(KEY, READER)
    if plan is None:
        return None
    how = {"replace_overlaps": False, "allow_fewer_rows": False}
    with journal._database._engine.connect() as connection:
        reader_id = find_reader(connection, KEY, READER)
        try:
            return start(connection, reader_id, plan, TASK, kept.id if kept else None, **how).held
        except StreamsError as error:
            return type(error), str(error)
        finally:
            connection.rollback()


def age(journal: Journal, by: timedelta) -> None:
    """Make everything happen so long ago."""
    with journal._database.writing() as connection:
        for column in (runs.c.started_at, runs.c.finished_at, pins.c.pinned_at):
            moved = [
                (row[0], row[1] - by)
                for row in connection.execute(select(column.table.c.id, column).where(column.is_not(None)))
            ]
            for number, moment in moved:
                connection.execute(
                    update(column.table).where(column.table.c.id == number).values({column.name: moment})
                )


def counted(journal: Journal) -> tuple[int, int]:
    with journal._database.reading() as connection:
        tables = [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in (runs, pins)]
    return tables[0], tables[1]


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("journal") / "empty.db"
    Journal.open(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def journal(empty, tmp_path):
    shutil.copy(empty, tmp_path / "journal.db")
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


@pytest.fixture
def few_are_recent(monkeypatch):
    monkeypatch.setattr(pruning, "RECENT", 0)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(
    overrides=st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, HOURS - 1)), min_size=5, max_size=40),
    young=st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, HOURS - 1)), max_size=6),
)
def test_all_that_is_told_of_windows_is_the_same_before_and_after(empty, tmp_path_factory, overrides, young):
    file = tmp_path_factory.mktemp("pruned") / "journal.db"
    shutil.copy(empty, file)
    with pytest.MonkeyPatch.context() as patch, Journal.open(f"sqlite:///{file}") as journal:
        patch.setattr(pruning, "RECENT", 0)
        story = Story(journal)
        for name, number in overrides:
            story.act(name, number)
        age(journal, 100 * DAY)
        for name, number in young:
            story.act(name, number)
        before, rows = told(journal), counted(journal)
        would = journal.prune(90 * DAY, dry_run=True)
        assert counted(journal) == rows
        assert journal.prune(90 * DAY) == would
        assert told(journal) == before
        gone = would[0] if would else pruning.Pruned(KEY, READER, 0, 0)
        assert counted(journal) == (rows[0] - gone.runs, rows[1] - gone.plans)
        assert journal.prune(90 * DAY) == []
        story.act("cover", 0)
        assert journal.coverage(KEY, READER, T0, T0 + HOUR).to_json()


def tried_often(story: Story) -> None:
    for _ in range(3):
        story.begin(0)
        story.fail(1)
    story.cover(0)
    story.announce(0)


def test_tries_that_a_later_one_has_outdone_go(journal, few_are_recent):
    story = Story(journal)
    story.pin(0)
    tried_often(story)
    story.replan(0)
    tried_often(story)
    assert counted(journal) == (8, 2)
    age(journal, 100 * DAY)
    assert journal.prune(101 * DAY) == []
    assert journal.prune(99 * DAY) == [pruning.Pruned(KEY, READER, 7, 1)]
    assert counted(journal) == (1, 1)


def test_the_last_runs_stay_for_they_tell_which_tasks_read(journal):
    story = Story(journal)
    story.pin(0)
    tried_often(story)
    age(journal, 100 * DAY)
    assert journal.prune(DAY) == []


def test_why_a_window_is_missing_is_told_as_before(journal, few_are_recent):
    """It was covered in another table, and tried for this one: not the same as never tried for this one."""
    story = Story(journal)
    story.land_elsewhere(0)
    story.pin(0)
    story.cover(0)
    story.announce(0)
    story.land_elsewhere(1)
    story.begin(0)
    story.fail(1)
    story.replan(0)
    age(journal, 100 * DAY)
    before = told(journal)
    assert before["coverage"]["windows"][1]["cause"] == "planned again, not read yet"
    journal.prune(DAY)
    assert told(journal) == before


def test_a_failure_before_there_was_a_plan_decides_until_the_newest_plan_is_read(journal, few_are_recent):
    story = Story(journal)
    story.fail_unplanned(0)
    story.pin(0)
    story.begin(0)
    story.fail(1)
    story.replan(0)
    age(journal, 100 * DAY)
    before = told(journal)
    assert before["coverage"]["counts"]["failed"] == 1
    journal.prune(DAY)
    assert told(journal) == before


def test_a_plan_that_a_chain_goes_on_after_stays(journal, few_are_recent):
    """The time between two windows was read with the later one, as the end of the earlier one's plan shows."""
    story = Story(journal)
    for number in (0, 2):
        story.chain(number)
        story.cover(number)
    story.replan(0)
    story.cover(0)
    story.announce(0)
    age(journal, 100 * DAY)
    before = told(journal)
    assert before["coverage"]["counts"]["covered"] == 3
    assert journal.prune(DAY) == [pruning.Pruned(KEY, READER, 1, 0)]
    assert told(journal) == before


def test_the_run_whose_rows_are_in_the_table_is_known(journal, few_are_recent):
    """The first of three was overtaken, and ended last: its rows are in the table; the second decides coverage."""
    story = Story(journal)
    story.land_elsewhere(0)
    story.pin(0)
    story.begin(0)
    story.begin(0)
    story.cover_an_earlier_run(-1)
    story.begin(0)
    story.cover_an_earlier_run(-3)
    story.fail(1)
    story.announce(0)
    age(journal, 100 * DAY)
    before = told(journal)
    assert (before["held"][0], before["coverage"]["rows"]) == (Held(3), 2)
    journal.prune(DAY)
    assert told(journal) == before


def test_a_covered_run_whose_event_was_not_sent_stays(journal, few_are_recent):
    story = Story(journal)
    story.pin(0)
    story.cover(0)
    story.cover(0)
    story.announce(1)
    age(journal, 100 * DAY)
    before = told(journal)
    journal.prune(DAY)
    assert told(journal) == before


def test_late_rows_that_were_counted_stay_so(journal, few_are_recent):
    story = Story(journal)
    story.pin(0)
    story.begin(0)
    story.cover_an_earlier_run(-1)
    story.cover(0)
    journal.count_late(story.begun[0][0], 7)
    story.announce(0)
    age(journal, 100 * DAY)
    journal.prune(DAY)
    story.cover(0)
    assert journal.coverage(KEY, READER, T0, T0 + HOUR).totals["late_rows"] == 7


@pytest.mark.parametrize("keep", [timedelta(0), timedelta(hours=23)])
def test_what_may_still_be_reading_is_not_pruned(journal, keep):
    with pytest.raises(InvalidRequest, match=r"kept for a day at least"):
        journal.prune(keep)
    with pytest.raises(InvalidRequest, match=r"kept for a day at least"):
        Journal("sqlite:////nowhere.db", keep=keep)


def test_a_covered_window_prunes_its_reader_once_a_day(empty, tmp_path, few_are_recent):
    shutil.copy(empty, tmp_path / "journal.db")
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}", keep=90 * DAY) as journal:
        story = Story(journal)
        story.pin(0)
        for _ in range(3):
            story.begin(0)
            story.fail(1)
        age(journal, 100 * DAY)
        story.cover(0)
        assert counted(journal) == (1, 1)
        story.begin(0)
        story.fail(1)
        age(journal, 100 * DAY)
        story.cover(0)
        assert counted(journal)[0] == 3, "it was pruned a moment ago"
        with journal._database.writing() as connection:
            connection.execute(update(readers).values(pruned_at=datetime.now(UTC) - 2 * DAY))
        story.cover(0)
        story.announce(0)
        assert counted(journal)[0] < 5


def test_without_a_setting_nothing_goes(journal, few_are_recent):
    story = Story(journal)
    story.pin(0)
    story.begin(0)
    story.fail(1)
    age(journal, 1000 * DAY)
    story.cover(0)
    assert counted(journal) == (2, 1)


def test_a_window_is_covered_although_pruning_fails(empty, tmp_path, monkeypatch, caplog):
    shutil.copy(empty, tmp_path / "journal.db")

    def unavailable(*_):
        raise JournalUnavailable("busy")

    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}", keep=DAY) as journal:
        story = Story(journal)
        story.pin(0)
        monkeypatch.setattr(pruning, "superfluous", unavailable)
        story.cover(0)
        assert journal.coverage(KEY, READER, T0, T0 + HOUR).is_complete
    assert "the journal was not pruned: busy" in caplog.text


def test_an_age_beyond_the_calendar_keeps_all(journal, few_are_recent):
    tried_often(Story(journal))
    before = counted(journal)
    assert journal.prune(timedelta(days=999_999)) == []
    assert counted(journal) == before
