"""Expiry removes only what a table, or an attempt at its windows, put in a place: not by a name, nor by half a path."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import SinkError, TableOwnedByOther, TableUnavailable
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg import snapshot_expiry as iceberg_expiry
from tests.integration.lake.fault_proxy import FaultProxy
from tests.integration.lake.iceberg_reading import ids, table_of
from tests.integration.lake.kept_tables import delta_in, iceberg_of, now, parquet_in, table_in
from tests.integration.lake.landing import hour, land, rows_of

pytestmark = pytest.mark.lake

BOTH = ("delta", "iceberg")
STRAY = f"{'0' * 32}-{'1' * 32}.parquet"


@pytest.fixture(params=BOTH)
def table(request, tmp_path):
    with table_in(request.param, tmp_path) as table:
        yield table


@pytest.fixture
def iceberg(tmp_path):
    with table_in("iceberg", tmp_path) as table:
        yield table


@pytest.fixture
def lake(tmp_path):
    """The warehouse of a catalog, which also holds tables of other kinds."""
    folder = tmp_path / "lake"
    folder.mkdir()
    where = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{folder}"}
    with given("iceberg_test", where):
        yield folder


def shop_orders():
    return iceberg_of(IcebergSink("shop.orders", conn_id="iceberg_test"))


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_first_landing_in_the_folder_of_another_table_is_refused(lake, kind):
    outer = (delta_in if kind == "delta" else parquet_in)(str(lake / "shop"))
    outer.land(hour(0), 0, 10)
    for _ in range(2):  # the first one made the table
        with pytest.raises(TableOwnedByOther, match=r"/shop/orders is inside another table, which has .*/shop/_"):
            shop_orders().land(hour(0), 100, 5)
    outside = iceberg_of(IcebergSink("stock.orders", conn_id="iceberg_test"))
    outside.land(hour(0), 100, 5)
    assert outside.ids() == {hour(0): list(range(100, 105))}


def test_tables_of_nested_namespaces_are_in_each_other_and_keep_their_files(lake):
    outer, inner = shop_orders(), iceberg_of(IcebergSink("shop.items", conn_id="iceberg_test"))
    outer.land(hour(0), 0, 10)
    made = table_of(outer.sink)
    made.catalog.create_table("shop.items", made.schema(), location=f"{made.location()}/data")
    for turn in range(2):
        inner.land(hour(0), 100 * turn, 5)
    outer.land(hour(0), 50, 3)
    outer.expire(now())
    inner.expire(now())
    assert outer.ids() == {hour(0): [50, 51, 52]}
    assert inner.ids() == {hour(0): list(range(100, 105))}


def test_an_iceberg_table_in_the_folder_of_a_delta_one_keeps_its_files(lake):
    inner = shop_orders()
    inner.land(hour(0), 100, 5)
    made = delta_in(str(lake / "made"))
    made.land(hour(0), 0, 10)
    shutil.copytree(lake / "made", lake / "shop", dirs_exist_ok=True)
    assert delta_in(str(lake / "shop")).expire(now()).files == ()
    assert inner.ids() == {hour(0): list(range(100, 105))}


@pytest.mark.parametrize("place", ["sub", "window_start=aggregates"])
def test_a_table_by_another_engine_in_the_folder_of_a_delta_one_keeps_its_files(tmp_path, place):
    outer = delta_in(str(tmp_path / "orders"))
    outer.land(hour(0), 0, 10)
    folder = tmp_path / "orders" / place
    rows = pa.table({"id": [1, 2], "window_start": ["a", "b"], "window_end": ["c", "d"]})
    write_deltalake(folder, rows, partition_by=["window_start", "window_end"])
    outer.land(hour(0), 50, 3)
    assert len(outer.expire(now()).files) == 2
    assert DeltaTable(folder).to_pyarrow_table().num_rows == 2


def test_in_the_folder_of_another_table_nothing_is_called_as_ours(tmp_path):
    outer = delta_in(str(tmp_path / "orders"))
    outer.land(hour(0), 0, 10)
    other = tmp_path / "orders" / "window_start=x"
    theirs = other / "window_end=y" / STRAY
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"another table's")
    (other / "metadata").mkdir()
    (other / "metadata" / "v1.metadata.json").touch()
    assert outer.expire(now()).files == ()
    (other / "metadata" / "v1.metadata.json").unlink()
    assert [file.path for file in outer.expire(now()).files] == [str(theirs)]


def test_files_that_other_engines_landed_in_a_delta_table_go_when_no_version_names_them(tmp_path):
    table = delta_in(str(tmp_path / "orders"))
    table.land(hour(0), 0, 10)
    path = table.sink.path
    DeltaTable(path).optimize.compact()
    table.land(hour(0), 50, 3)
    never_named = next((tmp_path / "orders").rglob("part-*.parquet")).with_name("part-00000-x.parquet")
    never_named.write_bytes(b"somebody's")
    gone = {Path(file.path).name for file in table.expire(now()).files}
    assert len(gone) == 3
    assert len([name for name in gone if name.startswith("part-")]) == 1
    assert never_named.exists()


def test_a_copy_of_files_keeps_what_expires_where_it_was(table, tmp_path):
    table.land(hour(0), 0, 10)
    (folder,) = (found.parent for found in tmp_path.rglob("window_start=*"))
    shutil.copytree(folder, tmp_path / "copy")
    shutil.move(tmp_path / "copy", folder / "backup_2026")
    copied = set((folder / "backup_2026").rglob("*.parquet"))
    table.land(hour(0), 500, 3)
    gone = {Path(file.path) for file in table.expire(now()).files if file.path.endswith(".parquet")}
    assert len(gone) == len(copied) == 2
    assert all(file.exists() for file in copied)
    assert table.ids() == {hour(0): [500, 501, 502]}


def test_a_file_that_was_moved_is_not_the_tables(table, tmp_path):
    table.land(hour(0), 0, 10)
    (folder,) = (found.parent for found in tmp_path.rglob("window_start=*"))
    (folder / "moved").mkdir()
    next(folder.rglob("*.parquet")).rename(folder / "moved" / STRAY)
    with pytest.raises(SinkError, match=r"1 file of the table cannot be found, .* nothing is removed"):
        table.expire(now())


@pytest.mark.parametrize("whose", ["manifest", "list"])
def test_where_metadata_were_cut_no_file_goes(iceberg, tmp_path, whose):
    iceberg.land(hour(0), 0, 10)
    iceberg.land(hour(1), 100, 10)
    snapshot = table_of(iceberg.sink).current_snapshot()
    (manifest, *_) = snapshot.manifests(table_of(iceberg.sink).io)
    path = Path((manifest.manifest_path if whose == "manifest" else snapshot.manifest_list).removeprefix("file://"))
    whole = path.read_bytes()
    sync = whole[-16:]
    path.write_bytes(whole[: whole.index(sync) + len(sync)])
    files = iceberg.files()
    with pytest.raises(SinkError, match=rf"{path.name} is not whole, it has .*0 .* in place of .* No file is removed"):
        iceberg.expire(now())
    assert iceberg.files() == files
    path.write_bytes(whole)
    iceberg.expire(now())
    assert iceberg.ids() == {hour(0): list(range(10)), hour(1): list(range(100, 110))}


def test_two_expiries_at_once_both_succeed(iceberg, monkeypatch):
    for turn in range(4):
        iceberg.land(hour(0), turn * 100, 3)
    others = [lambda: iceberg.expire(now())]
    _before_the_commit(monkeypatch, others)
    assert iceberg.expire(now()).snapshots == 0
    assert not others
    assert iceberg.ids() == {hour(0): [300, 301, 302]}
    assert len(table_of(iceberg.sink).snapshots()) == 1


def test_a_tag_that_is_made_meanwhile_keeps_its_files_and_is_reported(iceberg, monkeypatch):
    iceberg.land(hour(0), 0, 3)
    first = table_of(iceberg.sink).current_snapshot().snapshot_id
    for turn in range(1, 4):
        iceberg.land(hour(0), turn * 100, 3)
    files = iceberg.files()
    _before_the_commit(
        monkeypatch, [lambda: table_of(iceberg.sink).manage_snapshots().create_tag(first, "audit").commit()]
    )
    with pytest.raises(SinkError, match=r"others made audit while .* No file is removed .*metadata\.json names"):
        iceberg.expire(now())
    assert iceberg.files() == files


def test_a_tag_that_is_moved_meanwhile_stays(iceberg, monkeypatch):
    made = []
    for turn in range(4):
        iceberg.land(hour(0), turn * 100, 3)
        made.append(table_of(iceberg.sink).current_snapshot().snapshot_id)
    table_of(iceberg.sink).manage_snapshots().create_tag(made[0], "audit").commit()
    _before_the_commit(
        monkeypatch, [lambda: table_of(iceberg.sink).manage_snapshots().create_tag(made[1], "audit").commit()]
    )
    iceberg.expire(now())
    stored = table_of(iceberg.sink)
    assert stored.refs()["audit"].snapshot_id == made[1]
    assert sorted(stored.scan(snapshot_id=made[1]).to_arrow()["id"].to_pylist()) == [100, 101, 102]


def _before_the_commit(monkeypatch, others):
    """Others do something between the last look at the table and the commit."""
    commit = iceberg_expiry._commit

    def after_others(*arguments):
        if others:
            others.pop()()
        return commit(*arguments)

    monkeypatch.setattr(iceberg_expiry, "_commit", after_others)


def test_metadata_that_say_nothing_are_named_with_what_to_do(iceberg, tmp_path, caplog):
    iceberg.land(hour(0), 0, 10)
    iceberg.attempt(hour(1), 100, 4)  # killed
    (metadata,) = tmp_path.rglob("metadata")
    (metadata / "00007-a.metadata.json").touch()
    with caplog.at_level(logging.WARNING):
        assert iceberg.expire(now()).files == ()
    assert "00007-a.metadata.json does not say of which table it is: remove it if it is of none" in caplog.text
    (metadata / "00007-a.metadata.json").unlink()
    assert len(iceberg.expire(now()).files) == 2


@pytest.mark.parametrize("scheme", ["file:", ""])
def test_files_are_the_tables_however_engines_write_their_place(iceberg, scheme):
    iceberg.land_in_pieces(hour(0), 0, 8, tasks=1)
    iceberg.land_in_pieces(hour(1), 100, 8, tasks=4)
    stored = table_of(iceberg.sink)
    paths = [task.file.file_path for task in stored.scan().plan_files()]
    with stored.transaction() as change:
        change.delete("id >= 0")
        change.add_files([path.replace("file://", scheme) for path in paths])
    compacted = iceberg.compact()
    assert (compacted.windows, compacted.left) == ([hour(1)], {})
    iceberg.expire(now())
    assert iceberg.ids() == {hour(0): list(range(8)), hour(1): list(range(100, 108))}
    assert len(iceberg.files()) == 2


@pytest.fixture
def store(seaweed_server, lake_folder, tmp_path):
    """Between Arrow and the store: what becomes of a look at the folders above a table."""
    where = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"{lake_folder}/ware"}
    with FaultProxy(seaweed_server.url) as proxy:
        spoiled = {**seaweed_server.storage_options, "s3.endpoint": proxy.url, "s3.request-timeout": "3"}
        with given("iceberg_test", {**where, **spoiled}), given("store", seaweed_server.storage_options):
            yield proxy


def _looks_around(request):
    return "_delta_log" in request.target or "_table.json" in request.target


def _looks_above_all(request):
    return _looks_around(request) and "ware" not in request.target


def test_keys_that_open_nothing_above_a_table_suffice_to_land_in_it(store):
    store.fault = lambda request: "forbidden" if _looks_around(request) else None
    table = shop_orders()
    land(table.sink, hour(0), rows_of(0, 3))
    looks = len(store.spoilt)
    assert looks
    land(table.sink, hour(1), rows_of(50, 2))
    assert len(store.spoilt) == looks  # once something landed, no attempt looks
    assert ids(table.sink) == {hour(0): [0, 1, 2], hour(1): [50, 51]}


def test_a_table_around_is_seen_where_keys_open_its_folder(store, lake_folder):
    delta_in(f"{lake_folder}/ware/shop", "store").land(hour(0), 0, 10)
    store.fault = lambda request: "forbidden" if _looks_above_all(request) else None
    with pytest.raises(TableOwnedByOther, match=r"is inside another table, which has .*/ware/shop/_delta_log"):
        land(shop_orders().sink, hour(0), rows_of(0, 3))


def test_if_the_store_fails_no_folder_counts_as_free(store):
    store.fault = lambda request: "refused" if _looks_around(request) else None
    with pytest.raises(TableUnavailable):
        land(shop_orders().sink, hour(0), rows_of(0, 3))
