"""Random sequences of landings on one Delta table end with the table that their receipts say."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.errors import WindowsOverlap
from airflow_provider_streams.lake.compaction import compact
from airflow_provider_streams.lake.delta.writer import DeltaWriter, storage_of
from airflow_provider_streams.lake.upkeep import compactable, expirable
from airflow_provider_streams.model.landing import TableState
from airflow_provider_streams.model.window import Window
from tests.integration.lake.delta_reading import windows
from tests.integration.lake.landing_deltas import SCHEMA, TERMS, Attempt, hour, land, rows_of, stored_files

WINDOWS = st.builds(hour, st.integers(0, 3), st.integers(1, 2))
COUNTS = st.sampled_from([0, 1, 7])


class Landings(RuleBasedStateMachine):
    """What the table must hold, beside the table."""

    def __init__(self) -> None:
        super().__init__()
        self.sink = DeltaSink(str(Path(mkdtemp(prefix="delta-model-")) / "orders"), widen=True)
        self.held: dict[Window, list[int]] = {}
        self.first = 0
        self.paused: list[Attempt] = []

    def rows(self, count: int):
        self.first += 100
        return rows_of(self.first, count)

    def blocked(self, window: Window) -> bool:
        return any(other != window and other.overlaps(window) for other in self.held)

    def told(self, attempt: Attempt, act: Callable[[], object], *, replace: bool = False) -> None:
        """What an attempt's end means for the table."""
        window = attempt.window
        try:
            act()
        except WindowsOverlap:
            assert self.blocked(window)
            assert not replace
            return
        assert replace or not self.blocked(window)
        self.held = {one: ids for one, ids in self.held.items() if not one.overlaps(window)}
        self.held[window] = attempt.rows["id"].to_pylist()

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

    @rule()
    def is_compacted(self):
        from deltalake import DeltaTable

        if self.held:
            DeltaTable(self.sink.path).optimize.compact()
            DeltaTable(self.sink.path).create_checkpoint()

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
            stored = {path for path in stored_files(self.sink) if not path.startswith("_delta_log/")}
            assert stored == {file.path for content in contents for file in content.files}

    @invariant()
    def the_table_is_what_the_receipts_say(self):
        if not self.held:
            return
        found = windows(storage_of(self.sink))
        assert {window: sorted(row["id"] for row in rows) for window, rows in found.items()} == self.held
        assert DeltaWriter.look(self.sink) == TableState(TERMS.mark, frozenset(self.held))

    def teardown(self) -> None:
        with suppress(OSError):
            import shutil

            shutil.rmtree(Path(self.sink.path).parent)


TestLandings = Landings.TestCase
TestLandings.settings = settings(
    max_examples=int(os.environ.get("STREAMS_LAKE_EXAMPLES", "6")), stateful_step_count=20, deadline=None
)
