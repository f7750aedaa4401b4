"""Changes merged into tables of ten million rows, spread and hot: our copy-on-write, and delta-rs' own merge.

Every round merges newer values of the same keys, so the tables keep their size. Spread keys are anywhere in the table,
hot ones in its first hundredth.
"""

from __future__ import annotations

import itertools
import resource
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from airflow_provider_streams.lake.changes.copy_on_write import RANGE_BYTES
from airflow_provider_streams.lake.changes.states.change_states import Rules
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.changes.source_order import SourceOrder
from tests.bench.report import Contender, race, show
from tests.unit.lake.changes.engines import Engine

ROWS, CHANGES, KEYS = 10_000_000, 1_000_000, 200_000
BYTES = 200
RULES = Rules(AutoCdc(keys=["id"]), ("id",), SourceOrder("written"))
_versions = itertools.count(1)


def changes(ids: np.ndarray, version: int) -> pa.Table:
    """Updates of rows of 200 B, in the order of the stream."""
    count = len(ids)
    place = pa.array([f"{version:04}{at:012}" for at in range(count)])
    pads = pa.array([f"{at:06}" + "x" * 130 for at in range(1000)])
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "amount": pa.array(np.arange(count) % 1000 / 4),
            "number": pa.array(np.arange(count) + version),
            "pad": pads.take(pa.array(np.arange(count) % 1000)),
            "_op": pa.repeat("u", count),
            "_position": place,
            "_log_position": place,
            "_source_ts": pa.array(np.full(count, version), pa.timestamp("us", "UTC")),
        }
    )


def ours(engine: Engine, ids: np.ndarray) -> Contender:
    def run() -> int:
        version = next(_versions)
        engine.apply(version, changes(ids, version), holes=())
        return len(ids)

    return run


def delta_rs(path: Path, ids: np.ndarray) -> Contender:
    """What users write themselves: the latest change of each key, and a merge by the place in the stream."""
    from deltalake import DeltaTable

    def run() -> int:
        rows = changes(ids, next(_versions))
        latest = rows.take(pa.array(_last(rows["id"].to_numpy()))).select(
            ["id", "amount", "number", "pad", "_position"]
        )
        merge = DeltaTable(path).merge(latest, "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all("s._position > t._position").when_not_matched_insert_all().execute()
        return len(ids)

    return run


def _last(ids: np.ndarray) -> np.ndarray:
    return len(ids) - 1 - np.unique(ids[::-1], return_index=True)[1]


def run(scale: float) -> None:
    """Print the figures, and the most memory that this process ever had."""
    rows, count, keys = (int(one * scale) for one in (ROWS, CHANGES, KEYS))
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        engines = {
            kind: _filled(Engine(kind, _made(Path(folder) / kind), RULES, range_bytes=RANGE_BYTES), rows)
            for kind in ("iceberg", "delta")
        }
        plain = Path(folder) / "plain"
        _fill_plain(plain, rows)
        filled = _peak_mb()
        for name, ids in (
            ("spread", random.choice(random.integers(0, rows, keys), count)),
            ("hot", random.choice(random.integers(0, rows // 100, keys), count)),
        ):
            contenders: dict[str, Contender] = {f"ours, {kind}": ours(engine, ids) for kind, engine in engines.items()}
            contenders["delta-rs merge"] = delta_rs(plain, ids)
            title = f"{count:,} changes of {keys:,} {name} keys into {rows:,} rows"
            show(title, race(contenders), against={"of delta-rs": "delta-rs merge"}, event_bytes=BYTES)
        print(f"  most memory: {_peak_mb():,.0f} MB; while the tables were made: {filled:,.0f} MB")


def _filled(engine: Engine, rows: int) -> Engine:
    for start in range(0, rows, 1_000_000):
        engine.apply(0, changes(np.arange(start, min(start + 1_000_000, rows)), 0), holes=())
    return engine


def _fill_plain(path: Path, rows: int) -> None:
    from deltalake import write_deltalake

    for start in range(0, rows, 1_000_000):
        part = changes(np.arange(start, min(start + 1_000_000, rows)), 0)
        write_deltalake(path, part.select(["id", "amount", "number", "pad", "_position"]), mode="append")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
