# ruff: noqa: S311 - random acts
"""One random user of a real topic: reads, backfills, kills and deletions; the truth is what Pulsar's client reads.

A longer life: `STREAMS_ACTS=500 pytest tests/integration/pulsar/test_users.py`; `STREAMS_SEED` repeats one.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.parquet import table as parquet_table
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from tests.seeds import chosen_seed
from tests.unit.windows.conftest import World
from tests.unit.windows.test_users import DEATHS, Users

pytestmark = [pytest.mark.pulsar, pytest.mark.timeout(1200)]

ACTS = int(os.environ.get("STREAMS_ACTS", "40"))
SEED = chosen_seed()
LENGTH = timedelta(seconds=1)
GRID = Every(LENGTH)
PARTITIONS = 2
MILLISECOND = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Event = tuple[bytes, int, int, int]
"""Value, partition, ledger and entry."""


class RealWorld(World):
    """Windows of a topic of a real broker, in tables of one row for each message."""

    def __init__(self, path: Path, journal: Journal, bench: Any) -> None:
        super().__init__(path, journal)
        self.bench = bench
        self.topic = bench.topic("users", PARTITIONS)
        self.shards = [f"{self.topic}-partition-{number}" for number in range(PARTITIONS)]
        self.producers = [bench.client.create_producer(shard) for shard in self.shards]
        self.start = GRID.after(datetime.now(UTC))
        """Of the first window."""
        self.sent = 0
        self.events: dict[Event, datetime] = {}

    def source(self, name: str, value: Any) -> PulsarSource:  # noqa: ARG002 - it has one
        return PulsarSource(self.topic, value=value)

    def options(self, source: Any) -> dict[str, str]:  # noqa: ARG002 - one broker has all
        return {"service_url": self.bench.server.service_url, "admin_url": self.bench.server.admin_url}

    def publish(self, seconds: float, pause: float = 0.01) -> None:
        """Send to both partitions for so long, and learn from Pulsar's client which message was published when."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.producers[self.sent % PARTITIONS].send(b"%d" % self.sent)
            self.sent += 1
            time.sleep(pause)
        rows = [(number, row) for number, shard in enumerate(self.shards) for row in self.bench.peer(shard)]
        assert len(rows) == self.sent
        self.events = {
            (value, number, ledger, entry): EPOCH + published * MILLISECOND
            for number, ((ledger, entry, _), value, _, _, published, _, _) in rows
        }

    def close(self) -> None:
        for producer in self.producers:
            producer.close()

    def complete(self) -> datetime:
        """The end of the newest window that is over."""
        return GRID.before(datetime.now(UTC) - 2 * LENGTH)

    def published_in(self, window: Window) -> Counter[Event]:
        return Counter(event for event, published in self.events.items() if window.start <= published < window.end)

    def landed(self, sink: str, window: Window) -> Counter[Event] | None:
        """None: the window is not in the table."""
        folder = parquet_table.ParquetTable(self.sink(sink).path).folder_of(window)
        if not folder.exists():
            return None
        names = ["value", "partition", "ledger", "entry"]
        tables = [pq.ParquetFile(file).read(names) for file in folder.glob("*.parquet")]
        return Counter(tuple(row[name] for name in names) for table in tables for row in table.to_pylist())

    def tables_hold_what_is_claimed(self) -> int:
        """Each window of each table has its messages once; each covered window is there, or its loss is reported."""
        exact = 0
        for reader in ("first", "second"):
            held = {*self.windows(reader)}
            for window in held:
                assert self.landed(reader, window) == self.published_in(window), (reader, window)
                exact += 1
            for item in self.journal.coverage(self.source("", None).key, reader, self.start, self.complete()).windows:
                if item.state == "covered" and item.window in held:
                    assert item.rows == self.published_in(item.window).total(), (reader, item)
        return exact


class Life:
    """What a user does, at random."""

    def __init__(self, world: RealWorld, dice: random.Random) -> None:
        self.world, self.dice = world, dice
        self.done: Counter[str] = Counter()

    def act(self) -> None:
        kinds = {self.read: 6, self.backfill: 3, self.die: 4, self.look: 2, self.lose: 2, self.go_on: 1}
        (act,) = self.dice.choices(list(kinds), list(kinds.values()))
        try:
            what = act()
        except StreamsError as error:
            what = f"{act.__name__}: {type(error).__name__}"
        self.done[what] += 1

    def read(self) -> str:
        overrides = self.dice.choice([{}, {}, {}, {"replan": True}, {"full_refresh": True}])
        self.world.read(self._window(), window_schedule="1s", **self._whose(), **overrides)
        return f"read {next(iter(overrides), '')}"

    def look(self) -> str:
        before = [self.world.windows(reader) for reader in ("first", "second")]
        self.world.read(self._window(), window_schedule="1s", **self._whose(), dry_run=True)
        assert before == [self.world.windows(reader) for reader in ("first", "second")]
        return "look"

    def backfill(self) -> str:
        first = self._window()
        span = Window(first.start, min(first.end + self.dice.randrange(5) * LENGTH, self.world.complete()))
        select = self.dice.choice(["missing", "failed", "all"])
        whose = self._whose()
        outcome = self.world.backfill(span, length=LENGTH, select=select, **whose)[1]
        if select == "all":
            assert {*GRID.cells(span.start, span.end)} <= {*self.world.windows(whose["reader"])}, outcome
        return f"backfill {select}"

    def die(self) -> str:
        death = self.dice.choice(sorted(DEATHS))
        window, whose = self._window(), self._whose()
        Users.die_in(death, lambda: Users.alone(lambda: self.world.read(window, window_schedule="1s", **whose)))
        return f"die {death}"

    def lose(self) -> str:
        reader = self._whose()["reader"]
        windows = self.world.windows(reader)
        if not windows or self.dice.random() < 0.2:
            shutil.rmtree(self.world.sink(reader).path, ignore_errors=True)
            return "lose the table"
        shutil.rmtree(parquet_table.ParquetTable(self.world.sink(reader).path).folder_of(self.dice.choice(windows)))
        return "lose a window"

    def go_on(self) -> str:
        self.world.publish(1.5)
        return "go on"

    def _window(self) -> Window:
        return self.dice.choice(list(GRID.cells(self.world.start, self.world.complete())))

    def _whose(self) -> dict[str, Any]:
        reader = self.dice.choice(["first", "second"])
        columns = ("value", "publish_time", "partition", "ledger", "entry")
        return {"reader": reader, "sink": reader, "columns": columns}


@pytest.mark.slow
def test_a_random_users_tables_hold_each_message_of_each_window_once(bench, tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        world = RealWorld(tmp_path, journal, bench)
        world.publish(6)
        time.sleep(max(0.0, (world.start + 4 * LENGTH - datetime.now(UTC)).total_seconds()))
        life, exact = Life(world, random.Random(SEED)), 0
        for number in range(ACTS):
            life.act()
            try:
                exact += world.tables_hold_what_is_claimed()
            except AssertionError as error:
                error.add_note(f"STREAMS_SEED={SEED}, act {number}: {life.done}")
                raise
        span = Window(world.start, world.complete())
        for reader in ("first", "second"):
            how = {"length": LENGTH, "reader": reader, "sink": reader}
            world.backfill(span, **how, columns=("value", "publish_time", "partition", "ledger", "entry"))
            assert world.windows(reader) == list(GRID.cells(span.start, span.end)), f"STREAMS_SEED={SEED}: {life.done}"
        exact += world.tables_hold_what_is_claimed()
        assert any(name.startswith("die") for name in life.done)
        assert exact > ACTS, "there were windows to compare"
        world.close()
