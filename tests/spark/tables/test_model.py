"""Random sequences of landings in one table of Spark's end with the table that their receipts say."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from airflow_provider_streams.errors import CommitStateUnknown, WindowsOverlap
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.sinks.landing import TableTerms
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.catalog.writer import SparkTableWriter
from tests.seeds import examples
from tests.spark.conftest import TERMS
from tests.spark.tables.landing import failing_overwrites

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def hour(number: int, hours: int) -> Window:
    return Window(NOON + timedelta(hours=number), NOON + timedelta(hours=number + hours))


WINDOWS = st.builds(hour, st.integers(0, 3), st.integers(1, 2))
COUNTS = st.sampled_from([0, 1, 7])
Rows = range


class Attempt:
    """One attempt at a window, stopped where a test wants."""

    def __init__(self, spark: Any, sink: Any, window: Window, rows: Rows, terms: TableTerms = TERMS) -> None:
        self.window, self.rows = window, rows
        self.writer = SparkTableWriter(sink, window, terms)
        self.writer.stage(spark.range(rows.start, rows.stop, 1, 2))

    def commit(self) -> None:
        report = SplitReceipt(0, rows=len(self.rows))
        try:
            self.writer.commit(Receipt(f"plan of {len(self.rows)}", (report,), 1.0, "complete"), len(self.rows))
        finally:
            self.writer.discard()


class Landings(RuleBasedStateMachine):
    """What the table must hold, next to the table."""

    spark: Any
    sink: Any
    monkeypatch: pytest.MonkeyPatch

    def __init__(self) -> None:
        super().__init__()
        self.spark.sql(f"DROP TABLE IF EXISTS {self.sink.table}")
        self.held: dict[Window, Rows] = {}
        self.first = 0
        self.paused: list[Attempt] = []

    def begun(self, window: Window, count: int, **terms: Any) -> Attempt:
        self.first += 100
        rows = range(self.first, self.first + count)
        return Attempt(self.spark, self.sink, window, rows, TableTerms(TERMS.mark, **terms))

    def is_blocked(self, window: Window) -> bool:
        return any(other != window and other.overlaps(window) for other in self.held)

    def landed(self, attempt: Attempt) -> None:
        self.held = {one: rows for one, rows in self.held.items() if not one.overlaps(attempt.window)}
        if attempt.rows:
            self.held[attempt.window] = attempt.rows

    def ends(self, attempt: Attempt) -> None:
        try:
            attempt.commit()
        except WindowsOverlap:
            assert self.is_blocked(attempt.window)
        else:
            assert not self.is_blocked(attempt.window)
            self.landed(attempt)
        self.look()

    @rule(window=WINDOWS, count=COUNTS)
    def lands(self, window, count):
        self.ends(self.begun(window, count))

    @rule(window=WINDOWS, count=COUNTS)
    def replaces_what_shares_time(self, window, count):
        attempt = self.begun(window, count, replace_overlaps=True)
        attempt.commit()
        self.landed(attempt)
        self.look()

    @rule(window=WINDOWS, count=COUNTS)
    def begins(self, window, count):
        self.paused.append(self.begun(window, count))

    @precondition(lambda self: self.paused)
    @rule(data=st.data())
    def goes_on(self, data):
        self.ends(self.paused.pop(data.draw(st.integers(0, len(self.paused) - 1))))

    @precondition(lambda self: self.paused)
    @rule(data=st.data())
    def ends_before_the_commit(self, data):
        self.paused.pop(data.draw(st.integers(0, len(self.paused) - 1))).writer.discard()
        self.look()

    @rule(window=WINDOWS, count=COUNTS)
    def loses_the_answer_of_every_try(self, window, count):
        attempt = self.begun(window, count, replace_overlaps=True)
        with self.monkeypatch.context() as patched:
            failing_overwrites(patched, "before", "answer lost", "before")
            with pytest.raises(CommitStateUnknown):
                attempt.commit()
        self.landed(attempt)
        self.look()

    def look(self) -> None:
        """The table is what the receipts say."""
        if not self.spark.catalog.tableExists(self.sink.table):
            return
        edges = "unix_seconds(window_start) AS start", "unix_seconds(window_end) AS end"
        found: dict[Window, list[int]] = {}
        for row in self.spark.table(self.sink.table).selectExpr("id", *edges).collect():
            window = Window(datetime.fromtimestamp(row["start"], UTC), datetime.fromtimestamp(row["end"], UTC))
            found.setdefault(window, []).append(row["id"])
        assert {window: sorted(ids) for window, ids in found.items()} == {
            window: list(rows) for window, rows in self.held.items()
        }


def test_random_landings_end_with_the_table_that_their_receipts_say(spark, sink, monkeypatch):
    """More of them: `STREAMS_EXAMPLES=10000`."""
    machine = type("OfThisTable", (Landings,), {"spark": spark, "sink": sink, "monkeypatch": monkeypatch})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(1),
            stateful_step_count=int(os.environ.get("STREAMS_LAKE_STEPS", "8")),
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
