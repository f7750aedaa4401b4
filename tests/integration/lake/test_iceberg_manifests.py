"""How many of its own files an Iceberg table's landing opens: as many in a large table as in a small one."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo, visitors

from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.files import file_io
from tests.integration.lake.iceberg_reading import ids, new_table, table_of
from tests.integration.lake.landing import NOON, hour, land, rows_of

pytestmark = pytest.mark.lake

MERGES, LEAST = "commit.manifest-merge.enabled", "commit.manifest.min-count-to-merge"


@pytest.fixture(autouse=True)
def catalog(tmp_path):
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    with given("iceberg_test", properties):
        yield


@pytest.fixture
def opened(monkeypatch):
    """How often each file is opened."""
    counts = Counter()
    found = file_io.StoreFileIO.new_input

    def new_input(self, location):
        counts[location.rpartition("/")[2]] += 1
        return found(self, location)

    monkeypatch.setattr(file_io.StoreFileIO, "new_input", new_input)
    return counts


def opened_by(opened, sink, number, count=1):
    """How often a landing opens manifests, and at most one of them."""
    opened.clear()
    land(sink, hour(number), rows_of(number, count))
    manifests = {name: times for name, times in opened.items() if name.endswith(".avro") and name[:5] != "snap-"}
    return sum(manifests.values()), max(manifests.values(), default=0)


def manifests_of(sink):
    table = table_of(sink)
    return table.current_snapshot().manifests(table.io)


def filled(sink, windows, step=1):
    for number in range(0, windows, step):
        land(sink, hour(number), rows_of(number, 1))


@pytest.mark.parametrize("windows", [20, *(pytest.param(windows, marks=pytest.mark.slow) for windows in (80, 300))])
@pytest.mark.parametrize("partition_by", ["window", pytest.param("day", marks=pytest.mark.slow)])
def test_a_landing_opens_only_manifests_that_may_hold_its_window_and_each_once(opened, windows, partition_by):
    sink = new_table(partition_by=partition_by)
    filled(sink, windows)
    most = 2 if partition_by == "window" else 26
    for number in (windows, windows // 2, windows // 2, -5, windows + 50):
        manifests, times = opened_by(opened, sink, number)
        assert (manifests <= most, times <= 1) == (True, True), (number, *opened.items())


def test_manifests_are_merged_by_the_tables_own_measure(opened):
    sink = new_table()
    land(sink, hour(0), rows_of(0, 1))
    assert table_of(sink).properties[MERGES] == "true"
    with table_of(sink).transaction() as change:
        change.set_properties({LEAST: "5"})
    filled(sink, 12)
    assert len(manifests_of(sink)) <= 5
    assert opened_by(opened, sink, 12)[0] <= 5
    assert list(ids(sink)) == [hour(number) for number in range(13)]


def test_a_table_that_wants_no_merged_manifests_keeps_them_apart():
    sink = new_table()
    land(sink, hour(0), rows_of(0, 1))
    with table_of(sink).transaction() as change:
        change.set_properties({MERGES: "false", LEAST: "2"})
    filled(sink, 4)
    assert len(manifests_of(sink)) == 4


@pytest.mark.parametrize("is_noted", [True, False])
def test_a_long_window_from_before_is_found_whoever_landed_it(is_noted, monkeypatch):
    """Also by a version that notes no lengths, while one that does was first."""
    from airflow_provider_streams.errors import WindowsOverlap
    from airflow_provider_streams.lake.iceberg import commit

    sink = new_table()
    filled(sink, 3)
    if not is_noted:
        monkeypatch.setattr(commit, "length_facts", lambda *_: {})
    land(sink, hour(-100, 100), rows_of(500, 1))
    land(sink, hour(3), rows_of(3, 1))
    monkeypatch.undo()
    with pytest.raises(WindowsOverlap):
        land(sink, hour(-2), rows_of(0, 1))
    land(sink, hour(-2), rows_of(600, 1), replace_overlaps=True)
    assert ids(sink) == {hour(-2): [600], **{hour(number): [number] for number in range(4)}}


def test_windows_of_any_length_that_another_engine_wrote_are_found():
    sink = new_table()
    filled(sink, 3)
    long = hour(-50, 50)
    row = {"id": 500, "value": "x", "at": NOON, "window_start": long.start, "window_end": long.end}
    table_of(sink).append(pa.Table.from_pylist([row], schema=table_of(sink).schema().as_arrow()))
    land(sink, hour(-2), rows_of(600, 1), replace_overlaps=True)
    assert long not in ids(sink)


def test_lengths_are_known_after_rollbacks_deletes_and_expiry(opened):
    sink = new_table()
    filled(sink, 3)
    table_of(sink).delete(EqualTo("id", 0))
    with table_of(sink).manage_snapshots() as change:
        change.rollback_to_snapshot(table_of(sink).snapshots()[-3].snapshot_id)
    newest = table_of(sink).current_snapshot().snapshot_id
    old = [one.snapshot_id for one in table_of(sink).snapshots() if one.snapshot_id != newest]
    table_of(sink).maintenance.expire_snapshots().by_ids(old).commit()
    filled(sink, 6)
    assert opened_by(opened, sink, 50)[0] <= 2
    assert list(ids(sink)) == [*(hour(number) for number in range(6)), hour(50)]


@pytest.mark.parametrize("partition_by", ["window", "hour"])
def test_threads_that_look_for_the_replaced_files_do_not_answer_for_each_other(monkeypatch, partition_by):
    """As on a busy machine: each thread of pyiceberg waits between its two steps."""
    sink = new_table(partition_by=partition_by)
    filled(sink, 8)
    waited = Counter()

    def slow(self, manifest):
        self.partition_fields = manifest.partitions
        waited[threading.get_ident()] += 1
        time.sleep(0.02)
        return visitors.visit(self.partition_filter, self)

    monkeypatch.setattr(visitors._ManifestEvalVisitor, "eval", slow)
    for number in (0, 3, 7):
        land(sink, hour(number), rows_of(100 + number, 2))
    assert len(waited) > 1, "several threads looked"
    monkeypatch.undo()
    assert {window: len(found) for window, found in ids(sink).items()} == {
        hour(number): 2 if number in (0, 3, 7) else 1 for number in range(8)
    }
