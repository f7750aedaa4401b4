"""Landings in tables of many windows against landings in small ones, and what each format reads meanwhile."""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO
from pathlib import Path

import pyarrow as pa

from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.writer import IcebergWriter
from airflow_provider_streams.lake.registry import table_state
from airflow_provider_streams.model.sinks.sink import Sink
from tests.integration.lake.landing import TERMS, hour, land, rows_of

WINDOWS = (20, 2_000)
ROWS = (3, 200_000)
"""Of the measured windows: as good as none, and 20 MB, which the Airflow task lands itself."""
ROUNDS = 9
MOST = 1.3
_EXPIRED_EVERY = 100
"""Landings between two runs of `ExpireOperator`, where the format has snapshots: about four days of hours."""
_TEXT = "x" * 80


def run(scale: float) -> None:
    """Fill a small table and a large one of each format, and land more windows in both in turn."""
    few, many = (max(round(windows * scale), 10) for windows in WINDOWS)
    print(f"\nlandings, and the looks before them, at {few:,} and {many:,} windows (median of {ROUNDS}, in turn)")
    print(f"  {'':<42}{'cpu ms, few':>13}{'cpu ms, many':>14}{'cpu':>7}{'wall':>7}")
    for name, (make, expires) in _FORMATS.items():
        with _warehouse() as folder:
            sinks = {size: make(folder, size) for size in (few, many)}
            for size, sink in sinks.items():
                _fill(sink, size, expires=expires)
            for rows in ROWS:
                costs = _costs({size: partial(_land, sink, _rows(rows)) for size, sink in sinks.items()})
                _show(f"{name}, {rows:,} rows", costs[few], costs[many])
            looks = {size: partial(table_state, sink, hour(size)) for size, sink in sinks.items()}
            costs = _costs(looks)
            _show(f"{name}, look before it", costs[few], costs[many])


def _show(name: str, small: tuple[float, float], large: tuple[float, float]) -> None:
    cpu, wall = (large[at] / small[at] for at in range(2))
    said = "" if cpu <= MOST else f"  more than {MOST}"
    print(f"  {name:<42}{small[0] * 1e3:>13.1f}{large[0] * 1e3:>14.1f}{cpu:>7.2f}{wall:>7.2f}{said}", flush=True)


def _parquet(folder: Path, size: int) -> Sink:
    return ParquetSink(str(folder / f"parquet{size}"))


def _delta(folder: Path, size: int) -> Sink:
    return DeltaSink(str(folder / f"delta{size}"))


def _iceberg(kind: str, _: Path, size: int) -> Sink:
    return IcebergSink(f"bench.{kind}{size}", conn_id="bench")


_FORMATS: dict[str, tuple[Callable[[Path, int], Sink], bool]] = {
    "Parquet": (_parquet, False),
    "Delta, log of 30 days": (_delta, False),
    "Iceberg, snapshots expire": (partial(_iceberg, "expired"), True),
    "Iceberg, all snapshots stay": (partial(_iceberg, "kept"), False),
}


@contextmanager
def _warehouse() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(StringIO()):
        catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}
        with given("bench", catalog):
            yield Path(folder)


def _fill(sink: Sink, windows: int, *, expires: bool) -> None:
    for number in range(windows):
        land(sink, hour(number), rows_of(number, 1))
        if expires and isinstance(sink, IcebergSink) and number % _EXPIRED_EVERY == 0:
            IcebergWriter.expire(sink, TERMS.mark, datetime.now(UTC))
        if isinstance(sink, DeltaSink):
            _set_back(Path(sink.path, "_delta_log"), timedelta(hours=windows - number))


def _set_back(log: Path, age: timedelta) -> None:
    """Make the newest commit look as old as its window: the log is cleaned by the age of its files."""
    written = (datetime.now(UTC) - age).timestamp()
    os.utime(max(log.glob("*.json")), (written, written))


def _rows(count: int) -> pa.Table:
    rows = rows_of(0, count)
    texts = pa.array([f"{number:08}{_TEXT}" for number in range(count)])
    return rows.set_column(rows.schema.get_field_index("value"), "value", texts)


def _land(sink: Sink, rows: pa.Table) -> None:
    land(sink, hour(next(_new_windows)), rows)


def _costs(acts: dict[int, Callable[[], object]]) -> dict[int, tuple[float, float]]:
    """Median seconds of the processor and of the clock, by the size of the table."""
    found: dict[int, list[tuple[float, float]]] = {size: [] for size in acts}
    for _ in range(ROUNDS + 1):
        for size, act in acts.items():
            wall, cpu = time.perf_counter(), time.process_time()
            act()
            found[size].append((time.process_time() - cpu, time.perf_counter() - wall))
    # the first round warms caches and imports
    return {
        size: (statistics.median(cpu for cpu, _ in costs[1:]), statistics.median(wall for _, wall in costs[1:]))
        for size, costs in found.items()
    }


_new_windows = itertools.count(100_000)
