"""Writers that apply changes: what a landing calls, on real tables in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from airflow_provider_streams.errors import SinkError, TableOwnedByOther, WindowsOverlap
from airflow_provider_streams.lake.changes.change_writer import positions
from airflow_provider_streams.lake.changes.landed_changes import ChangeWindow
from airflow_provider_streams.lake.changes.marker_files import number_in
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.data_files import write_files
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.registry import table_state, writer_of
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.changes.change_terms import ChangeTerms
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.sinks.sink import DeltaSink, IcebergSink
from airflow_provider_streams.model.window.window import Window
from tests.unit.lake.changes.engines import ENGINES, MARK, hour

LIFE = "postgresql/shop/shop/"
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.string()),
        ("_op", pa.string()),
        ("_source_ts", pa.timestamp("us", "UTC")),
        ("_position", pa.string()),
        ("_log_position", pa.string()),
        ("_source_life", pa.string()),
        ("_topic", pa.string()),
    ]
)
TERMS = TableTerms(MARK, changes=ChangeTerms(keys=("id",), aside=("_topic",)))
NO_COLUMNS = pa.schema([one for one in COLUMNS if one.name not in ("id", "v")])
NOT_SEEN = TableTerms(MARK, changes=ChangeTerms(aside=("_topic",)))


class Landing:
    """Lands windows of changes as a job does."""

    def __init__(self, kind: str, folder: Path, cdc: AutoCdc) -> None:
        self.sink: Any = (
            IcebergSink("lake.rows", conn_id="changes", apply=cdc)
            if kind == "iceberg"
            else DeltaSink(f"{folder}/table", apply=cdc)
        )
        self.folder = folder / ("warehouse/lake/rows/data" if kind == "iceberg" else "table")

    def land(self, window: Window, rows: pa.Table, terms: TableTerms = TERMS) -> None:
        writer: Any = writer_of(self.sink)(self.sink, window, terms)
        try:
            target = writer.open(rows.schema)
            files = [one for one in write_files(target, rows.to_batches()) if one.rows]
            writer.commit(files, Receipt("plan", (), 0.0, "ok"))
        finally:
            writer.discard()

    def state(self) -> TableState:
        found = table_state(self.sink)
        assert isinstance(found, TableState)
        return found

    def rows(self) -> list[dict[str, Any]]:
        return self.rows_by("id")

    def rows_by(self, key: str) -> list[dict[str, Any]]:
        from deltalake import DeltaTable

        from airflow_provider_streams.lake.iceberg.table import IcebergTable

        if isinstance(self.sink, DeltaSink):
            found = pa.table(DeltaTable(self.sink.path).to_pyarrow_table())
        else:
            found = IcebergTable(self.sink).loaded().scan().to_arrow()
        return sorted(found.to_pylist(), key=lambda row: row[key])

    def staged(self) -> Sequence[str]:
        return [one.name for one in (self.folder / "_changes").iterdir()]


def changes(*rows: tuple[Any, ...], schema: pa.Schema = COLUMNS) -> pa.Table:
    """Of each the id, the value, the operation, and the number of the change."""
    first = datetime(2026, 11, 1, tzinfo=UTC)
    values = {
        "id": [row[0] for row in rows],
        "v": [row[1] for row in rows],
        "_op": [row[2] for row in rows],
        "_source_ts": [first + timedelta(seconds=row[3]) for row in rows],
        "_position": [f"{row[3]:020}" for row in rows],
        "_log_position": [f"{row[3]:020}" for row in rows],
        "_source_life": [LIFE for _ in rows],
        "_topic": ["topic" for _ in rows],
    }
    return pa.table([pa.array(values[one.name], one.type) for one in schema], schema=schema)


@pytest.fixture(params=ENGINES)
def landing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Landing]:
    with ExitStack() as stack:
        options = {
            "type": "sql",
            "uri": f"sqlite:///{tmp_path}/catalog.db",
            "warehouse": f"file://{tmp_path}/warehouse",
        }
        stack.enter_context(given("changes", options))
        yield Landing(request.param, tmp_path, AutoCdc())


def shown(landing: Landing) -> list[tuple[int, str]]:
    return [(row["id"], row["v"]) for row in landing.rows()]


def test_windows_in_any_order_give_the_latest_state_and_the_table_names_them(landing: Landing) -> None:
    landing.land(hour(1), changes((1, "b", "u", 11), (2, None, "d", 12)))
    assert landing.state() == TableState(MARK, frozenset([hour(1)]))
    first = changes((1, "a", "c", 1), (2, "a", "c", 2), (3, "a", "c", 3))
    landing.land(hour(0), first)
    before = landing.rows()
    landing.land(hour(0), first)
    assert landing.rows() == before
    assert shown(landing) == [(1, "b"), (3, "a")]
    assert landing.state() == TableState(MARK, frozenset([hour(0), hour(1)]))
    assert list(landing.rows()[0])[:2] == ["id", "v"]
    assert "_topic" not in landing.rows()[0]
    assert landing.staged() == []


def test_windows_before_the_first_change_make_a_table_without_columns(landing: Landing) -> None:
    landing.land(hour(0), changes(schema=NO_COLUMNS), NOT_SEEN)
    landing.land(hour(1), changes(schema=NO_COLUMNS), NOT_SEEN)
    assert landing.state() == TableState(MARK, frozenset([hour(0), hour(1)]))
    landing.land(hour(2), changes((1, "a", "c", 1)))
    landing.land(hour(3), changes(schema=NO_COLUMNS), NOT_SEEN)
    assert shown(landing) == [(1, "a")]
    assert list(landing.rows()[0])[:2] == ["id", "v"]
    assert landing.state().windows == {hour(0), hour(1), hour(2), hour(3)}


def test_history_whose_first_window_has_no_change(landing: Landing) -> None:
    landing.sink = replace(landing.sink, apply=AutoCdc(stored_as_scd_type=2))
    landing.land(hour(2), changes(schema=COLUMNS))
    landing.land(hour(1), changes((1, "b", "u", 11)))
    landing.land(hour(0), changes((1, "a", "c", 1)))
    found = sorted(landing.rows(), key=lambda row: row["__START_AT"])
    assert [(row["v"], row["__START_AT"].second, row["__END_AT"] and row["__END_AT"].second) for row in found] == [
        ("a", 1, 11),
        ("b", 11, None),
    ]


def test_a_full_refresh_begins_without_rows_markers_and_windows(landing: Landing) -> None:
    landing.land(hour(0), changes((1, "a", "c", 1), (2, "a", "c", 2)))
    landing.land(hour(1), changes((2, None, "d", 12)))
    new = TableMark("new", MARK.source, MARK.reader)
    with pytest.raises(TableOwnedByOther, match="full_refresh=True"):
        landing.land(hour(0), changes((7, "a", "c", 1)), replace(TERMS, mark=new))
    again = replace(TERMS, mark=new, earlier=(MARK.id,))
    landing.land(hour(0), changes((2, "b", "c", 2)), again)
    assert shown(landing) == [(2, "b")], "the delete was of the earlier landing"
    assert landing.state() == TableState(new, frozenset([hour(0)]))
    with pytest.raises(TableOwnedByOther):
        landing.land(hour(1), changes((3, "b", "c", 3)))


def test_windows_that_share_time_need_leave_and_keep_their_changes(landing: Landing) -> None:
    landing.land(hour(0), changes((1, "a", "c", 1)))
    longer = Window(hour(0).start, hour(1).end)
    with pytest.raises(WindowsOverlap):
        landing.land(longer, changes((1, "b", "u", 11)))
    assert shown(landing) == [(1, "a")]
    landing.land(longer, changes((1, "b", "u", 11)), replace(TERMS, replace_overlaps=True))
    assert shown(landing) == [(1, "b")]
    assert landing.state().windows == {longer}


def test_changes_without_a_known_key_or_place_are_refused_before_anything_is_written(landing: Landing) -> None:
    with pytest.raises(SinkError, match=r"apply=AutoCdc\(keys=\['id'\]\)"):
        landing.land(hour(0), changes((1, "a", "c", 1)), NOT_SEEN)
    no_place = changes((1, "a", "c", 1)).drop_columns(["_position"])
    with pytest.raises(SinkError, match="no column 'entry', by which changes are ordered"):
        landing.land(hour(0), no_place, replace(TERMS, changes=ChangeTerms(("id",), ("entry",))))
    landing.sink = replace(landing.sink, apply=AutoCdc(keys=["nothing"]))
    with pytest.raises(SinkError, match="no column 'nothing'"):
        landing.land(hour(0), changes((1, "a", "c", 1)))
    landing.sink = replace(landing.sink, apply=AutoCdc(keys=["id"], apply_as_deletes="gone = 1"))
    with pytest.raises(SinkError, match="no column 'gone'"):
        landing.land(hour(0), changes((1, "a", "c", 1)))
    assert table_state(landing.sink) is None


@pytest.mark.parametrize("is_applied", [False, True])
def test_refused_changes_leave_an_unowned_table_as_it_was(landing: Landing, is_applied: bool) -> None:  # noqa: FBT001
    columns = pa.schema([("id", pa.int64()), ("other", pa.string()), ("_key_range", pa.string())])
    is_delta = isinstance(landing.sink, DeltaSink)
    if is_delta:
        DeltaTable.create(landing.sink.path, columns, partition_by=["_key_range"])
    else:
        catalog_of(landing.sink).create_namespace("lake")
        catalog_of(landing.sink).create_table("lake.rows", columns)
    rows = changes((1, "a", "c", 1))
    writer: Any = writer_of(landing.sink)
    apply = partial(writer.applier(landing.sink, TERMS).apply, ChangeWindow(hour(0), "plan"))
    act = partial(apply, [rows.drop_columns(["_topic"])]) if is_applied else partial(landing.land, hour(0), rows)
    with pytest.raises(SinkError, match="it lacks v string"):
        act()
    assert table_state(landing.sink) is None
    if is_delta:
        assert DeltaTable(landing.sink.path).version() == 0
    else:
        assert catalog_of(landing.sink).load_table("lake.rows").metadata.snapshots == []


def test_events_of_a_compacted_topic_are_ordered_by_their_place(landing: Landing) -> None:
    landing.sink = replace(landing.sink, apply=AutoCdc(keys=["_key"], apply_as_deletes="value is null"))
    terms = TableTerms(MARK, changes=ChangeTerms((), ("_ledger", "_entry"), ("_ledger", "_entry")))

    def events(*rows: tuple[str, str | None, int, int]) -> pa.Table:
        names = ("_key", "value", "_ledger", "_entry")
        types = (pa.string(), pa.string(), pa.int64(), pa.int64())
        return pa.table({name: pa.array([row[at] for row in rows], types[at]) for at, name in enumerate(names)})

    landing.land(hour(1), events(("a", "late", 9, 100), ("b", None, 10, 1)), terms)
    landing.land(hour(0), events(("a", "early", 9, 99), ("b", "gone", 9, 5), ("c", "only", 9, 6)), terms)
    found = landing.rows_by("_key")
    assert [(row["_key"], row["value"]) for row in found] == [("a", "late"), ("c", "only")]
    assert "_ledger" not in found[0]


def test_places_are_those_of_database_changes() -> None:
    from airflow_provider_streams.formats.change_data.positions import stream_positions

    parts = [pa.array([1, 2**62, None], pa.int64()), pa.array([-1, 7, 2**31 - 1], pa.int32())]
    assert positions(parts).to_pylist() == stream_positions(parts).to_pylist()


def test_expiry_removes_staged_changes_and_markers_that_are_not_needed(landing: Landing) -> None:
    landing.land(hour(1), changes((1, None, "d", 11)))
    for number in range(20):
        landing.land(hour(1), changes((number + 2, None, "d", 20 + number)))
    left = landing.folder / "_changes" / "left-over.parquet"
    left.write_bytes(b"of a killed attempt")
    writer: Any = writer_of(landing.sink)
    later = datetime.now(UTC) + timedelta(seconds=5)
    would = writer.expire(landing.sink, MARK, later, dry_run=True)
    assert left.exists()
    done = writer.expire(landing.sink, MARK, later)
    assert {one.place for one in done.files} == {one.place for one in would.files}
    assert not left.exists()
    assert len([one for one in (landing.folder / "_markers").iterdir() if number_in(one.name) is not None]) == 1
    landing.land(hour(0), changes((1, "a", "c", 1), (5, "a", "c", 2), (99, "a", "c", 3)))
    assert shown(landing) == [(99, "a")], "the markers that are needed stay"


def test_a_table_that_others_roll_back_never_claims_windows_that_its_rows_lack(landing: Landing) -> None:
    landing.land(hour(0), changes((1, "a", "c", 1)))
    if isinstance(landing.sink, DeltaSink):
        from deltalake import DeltaTable

        before = DeltaTable(landing.sink.path).version()
        landing.land(hour(1), changes((1, None, "d", 11)))
        DeltaTable(landing.sink.path).restore(before)
        assert landing.state().windows == frozenset()
        with pytest.raises(SinkError, match=r"restored an earlier version .* full_refresh=True"):
            landing.land(hour(2), changes((2, "a", "c", 21)))
        new = replace(TERMS, mark=TableMark("new", MARK.source, MARK.reader), earlier=(MARK.id,))
        landing.land(hour(2), changes((2, "a", "c", 21)), new)
        assert shown(landing) == [(2, "a")]
        return
    from airflow_provider_streams.lake.iceberg.table import IcebergTable

    first = IcebergTable(landing.sink).loaded().current_snapshot()
    assert first is not None
    landing.land(hour(1), changes((1, None, "d", 11)))
    with IcebergTable(landing.sink).loaded().manage_snapshots() as manage:
        manage.rollback_to_snapshot(first.snapshot_id)
    assert landing.state().windows == {hour(0)}
    assert shown(landing) == [(1, "a")]


@pytest.mark.parametrize("name", ["delta.enableChangeDataFeed", "delta.setTransactionRetentionDuration"])
def test_a_delta_table_whose_property_changes_would_break_is_refused_by_its_name(tmp_path, name):
    landing = Landing("delta", tmp_path, AutoCdc(keys=("id",)))
    landing.land(hour(0), COLUMNS.empty_table())
    value = "true" if name.startswith("delta.enable") else "interval 1 day"
    DeltaTable(landing.sink.path).alter.set_table_properties({name: value})
    with pytest.raises(SinkError, match=f"cannot be applied to the table: it has the property {name} = {value}"):
        writer_of(landing.sink).check_rows(landing.sink, COLUMNS, TERMS)
