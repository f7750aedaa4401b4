"""Pravega: a recorder takes cuts on a clock, while writers and transactions fill a stream that is split and merged.

Each event lands in the window between the cuts of its edges: in none after the one in which it was acknowledged. Events
are JSON, and its fields are the table's columns.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from demo.lake import CONN_ID, Lake, lake
from demo.orders import COLUMNS, order
from demo.steps import (
    WINDOW,
    Written,
    airflow_home,
    load_dag,
    passed,
    read_windows,
    rows_by_window,
    run_threads,
    say,
    step,
    wait_until,
)

if TYPE_CHECKING:
    from airflow_provider_streams import PravegaSource
    from airflow_provider_streams.hooks.pravega import PravegaHook

STREAM = "demo/orders"
PART = timedelta(seconds=7)
"""How long each of two parts of the events is written; a silent window is between them."""
TICK = timedelta(seconds=1)
"""The recorder's clock."""
TRANSACTIONS = 15
"""How many in each part."""

Times = npt.NDArray[np.float64]
"""By an event's number: when its writer knew that it is stored, in seconds since 1970."""


def demo_pravega(folder: Path, events: int) -> None:
    """The whole story on Pravega."""
    from stream_servers.pravega import PravegaServer

    with step("a real Pravega server on loopback"):
        server = PravegaServer()
        server.start()
    try:
        with lake() as table:
            cluster = {"conn_type": "pravega", "host": "127.0.0.1", "port": server.port["controller"]}
            airflow_home(folder, {"pravega_demo": cluster, CONN_ID: table.connection})
            with step("a fresh Airflow"):
                dag = load_dag("pravega_demo")
            land_and_prove(dag, table, events)
    finally:
        server.stop()


def land_and_prove(dag: Any, table: Lake, events: int) -> None:
    """Write while a recorder runs, land window by window, and look at the table."""
    from airflow_provider_streams import Json, PravegaSource
    from airflow_provider_streams.hooks.pravega import PravegaHook

    source = PravegaSource(STREAM, value=Json(COLUMNS), conn_id="pravega_demo")
    hook = PravegaHook("pravega_demo")
    hook.create_stream(STREAM, make_scope=True)
    acknowledged = np.zeros(events)
    with recording(source):
        with step(f"{events:,} JSON events, some in transactions, while the stream is split and merged"):
            written = write(source, hook, acknowledged)
        receipts = read_windows(dag, source, written)
    hook.close()
    prove(table, written, acknowledged, [receipt["skew_seconds"][1] for receipt in receipts])


@contextmanager
def recording(source: PravegaSource) -> Iterator[None]:
    """The recorder that otherwise runs in Airflow's triggerer, on a loop of its own; a stopped one does no harm."""
    from airflow_provider_streams import RecordCutsTrigger
    from airflow_provider_streams.systems.source_json import source_to_json

    trigger = RecordCutsTrigger([source_to_json(source)], TICK.total_seconds(), "demo-recorder")
    loop = asyncio.new_event_loop()

    async def record() -> None:
        async for _ in trigger.run():
            pass

    task = loop.create_task(record())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def write(source: PravegaSource, hook: PravegaHook, acknowledged: Times) -> Written:
    """Write numbered events at a steady rate across window borders, with a silent window in the middle."""
    half = len(acknowledged) // 2
    start = next_window(datetime.now(UTC) + TICK)
    wait_until_recorded(source, start)
    write_part(hook, range(half), start, acknowledged, split)
    empty = passed(start) + 1
    resume = start + (empty + 1) * WINDOW
    say(f"   a pause over window {empty}")
    wait_until_recorded(source, resume)
    write_part(hook, range(half, len(acknowledged)), resume, acknowledged, merge)
    say(f"   open segments: {', '.join(open_segments(hook))}")
    return Written(len(acknowledged), start, passed(start) + 1, empty)


def wait_until_recorded(source: PravegaSource, moment: datetime) -> None:
    """Until the recorder has taken the cut of a time: what is written before that may lie before the cut."""
    from airflow_provider_streams.connections.journal import open_journal
    from stream_servers.waiting import wait_until as wait_until_true

    wait_until(moment)
    with open_journal() as journal:
        wait_until_true(lambda: journal.cut_at(source.key, moment), f"a cut of {moment}", every_seconds=0.05)


