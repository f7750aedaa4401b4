"""What the database sums up of a reader's windows is what `history` says of each."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from sqlalchemy import insert

from airflow_provider_streams.journal import coverage_rollup, row_ids
from airflow_provider_streams.journal.coverage_rollup import SEVERAL, RollupQuery
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.landings import NewLanding, insertion
from airflow_provider_streams.journal.runs import window_states
from airflow_provider_streams.journal.tables import pins, runs
from airflow_provider_streams.model.window.coverage import Coverage, WindowState
from airflow_provider_streams.model.window.window import EPOCH, Window

MINUTE = timedelta(minutes=1)
T10 = datetime(2026, 11, 20, 10, tzinfo=UTC)
FAR = datetime(2100, 1, 1, tzinfo=UTC)
STATES = ("covered", "running", "failed", "lost")


@pytest.fixture
def database(url):
    made = Database(url)
    yield made
    made.close()


def some_windows(chance: random.Random) -> list[Window]:
    """Of two lengths, with gaps and overlaps."""
    found = [Window(T10 + n * MINUTE, T10 + (n + 1) * MINUTE) for n in range(40) if chance.random() < 0.8]
    for _ in range(chance.randrange(4)):
        start = T10 + chance.randrange(35) * MINUTE
        found.append(Window(start, start + chance.randrange(2, 9) * MINUTE))
    return sorted(set(found))


def write_some(database: Database, chance: random.Random) -> int:
    """Pins of several generations, some of them void; runs of pins, of none, and under several landings."""
    reader = row_ids.ensure_reader(database, "fake:f:n", f"r{chance.random()}")
    with database.writing() as connection:
        kept = []
        for generation in range(1, chance.randrange(1, 4)):
            row = connection.execute(insertion(reader, NewLanding({"target": "t"}), generation))
            kept.append(row.inserted_primary_key[0])
        for window in some_windows(chance):
            edges = {"reader_id": reader, "window_start": window.start, "window_end": window.end}
            numbers, void = [None], T10 if chance.random() < 0.1 else None
            for generation in range(1, chance.choice((1, 2, 2, 3))):
                values = {"generation": generation, "fingerprint": f"{chance.getrandbits(64):032x}", "plan": "{}"}
                done = connection.execute(insert(pins).values(**edges, **values, pinned_at=T10, void_at=void))
                numbers.append(done.inserted_primary_key[0])
            for number in range(0 if void else chance.choice((0, 1, 1, 2, 4))):
                state = chance.choice(STATES)
                values = {
                    "pin_id": chance.choice(numbers),
                    "landing_id": chance.choice([*kept, kept[-1] if kept else None, None]),
                    "state": state,
                    "dag_id": chance.choice(("mine", "mine", "theirs")),
                    "run_id": "run",
                    "task_id": "read",
                    "map_index": -1,
                    "try_number": number + 1,
                    "started_at": T10,
                    "rows": chance.randrange(100),
                    "bytes": chance.randrange(1000),
                    "verdict": chance.choice(("complete", "loss recorded")) if state == "covered" else None,
                    "error_type": chance.choice(("StartTrimmed", "ReadStalled"))
                    if state in ("failed", "lost")
                    else None,
                    "late_rows": chance.choice((None, 0, 7)) if state == "covered" else None,
                    "quarantined": chance.choice((0, 0, 0, 5)) if state == "covered" else 0,
                    "dropped": chance.choice((0, 0, 3)) if state == "covered" else 0,
                }
                connection.execute(insert(runs).values(**edges, **values))
    return reader


def told(item) -> str:
    return (
        item.cause.partition(":")[0]
        if item.state in ("failed", "lost")
        else ""
        if item.state == "running"
        else item.cause
    )


def one_by_one(connection, reader: int, look: RollupQuery) -> dict[tuple[int, str, bool], tuple[object, ...]]:
    grain = timedelta(microseconds=look.grain_us)
    groups = defaultdict(list)
    for item in window_states.window_states(connection, reader, look.span):
        window = item.window
        inside = look.span.start <= window.start and window.end <= look.span.end
        mine = look.dag_ids is None or item.run is None or item.run.dag_id in look.dag_ids
        if mine and (inside or not look.whole) and (item.state != "missing" or window.end <= look.now):
            groups[(window.start - EPOCH) // grain, item.state, window.length > grain].append(item)
    return {
        key: (
            min(item.window.start for item in items),
            max(item.window.end for item in items),
            len(items),
            sum(item.rows for item in items),
            sum(item.bytes for item in items),
            sum(item.late_rows or 0 for item in items),
            sum(bool(item.late_rows) for item in items),
            sum(item.quarantined for item in items),
            sum(item.dropped for item in items),
            sum(bool(item.quarantined or item.dropped) for item in items),
            max(item.attempts for item in items),
            sum(bool(item.fingerprint) for item in items) if key[1] == "missing" else 0,
            told(items[0]) if len({told(item) for item in items}) == 1 else SEVERAL,
        )
        for key, items in groups.items()
    }


def summed_up(connection, reader: int, look: RollupQuery) -> dict[tuple[int, str, bool], tuple[object, ...]]:
    grain = timedelta(microseconds=look.grain_us)
    return {
        ((one.window.start - EPOCH) // grain, one.state, _is_long(one, grain)): (
            one.window.start,
            one.window.end,
            one.windows,
            one.rows,
            one.bytes,
            one.late_rows,
            one.late,
            one.quarantined,
            one.dropped,
            one.undecodable,
            one.attempts,
            one.planned,
            one.cause,
        )
        for one in coverage_rollup.pieces(connection, reader, look)
    }


def _is_long(one, grain) -> bool:
    return timedelta(seconds=one.seconds) > one.windows * grain


@pytest.mark.slow_except("sqlite")
def test_pieces_are_what_history_says_of_each_window(database):
    for seed, minutes in product(range(12), (1, 5, 600)):
        chance = random.Random(f"{seed} {minutes}")  # noqa: S311 - the same each time
        reader = write_some(database, chance)
        start = T10 + chance.randrange(30) * MINUTE
        look = RollupQuery(
            Window(start, start + chance.randrange(1, 40) * MINUTE),
            minutes * 60_000_000,
            chance.choice((FAR, T10 + 20 * MINUTE)),
            chance.choice((None, {"mine"})),
            whole=chance.random() < 0.5,
        )
        with database.reading() as connection:
            assert summed_up(connection, reader, look) == one_by_one(connection, reader, look), (seed, look)


def test_gaps_are_the_time_of_no_known_window(database):
    span = Window(T10 - 5 * MINUTE, T10 + 60 * MINUTE)
    for seed in range(12):
        reader = write_some(database, random.Random(seed))  # noqa: S311 - the same each time
        with database.reading() as connection:
            found = list(coverage_rollup.gaps(connection, reader, span))
            known = list(window_states.window_states(connection, reader, span))
            counted = coverage_rollup.count(connection, reader, span)
        windows = {item.window for item in known}
        covered = [WindowState(window, "covered") for window in windows]
        assert tuple(found) == Coverage.of(covered, span.start, span.end).gaps, seed
        assert counted >= len(windows), seed


def test_of_a_reader_without_windows_all_time_is_a_gap(database):
    reader = row_ids.ensure_reader(database, "fake:f:n", "r")
    span = Window(T10, T10 + MINUTE)
    with database.reading() as connection:
        assert list(coverage_rollup.gaps(connection, reader, span)) == [span]
        assert list(coverage_rollup.pieces(connection, reader, RollupQuery(span, 1, FAR))) == []
