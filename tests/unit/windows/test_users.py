"""Random users, for as long as they live: after each act a table holds what is claimed of it, or the act was refused.

`STREAMS_USERS=500` lets so many of them live; the suite has time for a few.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.grid import parse_grid
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.spark import parquet_table
from airflow_provider_streams.testing.fake import Truth
from tests.unit.windows.conftest import World

USERS = int(os.environ.get("STREAMS_USERS", "12"))
# a user lives for seconds, on a busy machine for many
pytestmark = pytest.mark.timeout(60 * USERS)

START = datetime(2026, 10, 23, 22, tzinfo=UTC)
"""Midnight in Berlin, two days before its clocks are put back."""
STEP = timedelta(minutes=30)
"""From one event of a shard to the next."""
LAST = 7 * 48
SHARDS = 2

READERS = st.sampled_from(["hourly", "daily"])
SOURCES = st.sampled_from(["orders", "payments"])
SINKS = st.sampled_from(["lake", "lake", "lake", "pond", None])
GRIDS = st.sampled_from(["6h", "6h", "12h", "1d", "1d Europe/Berlin", "1d Europe/Berlin", "5h", None])
BASES = st.sampled_from(["publish", "publish", "publish", "chained"])
ACTS = st.fixed_dictionaries(
    {},
    optional={
        "replan": st.booleans(),
        "reland": st.booleans(),
        "accept_fewer": st.booleans(),
        "overlap": st.sampled_from(["refuse", "replace"]),
    },
)
LOSSES = st.sampled_from(["fail", "fail", "record"])
MOMENTS = st.integers(0, LAST // 6).map(lambda sixth: START + 6 * sixth * STEP)

DEATHS: dict[str, tuple[Any, str]] = {
    "before the plan is pinned": (Journal, "pin"),
    "before its run begins": (Journal, "start_run"),
    "before the table is touched": (parquet_table.ParquetTable, "put"),
    "before two folders change places": (parquet_table, "replace_folder"),
    "before the table is marked": (parquet_table.ParquetTable, "_write_mark"),
    "before the window is covered": (Journal, "finish_run"),
}
_KILLED = 9


class Users(RuleBasedStateMachine):
    """Two readers of two sources, whose DAGs change, are cleared, backfilled, killed, and deployed twice."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="streams-users-"))
        self.journals = {name: Journal(f"sqlite:///{self.root / name}.db") for name in ("main", "second")}
        self.world = World(self.root, self.journals["main"])

    @initialize(late_every=st.sampled_from([0, 5, 50]))
    def begin(self, late_every: int) -> None:
        step_ms = STEP // timedelta(milliseconds=1)
        how = {"epoch": START.isoformat(), "interval_ms": step_ms, "late_by_ms": 9 * step_ms, "late_every": late_every}
        self.world.hold(events=48, shards=SHARDS, **how)

    def teardown(self) -> None:
        for journal in self.journals.values():
            journal.close()
        shutil.rmtree(self.root)

    # What users do

    @rule(moment=MOMENTS, grid=GRIDS, reader=READERS, source=SOURCES, sink=SINKS, basis=BASES, loss=LOSSES, acts=ACTS)
    def read(self, moment, grid, reader, source, sink, basis, loss, acts):
        self.attempt(self.reading(moment, grid, reader, source, sink, basis, loss, acts))

    @rule(moment=MOMENTS, grid=GRIDS, reader=READERS, source=SOURCES, sink=SINKS, basis=BASES)
    def look(self, moment, grid, reader, source, sink, basis):
        self.attempt(self.reading(moment, grid, reader, source, sink, basis, "record", {}, dry_run=True))

    @rule(
        moment=MOMENTS,
        days=st.integers(1, 7),
        length=st.sampled_from([None, None, timedelta(hours=6), timedelta(days=1), "1d Europe/Berlin"]),
        reader=READERS,
        source=SOURCES,
        sink=SINKS,
        select=st.sampled_from(["missing", "failed", "lost", "all", "late"]),
        lookback=st.none() | st.just(timedelta(hours=6)),
        loss=LOSSES,
        acts=ACTS,
    )
    def backfill(self, moment, days, length, reader, source, sink, select, lookback, loss, acts):
        span = Window(moment, moment + timedelta(days=days))
        how = {"reader": reader, "source": source, "sink": sink, "select": select, "lookback": lookback}
        self.attempt(lambda: self.world.backfill(span, length=length, on_loss=loss, **how, **acts))

    @rule(
        moment=MOMENTS,
        grid=GRIDS,
        reader=READERS,
        source=SOURCES,
        basis=BASES,
        acts=ACTS,
        death=st.sampled_from(sorted(DEATHS)),
    )
    def read_and_die(self, moment, grid, reader, source, basis, acts, death):
        reading = self.reading(moment, grid, reader, source, "lake", basis, "fail", acts)
        self.die_in(death, lambda: self.attempt(reading))

    @rule(moment=MOMENTS, days=st.integers(1, 7), reader=READERS, source=SOURCES, death=st.sampled_from(sorted(DEATHS)))
    def backfill_and_die(self, moment, days, reader, source, death):
        span = Window(moment, moment + timedelta(days=days))
        filling = lambda: self.world.backfill(span, length=None, reader=reader, source=source)  # noqa: E731
        self.die_in(death, lambda: self.attempt(filling))

    @rule(moment=MOMENTS, grid=GRIDS, reader=READERS, source=SOURCES)
    def read_while_spark_fails(self, moment, grid, reader, source):
        def fail(_spec: Any) -> None:
            raise SystemError("Spark died")

        self.world.before = fail
        try:
            self.reading(moment, grid, reader, source, "lake", "publish", "fail", {})()
        except (SystemError, StreamsError):
            pass
        finally:
            self.world.before = lambda _spec: None

    # What else happens

    @rule(events=st.integers(1, 96))
    def time_goes_on(self, events):
        self.world.hold(events=min(int(self.world.truth["events"]) + events, LAST))

    @rule(events=st.integers(1, 24))
    def retention_trims(self, events):
        head = int(self.world.truth.get("head", 0)) + events
        self.world.hold(head=min(head, int(self.world.truth["events"])))

    @rule(sink=st.sampled_from(["lake", "pond"]))
    def the_table_is_deleted(self, sink):
        shutil.rmtree(self.world.sink(sink).path, ignore_errors=True)

    @rule(sink=st.sampled_from(["lake", "pond"]), which=st.integers(0, 5))
    def a_window_is_deleted(self, sink, which):
        folders = sorted(Path(self.world.sink(sink).path).glob("window_start=*/window_end=*"))
        if folders:
            shutil.rmtree(folders[which % len(folders)])

    @rule(journal=st.sampled_from(["main", "main", "second"]))
    def another_deployment_goes_on(self, journal):
        self.world.journal = self.journals[journal]

    # What must be

    @invariant()
    def no_row_is_in_a_table_twice(self):
        for sink in ("lake", "pond"):
            doubled = [value for value, count in self.world.values(sink).items() if count > 1]
            assert doubled == [], f"{sink}: {doubled[:3]}"

    @invariant()
    def a_table_holds_what_is_claimed(self):
        for journal in self.journals.values():
            for key, reader in journal.sources():
                kept = journal.landing(key, reader)
                if kept is not None and kept.target is not None:
                    self._check(journal, key, reader, kept.target, kept.table_id)

    def _check(self, journal: Journal, key: str, reader: str, target: str, table_id: str) -> None:
        folder = Path(target.removeprefix("file://"))
        table = parquet_table.ParquetTable(str(folder))
        state = table.state()
        if state is None or state.mark.id != table_id:
            return  # deleted, or another's by now: the next run finds out before it claims anything
        coverage = journal.coverage(key, reader, START - timedelta(days=2), START + timedelta(days=12))
        covered = coverage.select("covered")
        assert all(not a.window.overlaps(b.window) for a, b in pairwise(covered))
        kept = journal.landing(key, reader)
        for item in covered:
            if item.window in state.windows:  # else somebody deleted it, and the next run finds out
                rows = self._rows(table, item.window)
                assert len(rows) == item.rows, item
                if kept is not None and kept.basis == "publish" and not item.cause:
                    self._check_times(item.window, rows)

    def _rows(self, table: parquet_table.ParquetTable, window: Window) -> set[tuple[int, int]]:
        """Shard and number of each event in a window's folder."""
        files = table.folder_of(window).glob("*.parquet")
        values = [v for file in files for v in pq.ParquetFile(file).read(["value"])["value"].to_pylist()]
        texts = [value.decode().rstrip(".").rpartition("-")[2].split(":") for value in values]
        rows = {(int(shard), int(number)) for shard, number in texts}
        assert len(rows) == len(values)
        return rows

    def _check_times(self, window: Window, rows: set[tuple[int, int]]) -> None:
        """Everything that was published in the window is there but for what came late; and nothing else."""
        truth = Truth.parse(self.world.truth)
        published = {n for n in range(truth.events) if window.start <= truth.time_of(n) < window.end}
        late = {n for n in published if truth.stored_at(n) >= window.end}
        for shard in range(SHARDS):
            read = {number for one, number in rows if one == shard}
            assert published - late <= read <= published, (window, shard)

    # How

    def reading(self, moment, grid, reader, source, sink, basis, loss, acts, *, dry_run=False) -> Callable[[], object]:
        window = parse_grid(grid or "7h").cell(moment)
        how = {"reader": reader, "source": source, "sink": sink, "basis": basis, "grid": grid}
        return lambda: self.world.read(window, on_loss=loss, dry_run=dry_run, **how, **acts)

    @staticmethod
    def attempt(act: Callable[[], object]) -> None:
        """Done, or refused with a reason of ours."""
        with suppress(StreamsError):
            act()

    @staticmethod
    def die_in(death: str, act: Callable[[], object]) -> None:
        """Do it in another process, which is gone in the middle of it, as by `kill -9`."""
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) in (0, _KILLED)
            return
        code = 1
        try:
            owner, name = DEATHS[death]
            with mock.patch.object(owner, name, side_effect=lambda *_, **__: os._exit(_KILLED)):
                act()
            code = 0
        finally:
            os._exit(code)


Users.TestCase.settings = settings(
    max_examples=USERS,
    stateful_step_count=int(os.environ.get("STREAMS_ACTS", "30")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestUsers = Users.TestCase