def next_window(moment: datetime) -> datetime:
    """The first full multiple of a window's length after a time: the recorder's clock ticks there."""
    seconds = WINDOW.total_seconds()
    return datetime.fromtimestamp((moment.timestamp() // seconds + 1) * seconds, UTC)


def write_part(
    hook: PravegaHook, numbers: range, start: datetime, acknowledged: Times, halfway: Callable[[PravegaHook], None]
) -> None:
    """Some of the events over `PART`: most by two plain writers, one in ten by transactions; scale in one of these."""
    borders = [numbers.start + len(numbers) * percent // 100 for percent in (0, 50, 90, 99, 100)]
    shares = [range(*borders[n : n + 2]) for n in range(4)]
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)
            raise

    works: list[Callable[[], None]] = [
        *(lambda share=share: append(hook, share, start, acknowledged) for share in shares[:2]),
        lambda: commit(hook, shares[2], start, acknowledged),
        lambda: commit_across(hook, shares[3], start + PART / 2, acknowledged, halfway),
    ]
    run_threads([threading.Thread(target=guarded, args=(work,)) for work in works], start, PART)
    if failures:
        sys.exit(f"a writer failed: {failures[0]}")


def append(hook: PravegaHook, numbers: range, start: datetime, acknowledged: Times) -> None:
    """One plain writer: some events at a time, when they are due."""
    from airflow_provider_streams.testing.pravega_writer import PravegaWriter

    with PravegaWriter(hook.client.endpoint, STREAM) as writer:
        for part in parts(numbers, 200):
            wait_until(start + PART * (part.start - numbers.start) / len(numbers))
            writer.write(map(event, part))
            acknowledged[part.start : part.stop] = datetime.now(UTC).timestamp()


def commit(hook: PravegaHook, numbers: range, start: datetime, acknowledged: Times) -> None:
    """One writer of transactions: their events are stored when they are committed, all or none."""
    from airflow_provider_streams.testing.pravega_writer import PravegaWriter

    with PravegaWriter(hook.client.endpoint, STREAM) as writer:
        for part in parts(numbers, len(numbers) // TRANSACTIONS + 1):
            wait_until(start + PART * (part.start - numbers.start) / len(numbers))
            writer.transaction(map(event, part))
            acknowledged[part.start : part.stop] = datetime.now(UTC).timestamp()


def commit_across(
    hook: PravegaHook, numbers: range, moment: datetime, acknowledged: Times, halfway: Callable[[PravegaHook], None]
) -> None:
    """One transaction that is open while the stream is scaled: Pravega gives its events an epoch of their own."""
    from airflow_provider_streams.testing.pravega_writer import PravegaWriter

    wait_until(moment)
    with PravegaWriter(hook.client.endpoint, STREAM) as writer:
        writer.transaction(map(event, numbers), before_commit=lambda: halfway(hook))
    acknowledged[numbers.start : numbers.stop] = datetime.now(UTC).timestamp()


def parts(numbers: range, size: int) -> Iterator[range]:
    """Consecutive pieces of at most so many numbers."""
    for first in range(numbers.start, numbers.stop, size):
        yield range(first, min(first + size, numbers.stop))


def event(number: int) -> tuple[str, bytes]:
    """A keyed event."""
    one = order(number)
    return one["customer"], json.dumps(one).encode()


def split(hook: PravegaHook) -> None:
    """Three segments instead of one."""
    from airflow_provider_streams.systems.pravega.operations import scaling

    before = open_segments(hook)
    hook.scale(STREAM, scaling.to_count(3))
    say(f"   split: {', '.join(before)} -> {', '.join(open_segments(hook))}")


def merge(hook: PravegaHook) -> None:
    """Merge the two segments with the lowest keys."""
    from airflow_provider_streams.systems.pravega.operations import scaling

    before = hook.describe(STREAM).segments
    lowest = sorted(before, key=lambda one: one.low)[:2]
    hook.scale(STREAM, scaling.merge([one.segment_id for one in lowest]))
    say(f"   merge: {len(before)} segments -> {', '.join(open_segments(hook))}")


def open_segments(hook: PravegaHook) -> list[str]:
    """Short names of the segments that are written to now."""
    return [segment.rpartition("/")[2] for segment in hook.tail(STREAM)]


def prove(table: Lake, written: Written, acknowledged: Times, skews: list[float]) -> None:
    """Every order exactly once, and none in a window that began after it was acknowledged.

    Raises:
        SystemExit: one is missing, doubled, changed, or in a wrong window.
    """
    say("\n== proof, by DuckDB from the catalog and the writers' acknowledgements")
    for number, rows in rows_by_window(table.read(written.events), written):
        known = np.sort(acknowledged[rows["number"].to_numpy()])
        start, end = written.window(number)
        shown = f"{_clock(known[0])} .. {_clock(known[-1])}" if len(known) else "-"
        segments = len(set(rows["_segment_id"].to_pylist()))
        say(
            f"   window {number}  {rows.num_rows:>8,} rows of {segments:>2} segments  acknowledged {shown}"
            f"  end {end:%H:%M:%S} {skews[number]:+.3f} s"
        )
        if len(known) and known[0] < start.timestamp():
            sys.exit(f"PROOF FAILED: a row of window {number} was acknowledged before it began")
    say(f"   PROVEN: {written.events:,} orders, each in exactly one window, none in one after its own")
    say("\n== a question to the table")
    table.show_sales(written.events)


def _clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S.%f}"
