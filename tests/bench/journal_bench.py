"""The journal: what its calls cost with many windows, against what they cost with few."""

from __future__ import annotations

import itertools
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

from airflow_provider_streams.journal.landings import NewLanding
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem
from airflow_provider_streams.windows.after_landing.covered_end import covered_end

WINDOWS = (1_000, 100_000)
ROUNDS = 5
SOURCE, READER = FakeSource("numbers"), "reader"
MINUTE = timedelta(minutes=1)
_TASK = TaskInstanceKey("d", "r", "t", 1)
_LANDING = NewLanding({"target": "file:///lake", "sink": None, "columns": None, "transform": None}, "1m", "publish")


def run(scale: float) -> None:
    """Time the calls at both sizes, all in this process."""
    few, many = (max(round(windows * scale), 10) for windows in WINDOWS)
    with tempfile.TemporaryDirectory() as folder:
        costs = {size: dict(_costs(_filled(Path(folder), size), size)) for size in (few, many)}
    print(f"\njournal calls, milliseconds of this process (median of {ROUNDS}), SQLite")
    print(f"  {'':<34}{f'{few:,} windows':>18}{f'{many:,} windows':>18}{'ratio':>8}")
    for name, small in costs[few].items():
        large = costs[many][name]
        print(f"  {name:<34}{small * 1e3:>18.2f}{large * 1e3:>18.2f}{large / max(small, 1e-6):>8.1f}", flush=True)


def _filled(folder: Path, windows: int) -> Journal:
    """A journal of so many covered windows: the first and the last by its own calls, the others copies."""
    path = folder / f"{windows}.db"
    journal = Journal.open(f"sqlite:///{path}")
    kept = journal.land_as(SOURCE.key, READER, _LANDING, after=None)
    for number in (0, windows - 1):
        plan = journal.pin(SOURCE.key, _plan(number))
        started = journal.start_run(SOURCE.key, plan, _TASK, landing_id=kept.id)
        journal.finish_run(started.run, Landed(Receipt(plan.fingerprint, (), 1.0, "complete")))
        journal.announce([started.run])
    with sqlite3.connect(path) as database:
        for table in ("streams_pins", "streams_runs"):
            _copy(database, table, windows)
    return journal


def _copy(database: sqlite3.Connection, table: str, windows: int) -> None:
    columns = [column[1] for column in database.execute(f"pragma table_info({table})")]
    first = dict(zip(columns, database.execute(f"select * from {table} order by id limit 1").fetchone(), strict=True))  # noqa: S608 - ours
    minute = MINUTE // timedelta(microseconds=1)

    def copies() -> Iterator[list[object]]:
        for number in range(1, windows - 1):
            moved = {name: first[name] + number * minute for name in ("window_start", "window_end")}
            pin = {"pin_id": number + 10} if "pin_id" in first else {}
            yield list({**first, **moved, **pin, "id": number + 10}.values())

    database.executemany(f"insert into {table} values ({','.join('?' * len(columns))})", copies())  # noqa: S608 - ours


def _costs(journal: Journal, windows: int) -> Iterator[tuple[str, float]]:
    all_of_it, key = (EPOCH, EPOCH + windows * MINUTE), SOURCE.key
    new = (_plan(number) for number in itertools.count(windows))
    calls: dict[str, Callable[[], object]] = {
        "last_covered": lambda: journal.last_covered(key, READER),
        "coverage of one window": lambda: journal.coverage(key, READER, EPOCH, EPOCH + MINUTE),
        "coverage of all": lambda: journal.coverage(key, READER, *all_of_it),
        "stretches of all": lambda: journal.stretches(key, READER, *all_of_it),
        "covered_end": lambda: covered_end(journal, key, READER, None),
        "chain around a window": lambda: journal.chain(key, READER, _window(windows)),
        "unannounced": lambda: journal.unannounced(key, READER),
        "pin": lambda: journal.pin(key, next(new)),
        "start_run": lambda: journal.start_run(key, journal.pin(key, next(new)), _TASK),
    }
    for name, call in calls.items():
        yield name, statistics.median(_seconds(call) for _ in range(ROUNDS))


def _seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def _plan(number: int) -> Plan:
    system = FakeSystem.from_options({"events": str(60 * (number + 2)), "shards": "2"})
    return system.plan(PlanRequest(SOURCE, _window(number), READER, slack=timedelta(0)))


def _window(number: int) -> Window:
    return Window(EPOCH + number * MINUTE, EPOCH + (number + 1) * MINUTE)
