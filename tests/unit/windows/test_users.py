"""Random users, for as long as they live: after each act a table holds what is claimed of it, or the act was refused.

`STREAMS_EXAMPLES=5000` lets 600 of them live; the suite has time for a few.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.parquet import table as parquet_table
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.testing.fake import FakeSource, Truth
from tests.seeds import examples
from tests.unit.windows.claims import Act, Memory, check_act, check_claim, check_landed, check_table
from tests.unit.windows.conftest import World

USERS = examples(12)
# a user lives for seconds, on a busy machine for many
pytestmark = pytest.mark.timeout(60 * USERS)

START = datetime(2026, 10, 23, 22, tzinfo=UTC)
"""Midnight in Berlin, two days before its clocks are put back."""
STEP = timedelta(minutes=30)
"""From one event of a shard to the next."""
LAST = 7 * 48
SHARDS = 2

READERS = st.sampled_from(["hourly", "daily"])
SOURCES = st.sampled_from(["orders", "orders", "orders", "payments"])
SINKS = st.sampled_from([*["own"] * 6, "lake", "pond", None])
OWN = {"hourly": "lake", "daily": "pond"}
GRIDS = st.sampled_from(["6h", "6h", "12h", "1d", "1d Europe/Berlin", "1d Europe/Berlin", "5h", None])
COLUMNS = st.sampled_from([*[None] * 7, ("value", "number")])
TRANSFORMS = st.sampled_from([*[None] * 7, "shop:clean"])
BASES = st.sampled_from(["publish", "publish", "publish", "chained"])
ACTS = st.fixed_dictionaries(
    {},
    optional={
        "replan": st.booleans(),
        "full_refresh": st.booleans(),
        "allow_fewer_rows": st.booleans(),
        "overlap": st.sampled_from(["refuse", "replace"]),
    },
)
WHOSE = st.fixed_dictionaries(
    {"reader": READERS, "source": SOURCES, "sink": SINKS, "columns": COLUMNS, "transform": TRANSFORMS}
).map(lambda whose: {**whose, "sink": OWN[whose["reader"]] if whose["sink"] == "own" else whose["sink"]})
LOSSES = st.sampled_from(["fail", "fail", "record"])
MOMENTS = (st.integers(0, 6) | st.integers(0, LAST // 6)).map(lambda sixth: START + 6 * sixth * STEP)

DEATHS: dict[str, tuple[Any, str]] = {
    "before the plan is pinned": (Journal, "pin"),
    "before its run begins": (Journal, "start_run"),
    "before the table is touched": (parquet_table.ParquetTable, "put"),
    "before two folders change places": (parquet_table, "replace_folder"),
    "before the table is marked": (parquet_table, "write_mark"),
    "before the window is covered": (Journal, "finish_run"),
}
_KILLED = 9

Doing = Callable[[], tuple[Window, ...]]
"""Does it, and gives the windows that are said to have landed."""


class SparkDied(Exception):
    """What is none of ours."""


class Users(RuleBasedStateMachine):
    """Two readers of two sources, whose DAGs change, are cleared, backfilled, killed, and deployed three times."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="streams-users-"))
        (self.root / "dev").mkdir()
        self.journals = {name: Journal(f"sqlite:///{self.root / name}.db") for name in ("main", "second")}
        self.folders = [folder / sink for folder in (self.root, self.root / "dev") for sink in ("lake", "pond")]
        self.journal = "main"
        self.world = World(self.root, self.journals["main"])
        self.look_around()

    def look_around(self) -> None:
        """Remember what the journals and tables hold now."""
        self.memory = Memory.of(self.journals, self.folders)

    @initialize(late_every=st.sampled_from([0, 5, 50]), events=st.sampled_from([48, 5 * 48, LAST]))
    def begin(self, late_every: int, events: int) -> None:
        step_ms = STEP // timedelta(milliseconds=1)
        how = {"epoch": START.isoformat(), "interval_ms": step_ms, "late_by_ms": 9 * step_ms, "late_every": late_every}
        self.world.hold(events=events, shards=SHARDS, **how)

    def teardown(self) -> None:
        for journal in self.journals.values():
            journal.close()
        shutil.rmtree(self.root)

    # What users do

    @rule(moment=MOMENTS, window_schedule=GRIDS, basis=BASES, loss=LOSSES, overrides=ACTS, whose=WHOSE)
    def read(self, moment, window_schedule, basis, loss, overrides, whose):
        self.attempt(*self.reading(moment, window_schedule, basis, loss, overrides, whose))

    @rule(moment=MOMENTS, window_schedule=GRIDS, basis=BASES, loss=LOSSES, overrides=ACTS, whose=WHOSE)
    def look(self, moment, window_schedule, basis, loss, overrides, whose):
        self.attempt(*self.reading(moment, window_schedule, basis, loss, overrides, whose, dry_run=True))

    @rule(
        moment=MOMENTS,
        days=st.integers(1, 7),
        length=st.sampled_from([None, None, timedelta(hours=6), timedelta(days=1), "1d Europe/Berlin"]),
        select=st.sampled_from(["missing", "failed", "lost", "all", "late"]),
        lookback=st.none() | st.just(timedelta(hours=6)),
        loss=LOSSES,
        overrides=ACTS,
        whose=WHOSE,
    )
    def backfill(self, moment, days, length, select, lookback, loss, overrides, whose):
        how = {"length": length, "select": select, "lookback": lookback, "on_loss": loss}
        self.attempt(*self.backfilling(moment, days, overrides, whose, **how))

    @rule(
        moment=MOMENTS,
        window_schedule=GRIDS,
        basis=BASES,
        overrides=ACTS,
        whose=WHOSE,
        death=st.sampled_from(sorted(DEATHS)),
    )
    def read_and_die(self, moment, window_schedule, basis, overrides, whose, death):
        self.attempt(*self.reading(moment, window_schedule, basis, "fail", overrides, whose), death=death)

    @rule(moment=MOMENTS, days=st.integers(1, 7), whose=WHOSE, death=st.sampled_from(sorted(DEATHS)))
    def backfill_and_die(self, moment, days, whose, death):
        self.attempt(*self.backfilling(moment, days, {}, whose, length=None), death=death)

    @rule(moment=MOMENTS, window_schedule=GRIDS, overrides=ACTS, whose=WHOSE)
    def read_while_spark_fails(self, moment, window_schedule, overrides, whose):
        def fail(_spec: Any) -> None:
            raise SparkDied

        self.world.before = fail
        self.attempt(*self.reading(moment, window_schedule, "publish", "fail", overrides, whose))
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
        self.look_around()

    @rule(sink=st.sampled_from(["lake", "pond"]), which=st.integers(0, 5))
    def a_window_is_deleted(self, sink, which):
        folders = sorted(Path(self.world.sink(sink).path).glob("window_start=*/window_end=*"))
        if folders:
            shutil.rmtree(folders[which % len(folders)])
            self.look_around()

    @rule(deployment=st.sampled_from([("main", "."), ("main", "."), ("second", "."), ("main", "dev")]))
    def another_deployment_goes_on(self, deployment):
        """With a journal of its own on the same tables, or with tables of its own on the same journal."""
        self.journal, folder = deployment
        self.world.journal, self.world.path = self.journals[self.journal], self.root / folder

    # What must be

    @invariant()
    def no_row_is_in_a_table_twice(self):
        for folder in self.folders:
            check_table(folder)

    @invariant()
    def a_table_holds_what_is_claimed(self):
        truth = Truth.parse(self.world.truth)
        for claim in self.memory.claims:
            check_claim(claim, truth)

    # How

    def reading(self, moment, window_schedule, basis, loss, overrides, whose, *, dry_run=False) -> tuple[Act, Doing]:
        window = parse_schedule(window_schedule or "7h").cell(moment)
        how = {
            "basis": basis,
            "window_schedule": window_schedule,
            "on_loss": loss,
            "dry_run": dry_run,
            **whose,
            **overrides,
        }
        act = self.act("look" if dry_run else "read", window, whose, overrides)

        def read() -> tuple[Window, ...]:
            return () if self.world.read(window, **how) is None else (window,)

        return act, read

    def backfilling(self, moment, days, overrides, whose, **how) -> tuple[Act, Doing]:
        span = Window(moment, moment + timedelta(days=days))
        late = {"select": "late"} if how.get("select") == "late" else {}
        act = self.act("backfill", span, whose, {**overrides, **late})
        return act, lambda: self.world.backfill(span, **how, **whose, **overrides)[1].covered

    def act(self, kind: str, window: Window, whose: dict[str, Any], overrides: dict[str, Any]) -> Act:
        sink = self.world.sink(whose["sink"]) if whose["sink"] else None
        landing = Landing(sink, whose["transform"], whose["columns"])
        owner = (FakeSource(whose["source"]).key, whose["reader"])
        told = {name: value for name, value in overrides.items() if value not in (False, "refuse")}
        return Act(kind, self.journal, owner, landing, window, told)

    def attempt(self, act: Act, do: Doing, death: str | None = None) -> None:
        """Done, or refused with a reason of ours, or dead in the middle of it."""
        before, error, landed = self.memory, None, ()
        try:
            if death is None:
                landed = do()
            else:
                self.die_in(death, lambda: self.alone(do))
        except (StreamsError, SparkDied) as caught:
            error = caught
        dies = death is not None or isinstance(error, SparkDied)
        self.look_around()
        check_act(replace(act, dies=dies), before, self.memory, error)
        check_landed(act, landed, self.memory)

    @staticmethod
    def alone(do: Doing) -> None:
        with suppress(StreamsError):
            do()

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
TestUsers = pytest.mark.slow(Users.TestCase)
