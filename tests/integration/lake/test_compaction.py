"""Small files of a window become few, and its rows stay what they were; a concurrent landing has the last word."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.table import Transaction

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.errors import CommitStateUnknown, SinkError, TableOwnedByOther
from airflow_provider_streams.lake import compaction
from airflow_provider_streams.lake.compaction import compact
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.delta import table_version, transaction_log
from airflow_provider_streams.lake.delta.writer import DeltaWriter, storage_of
from airflow_provider_streams.lake.table_properties import properties_of
from tests.integration.lake.delta_logs import OLD, ROWS, column, write_log, write_windows_into_files
from tests.integration.lake.delta_reading import adds
from tests.integration.lake.fault_proxy import FaultProxy
from tests.integration.lake.iceberg_reading import table_of
from tests.integration.lake.kept_tables import MEGABYTE, compactable, delta_in, new_iceberg, now, table_in
from tests.integration.lake.landing import SCHEMA, TERMS, Attempt, hour, land, rows_of

pytestmark = pytest.mark.lake

BOTH = ("delta", "iceberg")


@pytest.fixture(params=BOTH)
def table(request, tmp_path):
    with table_in(request.param, tmp_path) as table:
        yield table


@pytest.fixture(params=BOTH)
def stored(request, seaweed_server, lake_folder):
    """A table on a real store, and in a real catalog."""
    if request.param == "delta":
        with given("store", seaweed_server.storage_options):
            yield delta_in(f"{lake_folder}/orders", "store")
    else:
        with given("iceberg_test", seaweed_server.catalog_properties):
            yield new_iceberg(partition_by="day")


def content(table, window):
    return compactable(table.sink, TERMS.mark).contents()[window]


def test_windows_have_fewer_files_and_the_same_rows_for_every_reader(stored):
    stored.land(hour(0), 0, 10)
    stored.land_in_pieces(hour(1), 100, 12, tasks=4)
    stored.land_in_pieces(hour(2), 200, 1, tasks=1)
    before = stored.ids()
    done = stored.compact()
    assert (done.windows, done.files_before, done.files_after) == ([hour(0), hour(1)], 6, 2)
    assert stored.ids() == before
    assert stored.windows() == set(before)
    assert stored.compact().windows == []
    stored.land(hour(1), 500, 3)
    assert stored.ids() == {**before, hour(1): [500, 501, 502]}
    gone = stored.expire(now())
    assert len([file for file in gone.files if file.path.endswith(".parquet")]) == 7
    assert stored.ids() == {**before, hour(1): [500, 501, 502]}
    assert len(stored.files()) == 4


def test_a_dry_run_says_what_it_would_do_and_does_nothing(table):
    table.land(hour(0), 0, 10)
    files = table.files()
    done = table.compact(dry_run=True)
    assert (done.windows, done.files_before) == ([hour(0)], 2)
    assert table.files() == files


def test_files_of_the_target_size_stay_and_larger_windows_get_several(table):
    table.land_in_pieces(hour(0), 0, 40_000, tasks=8)
    rows = list(range(40_000))
    size = content(table, hour(0)).bytes
    assert table.compact(size // 6).windows == []  # 8 files, where 7 would do
    assert 1 < table.compact(size // 3).files_after <= 4
    assert table.ids() == {hour(0): rows}


@pytest.mark.parametrize("rows", [9, 11])
def test_a_window_that_does_not_hold_what_its_receipt_says_stays_and_is_named(table, rows):
    table.land(hour(0), 0, 10)
    table.land(hour(1), 100, 10)
    files = {file.path for file in content(table, hour(0)).files}
    done = compact(compactable(table.sink, TERMS.mark), {hour(0): rows, hour(1): 10}, MEGABYTE)
    assert done.windows == [hour(1)]
    assert f"10 rows, and its receipt says {rows}" in done.differing[hour(0)]
    assert {file.path for file in content(table, hour(0)).files} == files


def test_a_window_whose_files_do_not_hold_what_the_table_says_stays_and_is_named(table, tmp_path):
    table.land(hour(0), 0, 10)
    files = content(table, hour(0)).files
    target = compactable(table.sink, TERMS.mark)
    target.contents()
    system, root = target.target(hour(0)).storage.open()
    path = f"{root}/{files[0].path}"
    pq.write_table(pq.read_table(path).slice(1), path)
    before = table.files()
    done = compact(compactable(table.sink, TERMS.mark), {hour(0): 10}, MEGABYTE)
    assert "do not have so many" in done.differing[hour(0)]
    system.delete_file(path)
    done = compact(compactable(table.sink, TERMS.mark), {hour(0): 10}, MEGABYTE)
    assert "is not there" in done.differing[hour(0)]
    assert table.files() == before - {files[0].path}


def test_only_windows_that_are_named_are_touched(table):
    for number in range(3):
        table.land(hour(number), number * 100, 10)
    done = compact(compactable(table.sink, TERMS.mark), {hour(1): None, hour(7): 3}, MEGABYTE)
    assert done.windows == [hour(1)]
    assert len(content(table, hour(0)).files) == len(content(table, hour(2)).files) == 2


def test_a_table_of_another_reader_is_refused(table):
    table.land(hour(0), 0, 10)
    with pytest.raises(TableOwnedByOther, match=r"belongs to reader 'd.read' .*, not to reader 'd.other'"):
        compactable(table.sink, replace(TERMS.mark, reader="d.other")).contents()


@pytest.mark.parametrize("windows_at_once", [1, 16])
def test_a_concurrent_landing_stays_and_the_other_windows_are_compacted(table, monkeypatch, windows_at_once):
    monkeypatch.setattr(compaction, "WINDOWS_AT_ONCE", windows_at_once)
    for number in range(3):
        table.land(hour(number), number * 100, 10)
    before = table.ids()
    target = compactable(table.sink, TERMS.mark)
    replace_files = target.replace

    def land_first(rewritten):
        if any(one.window == hour(1) for one in rewritten):
            table.land(hour(1), 500, 2)
        return replace_files(rewritten)

    target.replace = land_first
    done = compact(target, dict.fromkeys(before), MEGABYTE)
    assert (done.windows, done.overtaken) == ([hour(0), hour(2)], [hour(1)])
    assert table.ids() == {**before, hour(1): [500, 501]}
    of_window = [path for path in table.files() if path.startswith("window_start=20261120T130000Z")]
    assert len(of_window) == 2 + 2  # landed, and landed again: nothing that was rewritten is left


def test_an_attempt_that_began_before_lands_after_it(table):
    table.land(hour(0), 0, 10)
    table.land(hour(1), 100, 10)
    late = table.attempt(hour(0), 500, 3)
    assert table.compact().windows == [hour(0), hour(1)]
    late.commit()
    assert table.ids() == {hour(0): [500, 501, 502], hour(1): list(range(100, 110))}


@pytest.mark.parametrize("rows", [3, 0])
def test_a_landing_that_meets_a_compaction_at_its_commit_replaces_what_that_wrote(table, monkeypatch, rows):
    table.land(hour(0), 0, 10)
    table.land(hour(1), 100, 10)
    late = table.attempt(hour(0), 500, rows)
    compacted = []

    def compact_first(commit):
        def wrapped(self, *arguments, **named):
            if not compacted:
                compacted.append(None)
                compacted[0] = table.compact()
            return commit(self, *arguments, **named)

        return wrapped

    for owner, name in [(Transaction, "commit_transaction"), (table_version.DeltaVersion, "commit")]:
        monkeypatch.setattr(owner, name, compact_first(getattr(owner, name)))
    late.commit()
    assert compacted[0].windows == [hour(0), hour(1)]
    left = {hour(1): list(range(100, 110))}
    is_told = rows or table.sink.kind == "delta"
    assert table.ids() == ({hour(0): list(range(500, 500 + rows)), **left} if is_told else left)


def test_a_landing_that_comes_in_the_midst_of_a_compactions_commit_has_the_last_word(table, monkeypatch):
    table.land(hour(0), 0, 10)
    table.land(hour(1), 100, 10)
    landed = []

    def land_first(commit):
        def wrapped(self, *arguments, **named):
            if not landed:
                landed.append(hour(0))
                table.land(hour(0), 500, 3)
            return commit(self, *arguments, **named)

        return wrapped

    for owner, name in [(Transaction, "commit_transaction"), (table_version.DeltaVersion, "commit")]:
        monkeypatch.setattr(owner, name, land_first(getattr(owner, name)))
    done = table.compact()
    assert (done.windows, done.overtaken) == ([hour(1)], [hour(0)])
    assert table.ids() == {hour(0): [500, 501, 502], hour(1): list(range(100, 110))}


def test_landing_and_compacting_at_once_lose_nothing(table):
    for number in range(4):
        table.land(hour(number), number * 100, 10)

    def land_again():
        for turn in range(1, 5):
            table.land(hour(turn % 2), 1000 * turn, 5)

    with ThreadPoolExecutor(1) as pool:
        lander = pool.submit(land_again)
        while not lander.done():
            compact(compactable(table.sink, TERMS.mark), {hour(number): None for number in range(4)}, MEGABYTE)
        lander.result()
    table.compact()
    expected = {
        hour(0): range(4000, 4005),
        hour(1): range(3000, 3005),
        hour(2): range(200, 210),
        hour(3): range(300, 310),
    }
    assert table.ids() == {window: list(found) for window, found in expected.items()}
    assert all(len(content(table, hour(number)).files) == 1 for number in range(4))


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("lines", pa.list_(pa.struct([("sku", pa.string())]))),
        ("tags", pa.map_(pa.string(), pa.struct([("n", pa.int32())]))),
        ("raw", pa.binary()),
        ("price", pa.decimal128(12, 2)),
    ]
)
WIDER = pa.schema(
    [
        ("id", pa.int64()),
        ("lines", pa.list_(pa.struct([("sku", pa.string()), ("count", pa.int64())]))),
        ("tags", pa.map_(pa.string(), pa.struct([("n", pa.int32()), ("m", pa.string())]))),
        ("raw", pa.binary()),
        ("price", pa.decimal128(12, 2)),
        ("note", pa.string()),
    ]
)


def test_rows_from_before_a_table_got_columns_stay_as_they_are(table):
    sink = replace(table.sink, widen=True)
    rows = [
        {"id": 0, "lines": [{"sku": "a"}, None], "tags": [("k", {"n": 1})], "raw": b"\x00\xff", "price": None},
        {"id": 1, "lines": None, "tags": None, "raw": None, "price": 5},
        {"id": 2, "lines": [], "tags": [], "raw": b"", "price": -1},
        {"id": 3, "lines": [{"sku": None}], "tags": [("k", None)], "raw": b"x", "price": 0},
    ]
    narrow = pa.Table.from_pylist(rows, NESTED)
    Attempt(sink, hour(0), narrow).write(tasks=4).commit()
    wide = pa.Table.from_pylist([{"id": 9, "lines": [{"sku": "z", "count": 3}], "note": "new"}], WIDER)
    Attempt(sink, hour(1), wide).write(tasks=1).commit()
    files = content(table, hour(0)).files
    assert table.compact().windows == [hour(0)]
    (made,) = content(table, hour(0)).files
    assert made.path not in {file.path for file in files}
    target = compactable(table.sink, TERMS.mark)
    target.contents()
    system, root = target.target(hour(0)).storage.open()
    with system.open_input_file(f"{root}/{made.path}") as stored:
        found = pq.read_table(stored)
    in_order = found.take(pa.compute.sort_indices(found["id"])).to_pylist()
    expected = pa.Table.from_pylist(
        [
            {**rows[0], "lines": [{"sku": "a", "count": None}, None], "tags": [("k", {"n": 1, "m": None})]},
            {**rows[1]},
            {**rows[2]},
            {**rows[3], "lines": [{"sku": None, "count": None}]},
        ],
        WIDER,
    ).to_pylist()
    assert [{name: row[name] for name in WIDER.names} for row in in_order] == expected


def test_a_renamed_column_keeps_its_windows_as_they_are(tmp_path):
    with table_in("iceberg", tmp_path) as table:
        table.land(hour(0), 0, 10)
        with table_of(table.sink).update_schema() as change:
            change.rename_column("value", "text")
        done = compact(compactable(table.sink, TERMS.mark), {hour(0): 10}, MEGABYTE)
        assert "'value', which the table has not any more" in done.left[hour(0)]
        with table_of(table.sink).update_schema() as change:
            change.add_column("value", table_of(table.sink).schema().find_type("text"))
        done = compact(compactable(table.sink, TERMS.mark), {hour(0): 10}, MEGABYTE)
        assert "another column" in done.left[hour(0)]


def test_files_of_several_windows_stay_as_they_are(tmp_path):
    with table_in("iceberg", tmp_path, partition_by=None) as table:
        table.land(hour(0), 0, 10)
        table.land(hour(1), 100, 10)
        stored = table_of(table.sink)
        stored.overwrite(stored.scan().to_arrow())
        table.land(hour(2), 200, 10)
        done = table.compact()
        assert done.windows == [hour(2)]
        assert set(done.left) == {hour(0), hour(1)}


def test_partition_values_say_that_they_are_in_utc_also_where_another_engine_compacted(tmp_path):
    from deltalake import DeltaTable

    table = delta_in(str(tmp_path / "orders"))
    table.land(hour(0), 0, 10)
    DeltaTable(table.sink.path).optimize.compact()
    table.land(hour(1), 100, 10)
    before = table.ids()
    target = compactable(table.sink, TERMS.mark)
    assert len(target.contents()[hour(0)].files) == 1
    assert table.compact().windows == [hour(1)]
    table.land(hour(0), 0, 10)
    assert table.compact().windows == [hour(0)]
    assert table.ids() == before
    values = [added["partitionValues"]["window_start"] for added in adds(storage_of(table.sink)).values()]
    assert all(value.endswith("Z") for value in values)


def test_files_that_hold_their_window_as_well_are_compacted_and_rewritten(tmp_path):
    table = delta_in(str(tmp_path / "orders"), widen=True)
    narrow = SCHEMA.set(0, pa.field("id", pa.int32()))
    for number in range(2):
        Attempt(table.sink, hour(number), rows_of(100 * number, 10, narrow)).write(2).commit()
    write_windows_into_files(tmp_path / "orders")
    before = table.ids()
    assert table.compact().windows == [hour(0), hour(1)]
    assert table.ids() == before
    write_windows_into_files(tmp_path / "orders")
    table.land(hour(2), 200, 10)
    assert table.ids() == {**before, hour(2): list(range(200, 210))}


@pytest.fixture
def impatient(monkeypatch):
    """A store that does not answer is soon given up."""
    options = transaction_log.object_store_options
    monkeypatch.setattr(
        transaction_log, "object_store_options", lambda storage: {**options(storage), "max_retries": "1"}
    )


@pytest.mark.slow_except("iceberg-lost")
@pytest.mark.parametrize(("kind", "fault"), [("delta", "lost"), ("iceberg", "spoiled"), ("iceberg", "lost")])
@pytest.mark.usefixtures("impatient")
def test_a_commit_is_made_once_whatever_became_of_its_answer(kind, fault, seaweed_server, lake_folder):
    is_delta = kind == "delta"
    with FaultProxy(seaweed_server.url if is_delta else seaweed_server.catalog_url) as proxy:
        options, table = _through(proxy, seaweed_server, is_delta=is_delta, folder=lake_folder)
        with given("iceberg_test", options), given("spoiled", options):
            table.land(hour(0), 0, 10)
            table.land(hour(1), 100, 6)
            before = table.ids()
            proxy.once(fault, _commits)
            done = table.compact()
            assert len(proxy.spoilt) == 1
            assert done.windows == [hour(0), hour(1)]
            assert table.ids() == before
            assert all(len(content(table, window).files) == 1 for window in before)


@pytest.mark.usefixtures("impatient")
def test_files_of_a_commit_in_an_unknown_state_stay(seaweed_server, lake_folder):
    with FaultProxy(seaweed_server.url) as proxy:
        options, table = _through(proxy, seaweed_server, is_delta=True, folder=lake_folder)
        with given("spoiled", options):
            table.land(hour(0), 0, 10)
            seen = []

            def decide(request):
                if _commits(request) and not seen:
                    seen.append(request)
                    return "spoiled"
                return "refused" if seen and "/_delta_log/" in request.target else None

            proxy.fault = decide
            with pytest.raises(CommitStateUnknown):
                compact(compactable(table.sink, TERMS.mark), {hour(0): 10}, MEGABYTE)
            proxy.fault = lambda _: None
            assert table.ids() == {hour(0): list(range(10))}
            assert len(content(table, hour(0)).files) == 1


def _commits(request):
    writes_log = request.method == "PUT" and "/_delta_log/" in request.target
    return writes_log or (request.method == "POST" and "/tables/" in request.target)


def _through(proxy, server, *, is_delta, folder):
    if is_delta:
        options = {**server.storage_options, "s3.endpoint": proxy.url}
        return options, delta_in(f"{folder}/orders", "spoiled")
    tokens = f"{server.catalog_url}/v1/oauth/tokens"
    return {**server.catalog_properties, "uri": proxy.url, "oauth2-server-uri": tokens}, new_iceberg()


def test_rows_that_an_engine_deletes_elsewhere_stay_deleted(tmp_path):
    """A table whose log may hide rows of its files is left to the engine that hides them."""
    from deltalake import DeltaTable, TableFeatures

    table = delta_in(str(tmp_path / "orders"))
    table.land(hour(0), 0, 10)
    feature = TableFeatures.DeletionVectors
    DeltaTable(table.sink.path).alter.add_feature(feature, allow_protocol_versions_increase=True)
    with pytest.raises(SinkError, match="deletion vectors"):
        compactable(table.sink, TERMS.mark).contents()


def test_a_store_that_fails_leaves_the_table_and_no_files(table, monkeypatch):
    table.land(hour(0), 0, 10)
    files, before = table.files(), table.ids()

    def fail(_self, _rewritten):
        raise SinkError("orders", "told to fail")

    monkeypatch.setattr(type(compactable(table.sink, TERMS.mark)), "replace", fail)
    with pytest.raises(SinkError, match="told to fail"):
        compact(compactable(table.sink, TERMS.mark), {hour(0): 10}, MEGABYTE)
    assert (table.files(), table.ids()) == (files, before)


def test_columns_of_a_table_may_have_names_that_rows_may_not(tmp_path):
    """Another engine gave it one, and allows blanks."""
    sink = DeltaSink(str(tmp_path / "orders"))
    write_log(Path(sink.path), OLD, properties_of(TERMS.mark), [*ROWS, column("their note", "string")])
    land(sink, hour(0), rows_of(0, 10))
    done = compact(DeltaWriter.compactable(sink, TERMS.mark), {hour(0): 10}, 2**20)
    assert (done.windows, done.files_before, done.files_after) == ([hour(0)], 2, 1)
    assert sorted(DeltaTable(sink.path).to_pyarrow_table()["id"].to_pylist()) == list(range(10))
