"""Expiry removes what was replaced long ago and what failed attempts left; nothing that is needed, or of others."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from airflow_provider_streams import ParquetSink
from airflow_provider_streams.errors import SinkError, TableOwnedByOther
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.data_files import WindowFiles
from airflow_provider_streams.lake.parquet.writer import ParquetWriter
from airflow_provider_streams.lake.registry import writer_type
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from tests.integration.lake.iceberg_reading import table_of
from tests.integration.lake.kept_tables import delta_in, new_iceberg, now, parquet_in, table_in
from tests.integration.lake.landing import TERMS, hour, rows_of

pytestmark = pytest.mark.lake

BOTH = ("delta", "iceberg")
LONG_AGO = timedelta(days=20)


@pytest.fixture(params=BOTH)
def table(request, tmp_path):
    with table_in(request.param, tmp_path) as table:
        table.folder = tmp_path
        yield table


def age(folder: Path) -> datetime:
    """All files of a folder were written long ago; the moment before which that was."""
    for file in folder.rglob("*"):
        if file.is_file() and file.name != "c.db":
            then = time.time() - LONG_AGO.total_seconds()
            os.utime(file, (then, then))
    time.sleep(0.01)  # snapshots tell milliseconds
    return datetime.now(UTC)


def all_files(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if file.is_file() and file.name != "c.db"}


@pytest.mark.parametrize("kind", BOTH)
def test_what_was_replaced_and_what_was_left_over_goes_when_its_time_has_come(kind, seaweed_server, lake_folder):
    options = seaweed_server.storage_options if kind == "delta" else seaweed_server.catalog_properties
    with given("store", options), given("iceberg_test", options):
        table = delta_in(f"{lake_folder}/orders", "store") if kind == "delta" else new_iceberg()
        table.land(hour(0), 0, 10)
        table.land(hour(1), 100, 4)
        table.land(hour(0), 500, 3)
        table.attempt(hour(2), 900, 5)  # killed
        held, windows, files = table.ids(), table.windows(), table.files()
        assert table.expire(now(-timedelta(hours=1))).files == ()
        would = table.expire(now(), dry_run=True)
        assert table.files() == files
        gone = table.expire(now())
        assert {file.path for file in gone.files} == {file.path for file in would.files}
        assert gone.bytes == would.bytes > 0
        assert gone.snapshots == would.snapshots == (0 if kind == "delta" else 3)
        assert len(files - table.files()) == 4
        assert (table.ids(), table.windows()) == (held, windows)
        assert table.expire(now(), dry_run=True).to_json()["snapshots"] == 0
        table.land(hour(2), 900, 5)
        assert table.ids() == {**held, hour(2): list(range(900, 905))}


def test_a_version_stays_for_as_long_since_it_was_replaced_not_since_it_was_made(table):
    table.land(hour(0), 0, 10)
    moment = age(table.folder)
    table.land(hour(0), 500, 3)
    read_before = _earlier_version(table)
    assert table.expire(moment).files == ()
    assert read_before() == list(range(10))
    assert len([one for one in table.expire(now()).files if one.path.endswith(".parquet")]) == 2
    with pytest.raises(Exception, match=r"(?i)not found|no such|No snapshot"):
        read_before()
    assert table.ids() == {hour(0): [500, 501, 502]}


def _earlier_version(table):
    """Reads the table as it was before its last commit."""
    if isinstance(table.sink.asset_uri, str) and table.sink.kind == "delta":
        number = DeltaTable(table.sink.path).version() - 1
        return lambda: sorted(DeltaTable(table.sink.path, version=number).to_pyarrow_table()["id"].to_pylist())
    stored = table_of(table.sink)
    replaced = stored.current_snapshot().parent_snapshot_id
    before = stored.snapshot_by_id(replaced).parent_snapshot_id
    return lambda: sorted(stored.scan(snapshot_id=before).to_arrow()["id"].to_pylist())


def test_files_of_an_attempt_that_runs_stay_and_land(table):
    table.land(hour(0), 0, 10)
    moment = age(table.folder)
    running = table.attempt(hour(1), 100, 4)
    table.expire(moment)
    running.commit()
    assert table.ids() == {hour(0): list(range(10)), hour(1): list(range(100, 104))}


def test_only_data_files_of_the_tables_own_folder_go(table):
    table.land(hour(0), 0, 10)
    (file, *_) = table.folder.rglob("*.parquet")
    neighbours = [
        file.with_name("notes.txt"),
        file.with_name("_quarantine") / "0.parquet",
        file.with_name(".hidden") / "0.parquet",
        table.folder / "elsewhere" / file.name,
        file.parents[2] / "archive" / "0.parquet",
        # another table's, whose files were led here
        file.parents[1] / "others" / "window_start=20261120T100000Z" / file.name,
    ]
    for one in neighbours:
        one.parent.mkdir(exist_ok=True, parents=True)
        one.write_bytes(b"mine")
    stray = file.with_name(f"{'0' * 32}-{'1' * 32}.parquet")
    stray.write_bytes(b"nobody's")
    files = all_files(table.folder)
    age(table.folder)
    gone = table.expire(now())
    assert [Path(one.path).name for one in gone.files] == [stray.name]
    assert (gone.bytes, gone.snapshots) == (len(b"nobody's"), 0)
    assert all_files(table.folder) >= files - {stray}


def test_a_table_of_another_reader_is_refused(table):
    table.land(hour(0), 0, 10)
    with pytest.raises(TableOwnedByOther, match=r"not to reader 'd\.other'"):
        writer_type(table.sink.kind).expire(table.sink, replace(TERMS.mark, reader="d.other"), now())


def test_where_a_file_of_the_table_is_not_found_nothing_goes(table):
    table.land(hour(0), 0, 10)
    table.land(hour(1), 100, 10)
    table.land(hour(1), 200, 10)
    next(one for one in table.folder.rglob("*T120000Z/**/*.parquet")).unlink()
    files = all_files(table.folder)
    with pytest.raises(SinkError, match=r"1 file of the table cannot be found, .* nothing is removed"):
        table.expire(now())
    assert {one for one in files if one.suffix == ".parquet"} <= all_files(table.folder)


def test_landing_compacting_and_expiring_at_once_lose_nothing(table):
    for number in range(3):
        table.land(hour(number), number * 100, 10)
    begun = [datetime.now(UTC)]

    def land_again():
        for turn in range(1, 5):
            begun[0] = datetime.now(UTC)
            table.land(hour(turn % 2), 1000 * turn, 5)
            table.compact()

    with ThreadPoolExecutor(1) as pool:
        lander = pool.submit(land_again)
        while not lander.done():
            table.expire(begun[0] - timedelta(seconds=0.1))
        lander.result()
    table.compact()
    table.expire(now())
    expected = {hour(0): range(4000, 4005), hour(1): range(3000, 3005), hour(2): range(200, 210)}
    assert table.ids() == {window: list(found) for window, found in expected.items()}
    assert len(table.files()) == 3


def test_a_delta_table_that_is_a_checkpoint_alone_keeps_everything(tmp_path):
    table = delta_in(str(tmp_path / "orders"))
    table.land(hour(0), 0, 10)
    moment = age(tmp_path)
    table.land(hour(0), 100, 10)
    DeltaTable(table.sink.path).create_checkpoint()
    for commit in (tmp_path / "orders" / "_delta_log").glob("0*.json"):
        commit.unlink()
    files = table.files()
    with pytest.raises(SinkError, match=r"its log does not reach back to .* Nothing is removed"):
        table.expire(moment)
    assert table.files() == files


def test_a_delta_log_that_does_not_reach_back_far_enough_keeps_everything(tmp_path):
    table = delta_in(str(tmp_path / "orders"))
    for turn in range(3):
        table.land(hour(0), turn * 100, 10)
    DeltaTable(table.sink.path).create_checkpoint()
    moment = age(tmp_path)
    table.land(hour(0), 900, 2)
    log = tmp_path / "orders" / "_delta_log"
    for number in range(4):
        (log / f"{number:020}.json").unlink()
    with suppress(FileNotFoundError):
        (log / "00000000000000000000.crc").unlink()
    files = table.files()
    with pytest.raises(SinkError, match=r"its log does not reach back to .* Nothing is removed"):
        table.expire(moment)
    assert table.files() == files


def test_branches_and_tags_keep_what_they_need(tmp_path):
    with table_in("iceberg", tmp_path) as table:
        table.land(hour(0), 0, 10)
        stored = table_of(table.sink)
        stored.manage_snapshots().create_tag(stored.current_snapshot().snapshot_id, "audited").commit()
        table.land(hour(0), 500, 3)
        stored = table_of(table.sink)
        stored.manage_snapshots().create_branch(stored.current_snapshot().snapshot_id, "side").commit()
        table.land(hour(0), 900, 2)
        table.expire(now())
        stored = table_of(table.sink)
        read = {
            name: sorted(stored.scan(snapshot_id=stored.refs()[name].snapshot_id).to_arrow()["id"].to_pylist())
            for name in ("audited", "side", "main")
        }
        assert read == {"audited": list(range(10)), "side": [500, 501, 502], "main": [900, 901]}
        stored.manage_snapshots().remove_tag("audited").commit()
        table.expire(now())
        stored = table_of(table.sink)
        before = stored.snapshot_by_id(stored.refs()["side"].snapshot_id)
        while before.parent_snapshot_id is not None:
            before = stored.snapshot_by_id(before.parent_snapshot_id)
        assert before.summary.additional_properties["streams.fingerprint"] == "plan of 10"


def test_a_table_whose_files_may_be_others_is_refused(tmp_path):
    with table_in("iceberg", tmp_path) as table:
        table.land(hour(0), 0, 10)
        with table_of(table.sink).transaction() as change:
            change.set_properties({"gc.enabled": "false"})
        with pytest.raises(SinkError, match=r"gc.enabled is false"):
            table.expire(now())


def test_data_outside_of_the_tables_folder_stays(tmp_path):
    with table_in("iceberg", tmp_path) as table:
        table.land(hour(0), 0, 10)
        shared = tmp_path / "shared"
        with table_of(table.sink).transaction() as change:
            change.set_properties({"write.data.path": f"file://{shared}"})
        table.land(hour(0), 100, 4)
        table.land(hour(0), 200, 4)
        files = all_files(shared)
        assert len(files) == 4
        table.expire(now())
        assert all_files(shared) == files
        assert table.ids() == {hour(0): [200, 201, 202, 203]}


def test_no_table_puts_its_files_into_another_ones_folder(tmp_path):
    """Expiry of that one would take them for leftovers."""
    with table_in("iceberg", tmp_path) as table:
        table.land(hour(0), 0, 3)
        (tmp_path / "other" / "metadata").mkdir(parents=True)
        (tmp_path / "other" / "metadata" / "00000-a.metadata.json").touch()
        with table_of(table.sink).transaction() as change:
            change.set_properties({"write.data.path": f"file://{tmp_path}/other/data"})
        with pytest.raises(TableOwnedByOther, match="is inside another table"):
            table.land(hour(1), 10, 3)


def test_files_of_a_renamed_table_stay_in_the_folder_of_the_next_one_of_its_name(tmp_path):
    with table_in("iceberg", tmp_path) as table:
        table.land(hour(0), 0, 10)
        table.land(hour(0), 100, 6)
        before = table_of(table.sink)
        before.catalog.rename_table("lake.orders", "lake.former")
        table.land(hour(1), 500, 3)
        table.land(hour(1), 600, 2)
        assert table_of(table.sink).location() == before.location()
        gone = table.expire(now())
        assert gone.snapshots
        assert len([one for one in gone.files if one.path.endswith(".parquet")]) == 2
        assert table.ids() == {hour(1): [600, 601]}
        former = before.catalog.load_table("lake.former")
        assert sorted(former.scan().to_arrow()["id"].to_pylist()) == list(range(100, 106))
        first = former.snapshots()[0].snapshot_id
        assert sorted(former.scan(snapshot_id=first).to_arrow()["id"].to_pylist()) == list(range(10))


def test_files_that_others_wrote_go_with_their_snapshot_however_young_they_are(tmp_path):
    """A store's clock may be ahead by a second. Once no snapshot names such a file, nothing would know whose it is."""
    with table_in("iceberg", tmp_path) as table:
        table.land(hour(0), 0, 10)
        others = table_of(table.sink)
        others.overwrite(others.scan().to_arrow())
        theirs = {name for name in table.files() if "00000-0-" in name}
        table.land(hour(0), 0, 10)
        soon = time.time() + 60
        for file in all_files(tmp_path):
            os.utime(file, (soon, soon))
        time.sleep(0.01)  # snapshots tell milliseconds
        assert theirs
        assert theirs & table.files() == theirs
        table.expire(datetime.now(UTC))
        assert theirs & table.files() == set()
        assert table.ids() == {hour(0): list(range(10))}


