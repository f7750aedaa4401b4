"""Windows through each engine into real tables in a folder: what a plain fold gives, whatever the order."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from airflow_provider_streams.errors import SinkError, TableOwnedByOther
from airflow_provider_streams.lake.changes.states.change_states import Rules
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.changes.source_order import SourceOrder
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from tests.unit.lake.changes import test_history
from tests.unit.lake.changes.engines import COMMITS, ENGINES, Engine, hour
from tests.unit.lake.changes.histories import COLUMNS, Database, Event, Schedule, fold, schedule
from tests.unit.lake.changes.tables import WRITTEN, change_rows

HISTORY = Rules(AutoCdc(keys=["h", "id"], stored_as_scd_type=2), ("h", "id"), SourceOrder("written"))
AT_ONCE = 8


def windows_of(plans: dict[int, Schedule]) -> list[tuple[int, pa.Table]]:
    """The windows that all histories apply at the same step, and their number."""
    steps = max(len(plan.order) for plan in plans.values())
    return [
        (step, change_rows([(seed, event) for seed, plan in plans.items() if step < len(plan.order)
                            for event in plan.windows[plan.order[step]]]))
        for step in range(steps)
    ]  # fmt: skip


def plans_of(seeds: range) -> dict[int, Schedule]:
    return {
        seed: schedule(
            [one for one in Database(seed, copies_cross_snapshots=seed % 2 == 0).events if one.op != "t"], seed
        )
        for seed in seeds
    }


def latest(rows: pa.Table) -> dict[int, dict[int, Any]]:
    found: dict[int, dict[int, Any]] = {}
    for row in rows.to_pylist():
        held = found.setdefault(row["h"], {})
        assert row["id"] not in held
        held[row["id"]] = {name: row[name] for name in COLUMNS}
    return found


@pytest.mark.parametrize("kind", ENGINES)
def test_latest_state_of_many_histories(kind: str, tmp_path: Path) -> None:
    plans = plans_of(range(AT_ONCE))
    engine = Engine(kind, tmp_path, WRITTEN, range_bytes=1000)
    for step, window in windows_of(plans):
        engine.apply(step, window)
    found = latest(engine.rows())
    for seed, plan in plans.items():
        assert found.get(seed, {}) == fold(plan.covered), seed
    assert len(engine.data_files()) > 1


@pytest.mark.parametrize("kind", ENGINES)
def test_history_of_many_histories(kind: str, tmp_path: Path) -> None:
    plans = plans_of(range(AT_ONCE))
    engine = Engine(kind, tmp_path, HISTORY)
    for step, window in windows_of(plans):
        engine.apply(step, window)
    found = test_history.plain_times(test_history.versions(engine.rows()))
    wanted = [one for seed, plan in plans.items() for one in test_history.fold(seed, plan.covered, COLUMNS)]
    assert found == sorted(wanted, key=repr)


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("seed", range(2))
def test_truncates_and_markers_that_go(kind: str, seed: int, tmp_path: Path) -> None:
    events = Database(seed).events
    half = len(events) // 2
    engine = Engine(kind, tmp_path, WRITTEN)
    later, earlier = (change_rows([(0, event) for event in part]) for part in (events[half:], events[:half]))
    engine.apply(1, later, holes=[f"{0:08x}"])
    assert latest(engine.rows()).get(0, {}) == fold(events[half:])
    engine.apply(0, earlier, holes=[])
    assert latest(engine.rows()).get(0, {}) == fold(events)
    assert engine.marker_count() == 0


@pytest.mark.parametrize("kind", ENGINES)
def test_a_task_that_is_interrupted_in_its_commit_leaves_the_files_that_the_table_names(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(kind, tmp_path, Rules(AutoCdc(keys=["id"]), ("id",)))
    engine.apply(0, rows_of(range(10), "0"))
    module, owner, name = COMMITS[kind]
    holder = getattr(importlib.import_module(module), owner)
    commit = getattr(holder, name)

    def interrupted(*arguments: Any, **named: Any) -> None:
        commit(*arguments, **named)
        raise KeyboardInterrupt  # as a time limit of a task, this is no Exception

    monkeypatch.setattr(holder, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.apply(1, rows_of(range(5, 15), "1"))
    assert hour(1) in engine.landed()
    assert sorted(engine.rows()["id"].to_pylist()) == list(range(15))


@pytest.mark.parametrize("kind", ENGINES)
def test_a_window_rewrites_only_files_whose_keys_it_has(kind: str, tmp_path: Path) -> None:
    rules = Rules(AutoCdc(keys=["id"], apply_as_deletes="v is null"), ("id",))
    engine = Engine(kind, tmp_path, rules, range_bytes=20_000)
    engine.apply(0, rows_of(range(2000), "0"))
    before = engine.data_files()
    assert len(before) > 4
    engine.apply(1, rows_of([7, 8], "1"))
    assert len(before & engine.data_files()) == len(before) - 1
    again = engine.data_files()
    engine.apply(1, rows_of([7, 8], "1"))
    assert engine.data_files() == again, "a window that changes nothing writes nothing"
    engine.apply(2, rows_of([3000], "2"), rows_of([-5], "2"))
    assert sorted(engine.rows()["id"].to_pylist()) == [-5, *range(2000), 3000]
    values = dict(zip(*(engine.rows()[name].to_pylist() for name in ("id", "v")), strict=True))
    assert (values[7], values[9]) == ("1", "0")


def rows_of(ids: Any, value: str) -> pa.Table:
    ids = list(ids)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array([value] * len(ids), pa.string()),
            "_position": [f"{value}{at:08}" for at in range(len(ids))],
        }
    )


@pytest.mark.parametrize("kind", ENGINES)
def test_every_type_of_key_finds_its_file(kind: str, tmp_path: Path) -> None:
    from datetime import UTC, date, datetime, timedelta
    from decimal import Decimal

    made: dict[str, list[Any]] = {
        "long": list(range(-300, 300)),
        "text": [f"customer-with-a-long-prefix-{at * 7919 % 600:05}-\u00e9" for at in range(600)],
        "day": [date(2000, 1, 1) + timedelta(days=at) for at in range(600)],
        "at": [datetime(1960, 1, 1, tzinfo=UTC) + timedelta(hours=at * 997) for at in range(600)],
        "amount": [Decimal(at - 300) / 4 for at in range(600)],
        "raw": [at.to_bytes(4, "big") for at in range(600)],
    }
    for name, keys in made.items():
        engine = Engine(kind, tmp_path / name, Rules(AutoCdc(keys=["k"]), ("k",)), range_bytes=6000)
        engine.folder.mkdir()
        for number in range(2):
            window = pa.table(
                {"k": keys, "v": [number] * len(keys), "_position": [f"{number}{at:06}" for at in range(len(keys))]}
            )
            engine.apply(number, window)
            before = engine.data_files()
        engine.apply(2, window.slice(10, 1))
        assert engine.data_files() == before, name
        assert len(before) > 2
        rows = engine.rows()
        assert sorted(rows["k"].to_pylist()) == sorted(keys), name
        assert set(rows["v"].to_pylist()) == {1}


@pytest.mark.parametrize("kind", ENGINES)
def test_a_window_without_changes_leaves_its_mark_alone(kind: str, tmp_path: Path) -> None:
    engine = Engine(kind, tmp_path, Rules(AutoCdc(keys=["id"]), ("id",)))
    for number, ids in enumerate([[], [1], []]):
        engine.apply(number, rows_of(ids, "1"))
    assert engine.landed() == {hour(0), hour(1), hour(2)}
    assert engine.rows()["id"].to_pylist() == [1]


@pytest.mark.parametrize("kind", ENGINES)
def test_columns_come_only_if_the_sink_may_widen(kind: str, tmp_path: Path) -> None:
    rules = Rules(AutoCdc(keys=["id"]), ("id",))
    narrow = Engine(kind, tmp_path, rules)
    first = pa.table({"id": [1, 2], "_position": ["0", "1"]})
    second = pa.table({"id": [1], "more": ["x"], "_position": ["2"]})
    narrow.apply(0, first)
    with pytest.raises(SinkError, match="widen=True"):
        narrow.apply(1, second)
    wide = Engine(kind, tmp_path, rules, widen=True)
    wide.apply(1, second)
    wide.apply(2, pa.table({"id": [3], "_position": ["3"]}))
    found = sorted(zip(*(wide.rows()[name].to_pylist() for name in ("id", "more")), strict=True))
    assert found == [(1, "x"), (2, None), (3, None)]
    with pytest.raises(SinkError, match="id is"):
        wide.apply(3, pa.table({"id": ["1"], "more": ["x"], "_position": ["4"]}))


@pytest.mark.parametrize("kind", ENGINES)
def test_other_owners_rules_lives_and_unusable_changes_are_refused(kind: str, tmp_path: Path) -> None:
    rules = Rules(AutoCdc(keys=["id"]), ("id",))
    engine = Engine(kind, tmp_path, rules)
    good = pa.table({"id": [1], "v": [1], "_position": ["0"], "_source_life": ["a"]})
    engine.apply(0, good)
    with pytest.raises(SinkError, match="'a', 'b'"):
        engine.apply(1, good.set_column(3, "_source_life", pa.array(["b"])))
    of_table = good.append_column("_table", pa.array(["public.a"]))
    engine.apply(0, of_table)
    with pytest.raises(SinkError, match=r"tables of the database \('public\.a', 'public\.b'\)"):
        engine.apply(1, of_table.set_column(4, "_table", pa.array(["public.b"])))
    with pytest.raises(SinkError, match="no value for the key 'id'"):
        engine.apply(1, good.set_column(0, "id", pa.array([None], pa.int64())))
    with pytest.raises(SinkError, match="full_refresh=True"):
        Engine(kind, tmp_path, Rules(AutoCdc(keys=["id"], ignore_null_updates=True), ("id",))).apply(1, good)
    engine.terms = TableTerms(TableMark("other", "pulsar://test/changes", "reader"))
    with pytest.raises(TableOwnedByOther):
        engine.apply(1, good)
    assert engine.rows().num_rows == 1


@pytest.mark.parametrize("kind", ENGINES)
def test_a_commit_of_another_run_makes_the_merge_begin_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_streams.lake.changes.marker_files import MarkerFiles

    rules = Rules(AutoCdc(keys=["id"], apply_as_deletes="v is null"), ("id",))
    engine = Engine(kind, tmp_path, rules)
    engine.apply(0, rows_of(range(10), "0"))
    write, calls = MarkerFiles.write_list, []

    def meanwhile(self: MarkerFiles, chosen: Any) -> int:
        calls.append(1)
        number = write(self, chosen)
        if len(calls) == 1:  # between our merge and our commit
            delete = pa.table({"id": [3, 4], "v": pa.nulls(2, pa.string()), "_position": ["200000001", "200000002"]})
            engine.apply(2, delete)
        return number

    monkeypatch.setattr(MarkerFiles, "write_list", meanwhile)
    engine.apply(1, rows_of([3, 5], "1"))
    found = dict(zip(*(engine.rows()[name].to_pylist() for name in ("id", "v")), strict=True))
    assert len(calls) == 3
    assert set(found) == {0, 1, 2, 5, 6, 7, 8, 9}
    assert found[5] == "1"
    assert engine.marker_count() == 2


def test_events_are_what_they_seem() -> None:
    assert Event("c", 1, {"a": 1}, 0, 1, 1).row()["_position"] == "00000000"


@pytest.mark.slow_except("none")
@pytest.mark.parametrize("metrics", ["none", "counts", "truncate(1)"])
def test_an_iceberg_table_without_bounds_of_keys_holds_each_key_once(metrics: str, tmp_path: Path) -> None:
    """Its files, also those that another engine wrote, are read wherever nothing shows what they hold."""
    plans = plans_of(range(AT_ONCE))
    engine = Engine("iceberg", tmp_path, WRITTEN, range_bytes=1000)
    for step, window in windows_of(plans):
        engine.apply(step, window)
        table = engine.table()
        with table.transaction() as change:
            names = ("default", "column.h", "column.id")
            change.set_properties({f"write.metadata.metrics.{name}": metrics for name in names})
        if step % 3 == 1:
            table = engine.table()
            table.overwrite(table.scan().to_arrow())
    found = latest(engine.rows())
    for seed, plan in plans.items():
        assert found.get(seed, {}) == fold(plan.covered), seed
