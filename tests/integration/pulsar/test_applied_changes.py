"""Windows of database changes on a real broker, applied to real tables: each table is one pass over its windows."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_streams import AutoCdc, Debezium, DeltaSink, IcebergSink, PublishTime, PulsarSource, Window
from airflow_provider_streams.errors import LandingMismatch, SinkError
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.table import IcebergTable
from airflow_provider_streams.lake.registry import table_state
from airflow_provider_streams.model.sinks.landing import TableState
from airflow_provider_streams.model.window.window import utc_text
from airflow_provider_streams.testing.landing import cover_without_spark
from airflow_provider_streams.windows.claim.table_coverage import compare
from tests.unit.formats.change_data.debezium_messages import SOURCE, change, key_of, raw

pytestmark = pytest.mark.pulsar

SLACK = PublishTime(timedelta(milliseconds=50))
READER = "reader"


@dataclass
class Database:
    """One table of a database, whose connector may send changes again."""

    chance: random.Random
    rows: dict[int, str] = field(default_factory=dict)
    sent: list[tuple[bytes, bytes]] = field(default_factory=list)
    lsn: int = 1000

    def messages(self, count: int) -> Iterator[tuple[bytes, bytes]]:
        """The key and the value of changes, and some earlier ones once more."""
        for _ in range(count):
            if self.sent and self.chance.random() < 0.1:  # a connector that starts again
                yield from self.sent[-self.chance.randrange(1, 8) :]
            yield from self.changed()

    def changed(self) -> Iterator[tuple[bytes, bytes]]:
        key = self.chance.randrange(12)
        is_there = key in self.rows
        self.lsn += 8
        source = {**SOURCE, "lsn": self.lsn, "ts_us": 1_762_900_000_000_000 + self.lsn}
        if is_there and self.chance.random() < 0.3:
            del self.rows[key]
            message = change("d", None, {"id": key, "name": None}, source=source)
        else:
            self.rows[key] = f"value {self.lsn}"
            message = change("u" if is_there else "c", {"id": key, "name": self.rows[key]}, source=source)
        one = (key_of(id=key), raw(message) or b"")
        self.sent.append(one)
        yield one
        if message["op"] == "d":
            yield key_of(id=key), b""


def chance() -> random.Random:
    return random.Random(7)  # noqa: S311 - reproducible


@dataclass
class Task:
    """A task that lands windows of a topic in a table."""

    bench: Any
    folder: Path
    sink: Any
    topic: str = ""

    def __post_init__(self) -> None:
        self.topic = self.bench.topic("changes")
        self.journal = Journal(f"sqlite:///{self.folder / 'journal.db'}")
        self.options = {"service_url": self.bench.server.service_url, "admin_url": self.bench.server.admin_url}

    def write(self, batches: list[list[tuple[bytes, bytes]]]) -> list[Window]:
        """Messages of some windows, one after the other."""
        edges = [datetime.now(UTC)]
        with_keys = self.bench.client.create_producer(self.topic)
        for batch in batches:
            for key, value in batch:
                with_keys.send_async(value, lambda *_: None, partition_key=key.decode())
            with_keys.flush()
            time.sleep(0.12)
            edges.append(datetime.now(UTC))
            time.sleep(0.06)
        with_keys.close()
        time.sleep(0.1)
        return [Window(start, end) for start, end in pairwise(edges)]

    def land(self, window: Window, value: Any = None, **others: Any) -> Any:
        source = PulsarSource(self.topic, value=value or Debezium())
        how = {"sink": self.sink, "basis": SLACK, **others}
        return cover_without_spark(self.journal, source, window, READER, self.options, **how)

    def table(self) -> pa.Table:
        if isinstance(self.sink, IcebergSink):
            return IcebergTable(self.sink).loaded().scan().to_arrow()
        from deltalake import DeltaTable

        return pa.table(DeltaTable(self.sink.path).to_pyarrow_table())

    def rows(self) -> dict[int, str]:
        found = self.table()
        held = dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))
        assert len(held) == len(found)
        return held


@pytest.fixture(params=["iceberg", "delta"])
def task(request: pytest.FixtureRequest, bench: Any, tmp_path: Path) -> Iterator[Task]:
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    sinks = {
        "iceberg": IcebergSink("lake.rows", conn_id="changes", apply=AutoCdc()),
        "delta": DeltaSink(str(tmp_path / "table"), apply=AutoCdc()),
    }
    with ExitStack() as stack:
        stack.enter_context(given("changes", options))
        made = Task(bench, tmp_path, sinks[request.param])
        stack.enter_context(made.journal)
        yield made


def test_windows_in_random_order_and_again_give_the_database_s_table(task: Task) -> None:
    database = Database(chance())
    batches = [list(database.messages(40)) for _ in range(5)]
    windows = task.write(batches)
    order = [*windows, *database.chance.sample(windows, 2)]
    database.chance.shuffle(order)
    for window in order:
        landed = task.land(window)
        assert landed.receipt.verdict == "complete"
    assert task.rows() == database.rows
    assert task.table().column_names[:2] == ["id", "name"]
    assert "_topic" not in task.table().column_names
    state = table_state(task.sink)
    assert isinstance(state, TableState)
    assert state.windows == set(windows)
    assert sum(len(batch) for batch in batches) > 220, "some changes were sent again"


@pytest.mark.slow_except("delta")
def test_an_empty_first_window_and_a_later_one_with_new_columns(task: Task) -> None:
    task.sink = replace(task.sink, widen=True)
    old = (key_of(id=1), raw(change("c", {"id": 1, "name": "a"})) or b"")
    new = (key_of(id=2), raw(change("c", {"id": 2, "name": "b", "rank": 7})) or b"")
    windows = task.write([[], [old], [new]])
    for window in windows:
        task.land(window)
    assert task.rows() == {1: "a", 2: "b"}
    assert sorted(filter(None, task.table()["rank"].to_pylist())) == [7]


@pytest.mark.slow_except("iceberg")
def test_empty_windows_of_declared_columns_do_not_need_the_key_and_others_find_it(task: Task) -> None:
    declared = Debezium("rank long")
    (silent,) = task.write([[]])
    task.land(silent, declared)  # the whole topic is empty
    message = (key_of(id=1), raw(change("c", {"id": 1, "name": "a", "rank": 7})) or b"")
    before, with_change = task.write([[], [message]])
    for window in (before, with_change):
        task.land(window, declared)
    assert task.rows() == {1: "a"}


@pytest.mark.slow_except("iceberg")
def test_coverage_says_which_changes_the_table_reflects(task: Task) -> None:
    windows = task.write([list(Database(chance()).messages(3)) for _ in range(3)])
    task.land(windows[0])
    task.land(windows[2])
    key = PulsarSource(task.topic).key
    coverage = task.journal.coverage(key, READER, windows[0].start, windows[2].end)
    _, table = compare(task.journal, key, READER, coverage)
    assert table is not None
    edges = [utc_text(moment) for moment in (windows[0].start, windows[2].end, windows[0].end, windows[2].start)]
    assert table.changes == "it reflects all changes from {} to {}; holes: {} to {}".format(*edges)
    task.land(windows[1])
    _, table = compare(task.journal, key, READER, task.journal.coverage(key, READER, windows[0].start, windows[2].end))
    assert table is not None
    assert "holes" not in table.changes


def test_a_table_without_a_primary_key_needs_keys(task: Task) -> None:
    keyless = (b"default", raw(change("c", {"id": 1, "name": "a"})) or b"")
    (window,) = task.write([[keyless]])
    with pytest.raises(SinkError, match=r"apply=AutoCdc\(keys=\['id'\]\)"):
        task.land(window)
    task.sink = replace(task.sink, apply=AutoCdc(keys=["id"]))
    task.land(window)
    assert task.rows() == {1: "a"}


@pytest.mark.slow_except("delta")
def test_other_options_need_a_full_refresh(task: Task) -> None:
    (window,) = task.write([list(Database(chance()).messages(5))])
    task.land(window)
    task.sink = replace(task.sink, apply=AutoCdc(ignore_null_updates=True))
    with pytest.raises(LandingMismatch, match=r"apply AutoCdc\(ignore_null_updates=True.*full_refresh=True"):
        task.land(window)
