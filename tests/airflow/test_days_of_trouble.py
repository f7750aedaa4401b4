"""Ten days of hourly windows with failures, kills, late runs and rows, and a retention loss, against the truth.

The truth is kept by the test alone: which hours were read when, and which events they hold, from the events' numbers.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from airflow_provider_streams.airflow_runtime import spark_launch
from airflow_provider_streams.airflow_runtime.window_context import open_context
from airflow_provider_streams.errors import DataLoss, ReceiptMismatch, StreamsError
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.sinks.landing import Landed, Landing
from airflow_provider_streams.model.window.backfill import Limits, Selection
from airflow_provider_streams.model.window.basis import PublishTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.spark.job.outcomes import WindowFailure, landed_of
from airflow_provider_streams.systems.registry import load_system
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.windows.claim.claim import claim_table
from airflow_provider_streams.windows.claim.landing_request import LandingRequest
from airflow_provider_streams.windows.claim.overrides import Overrides
from airflow_provider_streams.windows.plan.planning import WindowRead, pinned_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from airflow_provider_streams.windows.run.job_landing import PinnedWindow, land_together
from airflow_provider_streams.windows.run.recording import RunStart, recorded_planning
from airflow_provider_streams.windows.run.request import ReadRequest, WindowsOfSpan
from airflow_provider_streams.windows.run.window_context import WindowContext
from airflow_provider_streams.windows.run.window_run import WindowRun

SOURCE = FakeSource("numbers")
HOUR = timedelta(hours=1)
HOURS = tuple(Every(HOUR).cells(EPOCH, EPOCH + 240 * HOUR))
INTERVAL = timedelta(minutes=20)
EVENTS = 240 * 3 + 30
LATE_EVERY, LATE_BY = 17, timedelta(minutes=100)
TRIMMED_DAYS = 3
READER = "hourly"


class Killed(BaseException):
    """The process is gone: nothing after it happens."""


class Table:
    """What reads left, by window; and how the next read goes wrong."""

    def __init__(self) -> None:
        self.rows: dict[Window, list[tuple[str, int]]] = {}
        self.reads: list[Window] = []
        self.failing: set[Window] = set()
        self.kill_at: set[int] = set()
        self.jobs = 0

    def land(self, spec: Any) -> Landed:
        plan = spec.plan
        system = load_system("fake").from_options(spec.options)
        readers = [system.read(plan, split, ("shard", "number")) for split in plan.splits]
        rows = [(row["shard"], row["number"]) for reader in readers for batch in reader for row in batch.to_pylist()]
        if plan.window in self.failing:
            raise ReceiptMismatch(plan.fingerprint, ["as a bug of the reader would"])
        receipts = system.explain(plan, [reader.receipt for reader in readers], on_loss=spec.on_loss)
        receipt = compare(plan, receipts, seconds=1.0)
        if spec.columns is None:  # not a recount
            self.rows[plan.window] = sorted(rows)
            self.reads.append(plan.window)
        return Landed(receipt)

    def launch(self, job: Any, *_spark: Any) -> list[Any]:
        self.jobs += 1
        results: list[Any] = []
        for number, spec in enumerate(job.specs):
            if self.jobs in self.kill_at and number == len(job.specs) // 2:
                raise Killed
            try:
                results.append(self.land(spec))
            except StreamsError as error:
                results.append(WindowFailure.of(error))
        return results


@pytest.fixture
def table(fake, monkeypatch: pytest.MonkeyPatch) -> Table:
    made = Table()
    monkeypatch.setattr(spark_launch, "launch", made.launch)
    return made


def published(number: int) -> datetime:
    late = number % LATE_EVERY == LATE_EVERY - 1
    return EPOCH + number * INTERVAL - (LATE_BY if late else timedelta(0))


def events_of(window: Window) -> list[tuple[str, int]]:
    """Every event published in a window, whenever it was stored."""
    numbers = [n for n in range(EVENTS) if window.start <= published(n) < window.end]
    return sorted((f"numbers-{shard}", n) for shard in range(2) for n in numbers)


def on_time(window: Window) -> list[tuple[str, int]]:
    """Those that were stored before a read without slack could miss them."""
    return [(shard, n) for shard, n in events_of(window) if EPOCH + n * INTERVAL < window.end]


class Schedule:
    """The hourly task: reads one window, or comes to nothing, as the dice say."""

    def __init__(self, window_context: WindowContext, table: Table, dice: random.Random) -> None:
        self._window_context, self._table, self._dice = window_context, table, dice
        self._journal = window_context.journal
        self.truth: dict[Window, str] = dict.fromkeys(HOURS, "missing")

    def run(self, window: Window, how: str, *, held: bool = True) -> None:
        """Once: `read`, `fail` or `kill`."""
        if how == "skip":
            return
        read = WindowRead(WindowQuestion(SOURCE, window, PublishTime(timedelta(0))), READER)
        ids = TaskInstanceKey("hourly", f"run-{window.label}", "read", self._dice.randint(1, 9))
        landing_request = LandingRequest(SOURCE, READER, Landing(), read.basis, Every(HOUR))
        begin = RunStart(claim_table(self._journal, landing_request, [window], Overrides()), ids)
        try:
            with recorded_planning(self._journal, read, ids):
                plan = pinned_plan(self._journal, self._window_context.stream.system(), read, replan=False)
        except DataLoss:
            assert not held
            self._become(window, "lost")
            return
        if how == "kill":
            begin.run(self._journal, SOURCE.key, plan)
            self._become(window, "running")
            return
        self._table.failing = {window} if how == "fail" else set()
        try:
            landed_of(land_together(self._window_context, [PinnedWindow(read, plan, begin)]))
        except ReceiptMismatch:
            self._become(window, "failed")
        except DataLoss:
            self._become(window, "lost")
        else:
            self._become(window, "covered")
        self._table.failing = set()

    def _become(self, window: Window, state: str) -> None:
        if self.truth[window] != "covered":  # nothing takes away what was covered
            self.truth[window] = state


def states(journal: Any) -> dict[Window, str]:
    seen = journal.coverage(SOURCE.key, READER, HOURS[0].start, HOURS[-1].end, HOUR)
    return {item.window: item.state for item in seen.windows}


def fill(window_context: WindowContext, *select: str, lookback: timedelta | None = None) -> Any:
    span = Window(HOURS[0].start, HOURS[-1].end)
    windows = WindowsOfSpan(span, Selection(frozenset(select)), None, lookback, Limits(max_windows=12))
    ids = TaskInstanceKey("backfill", "r", "fill", 1)
    request = ReadRequest(SOURCE, READER, windows, ids, basis=PublishTime(timedelta(0)), window_schedule=Every(HOUR))
    run = WindowRun(window_context, request)
    return run.land(run.prepare(), lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20261121])
def test_ten_days_of_trouble_end_with_a_coverage_that_equals_the_truth(fake, table, seed, monkeypatch):
    dice = random.Random(seed)  # noqa: S311 - a story, not a secret
    print(f"seed {seed}")
    facts = {
        "events": EVENTS,
        "interval_ms": INTERVAL // timedelta(milliseconds=1),
        "late_every": LATE_EVERY,
        "late_by_ms": LATE_BY // timedelta(milliseconds=1),
    }
    fake(**facts)
    with open_context(SOURCE) as window_context:
        journal = window_context.journal
        schedule = Schedule(window_context, table, dice)
        weights = {"read": 70, "skip": 12, "fail": 10, "kill": 8}
        postponed = []
        for window in HOURS:
            how = dice.choices([*weights], [*weights.values()])[0]
            schedule.run(window, how)
            if how in ("fail", "kill") and dice.random() < 0.5:
                schedule.run(window, dice.choice(["read", "fail"]))
            if dice.random() < (0.6 if how == "skip" else 0.05):
                postponed.append(window)
        assert states(journal) == schedule.truth
        assert set(schedule.truth.values()) == {"covered", "missing", "failed", "running"}

        # the stream forgets three days; late runs come for hours of every age
        gone = HOURS[TRIMMED_DAYS * 24 - 1].end
        fake(**facts, head=(gone - EPOCH) // INTERVAL)
        for window in postponed:
            # a pinned plan is not planned again: that its events are gone is found when it is read
            schedule.run(window, "read", held=window.start >= gone)
        assert states(journal) == schedule.truth
        assert "lost" in schedule.truth.values()

        # the backfill is killed twice, and goes on
        before = dict(schedule.truth)
        wanted = [w for w in HOURS if before[w] not in ("covered", "lost") and w.start >= gone]
        table.reads.clear()
        table.kill_at = {table.jobs + 1, table.jobs + 3}
        fail_run = journal.fail_run
        for _ in range(2):
            monkeypatch.setattr(journal, "fail_run", lambda *_, **__: None)  # a killed process notes nothing
            with pytest.raises(Killed):
                fill(window_context, "missing")
            monkeypatch.setattr(journal, "fail_run", fail_run)
        outcome = fill(window_context, "missing")
        after = {
            window: "covered" if window in wanted else "covered" if before[window] == "covered" else "lost"
            for window in HOURS
        }
        assert states(journal) == after
        assert set(table.reads) == set(wanted), "exactly the missing ones, and nothing twice but what a kill cut short"
        assert set(outcome.by_window()) <= {str(window) for window in HOURS if window.end <= gone}

        held = [window for window in HOURS if window.start >= gone]
        assert {w: table.rows[w] for w in held} == {w: on_time(w) for w in held}

        # late rows: counted, then read again, once
        late = [w for w in held if events_of(w) != on_time(w)]
        table.reads.clear()
        fill(window_context, "late", lookback=timedelta(hours=3))
        assert sorted(table.reads) == late
        assert {w: table.rows[w] for w in held} == {w: events_of(w) for w in held}
        table.reads.clear()
        fill(window_context, "late", "missing", lookback=timedelta(hours=3))
        assert table.reads == []
        counted = journal.coverage(SOURCE.key, READER, gone, HOURS[-1].end, HOUR)
        assert counted.is_complete
        assert counted.totals["rows"] == sum(len(events_of(w)) for w in held)
