"""Random sequences of landings on one Iceberg table end with the table that their receipts say."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from airflow_provider_streams.errors import LandedMeanwhile, WindowsOverlap
from airflow_provider_streams.lake.compaction import compact
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.writer import IcebergWriter
from airflow_provider_streams.lake.upkeep import compactable, expirable
from airflow_provider_streams.model.landing import TableState
from airflow_provider_streams.model.window import Window
from tests.integration.lake.landing_icebergs import (
    SCHEMA,
    TERMS,
    Attempt,
    hour,
    ids,
    land,
    new_table,
    rows_of,
    stored_files,
    table_of,
)

WINDOWS = st.builds(hour, st.integers(0, 3), st.integers(1, 2))
COUNTS = st.sampled_from([0, 1, 7])


class Landings(RuleBasedStateMachine):
    """What the table must hold, beside the table."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp(prefix="iceberg-model-"))
        where = {"type": "sql", "uri": f"sqlite:///{self.folder}/c.db", "warehouse": f"file://{self.folder}/lake"}
        self.stack = ExitStack()
        self.stack.enter_context(given("iceberg_test", where))
        self.sink = new_table(widen=True)
        self.held: dict[Window, list[int]] = {}
        self.first = 0
        self.paused: list[Attempt] = []
        self.overtaken: dict[int, list[Window]] = {}

    def rows(self, count: int):
        self.first += 100
        return rows_of(self.first, count)

    def blocked(self, window: Window) -> bool:
        return any(other != window and other.overlaps(window) for other in self.held)

    def told(self, attempt: Attempt, act: Callable[[], object], *, replace: bool = False) -> None:
        """What an attempt's end means for the table."""
        window = attempt.window
        late = any(window.overlaps(other) for other in self.overtaken.get(id(attempt), []))
        try:
            act()
        except LandedMeanwhile:
            assert late
            return
        except WindowsOverlap:
            assert self.blocked(window)
            assert not replace
            return
        assert not late
        assert replace or not self.blocked(window)
        self.held = {one: found for one, found in self.held.items() if not one.overlaps(window)}
        if found := attempt.rows["id"].to_pylist():
            self.held[window] = found
        for other in self.paused:
            self.overtaken.setdefault(id(other), []).append(window)

    @rule(window=WINDOWS, count=COUNTS)
    def lands(self, window, count):
        attempt = Attempt(self.sink, window, self.rows(count))
        self.told(attempt, attempt.land)

    @rule(window=WINDOWS, count=COUNTS)
    def replaces_what_shares_time(self, window, count):
        rows = self.rows(count)
        attempt = Attempt(self.sink, window, rows)
        self.told(attempt, lambda: land(self.sink, window, rows, replace_overlaps=True), replace=True)

    @rule(window=WINDOWS, count=COUNTS)
    def begins(self, window, count):
        self.paused.append(Attempt(self.sink, window, self.rows(count)).write())

    @precondition(lambda self: self.paused)
    @rule(data=st.data())
    def goes_on(self, data):
        attempt = self.paused.pop(data.draw(st.integers(0, len(self.paused) - 1)))
        self.told(attempt, attempt.commit)
        attempt.writer.discard()

    @precondition(lambda self: self.paused)
    @rule(data=st.data())
    def gives_up(self, data):
        self.paused.pop(data.draw(st.integers(0, len(self.paused) - 1))).writer.discard()

    @rule(window=WINDOWS, count=COUNTS)
    def is_killed_before_the_commit(self, window, count):
        Attempt(self.sink, window, self.rows(count)).write()

    @rule(number=st.integers(0, 2))
    def gets_a_column(self, number):
        schema = SCHEMA.append(SCHEMA.field("value").with_name(f"more{number}"))
        attempt = Attempt(self.sink, hour(9), rows_of(number, 2, schema))
        self.told(attempt, attempt.land)

    @precondition(lambda self: self.held)
    @rule()
    def is_compacted(self):
        """Into files of several windows, by somebody else."""
        table = table_of(self.sink)
        if any(field.name == "window_start" for field in table.spec().fields):
            with table.update_spec() as spec:
                spec.remove_field("window_start")
        table.overwrite(table.scan().to_arrow())

    @rule(by=st.sampled_from([1, 16]))
    def is_kept_in_few_files(self, by):
        """By us, of whatever somebody else compacted before."""
        if not self.held:
            return
        rows = {window: len(found) for window, found in self.held.items()}
        assert not compact(compactable(self.sink, TERMS.mark), rows, by * 1024).differing

    @rule(ahead=st.sampled_from([timedelta(0), timedelta(seconds=5)]))
    def loses_its_past(self, ahead):
        """All of it, or what nobody needs who is about to land."""
        if not self.held:
            return
        begun = min((attempt.begun for attempt in self.paused), default=datetime.now(UTC) + ahead)
        expirable(self.sink, TERMS.mark).expire(begun)
        if begun > datetime.now(UTC):
            contents = compactable(self.sink, TERMS.mark).contents().values()
            assert stored_files(self.sink) == {file.path for content in contents for file in content.files}

    @invariant()
    def the_table_is_what_the_receipts_say(self):
        if self.held:
            assert ids(self.sink) == self.held
            assert IcebergWriter.look(self.sink) == TableState(TERMS.mark, frozenset(self.held), tells_empty=False)

    def teardown(self) -> None:
        self.stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)


TestLandings = pytest.mark.lake(Landings.TestCase)
TestLandings.settings = settings(
    max_examples=int(os.environ.get("STREAMS_LAKE_EXAMPLES", "5")), stateful_step_count=15, deadline=None
)