def test_metadata_that_the_table_forgot_go(tmp_path):
    with table_in("iceberg", tmp_path) as table:
        table.land(hour(0), 0, 10)
        with table_of(table.sink).transaction() as change:
            change.set_properties({"write.metadata.previous-versions-max": "1"})
        for turn in range(3):
            table.land(hour(0), turn * 100, 10)
        table.expire(now())
        assert len(list(tmp_path.rglob("*.metadata.json"))) == 2
        assert len(list(tmp_path.rglob("snap-*.avro"))) == 1


class _Staged:
    """One attempt at a window of a Parquet table, stopped before its commit."""

    def __init__(self, sink: ParquetSink, window, count: int) -> None:
        self.rows = rows_of(0, count)
        self.writer = ParquetWriter(sink, window, TERMS)
        task = WindowFiles(self.writer.open(self.rows.schema))
        for batch in self.rows.to_batches():
            task.write(batch)
        self.files = task.finish()

    def commit(self) -> None:
        report = SplitReceipt(0, rows=len(self.rows))
        self.writer.commit(self.files, Receipt("plan", (report,), 1.0, "complete"))

    def die(self) -> None:
        """As a kill does: the system lets go of its lock."""
        os.close(self.writer._lock._descriptor)


def test_a_folder_loses_what_dead_attempts_staged_and_nothing_else(tmp_path):
    sink = ParquetSink(str(tmp_path / "orders"))
    _Staged(sink, hour(0), 5).commit()
    staging = tmp_path / "orders" / "_staging"
    dead, alive = _Staged(sink, hour(1), 5), _Staged(sink, hour(2), 5)
    dead.die()
    attempt = f"{hour(3).label}-{'a' * 32}"
    aside = [staging / f"{attempt}.old", staging / f"{attempt}.replaced-0"]
    for folder in aside:
        folder.mkdir()
    set_aside = tmp_path / "orders" / "_set_aside" / "x"
    set_aside.mkdir(parents=True)
    (set_aside / "0.parquet").write_bytes(b"kept")
    table = parquet_in(sink.path)
    assert table.expire(now(-timedelta(hours=1))).files == ()
    would = table.expire(now(), dry_run=True)
    assert dead.writer.staged.exists()
    gone = table.expire(now())
    assert gone.files == would.files
    assert {Path(one.path).parent for one in gone.files} == {dead.writer.staged, staging}
    assert not dead.writer.staged.exists()
    assert all(folder.exists() for folder in aside)
    assert (set_aside / "0.parquet").exists()
    alive.commit()
    assert ParquetWriter.read_state(sink).windows == {hour(0), hour(2)}
    with pytest.raises(TableOwnedByOther, match=r"not to reader 'd\.other'"):
        ParquetWriter.expire(sink, replace(TERMS.mark, reader="d.other"), now())
