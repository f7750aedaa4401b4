"""Delta tables on a real S3 store, through a proxy that spoils requests."""

from __future__ import annotations

import re
import threading

import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.errors import CommitStateUnknown, SinkError, TableUnavailable
from airflow_provider_streams.lake import connections
from airflow_provider_streams.lake.delta import transaction_log as delta_log
from airflow_provider_streams.lake.delta.table_version import entry_of
from airflow_provider_streams.lake.delta.writer import DeltaWriter, storage_of
from airflow_provider_streams.model.sinks.landing import TableState
from tests.integration.lake import duck
from tests.integration.lake.delta_reading import adds, commits, windows
from tests.integration.lake.fault_proxy import FaultProxy
from tests.integration.lake.landing import TERMS, Attempt, hour, land, rows_of, stored_files

pytestmark = pytest.mark.lake


@pytest.fixture
def proxy(seaweed_server):
    with FaultProxy(seaweed_server.url) as proxy:
        yield proxy


@pytest.fixture
def sink(seaweed_server, lake_folder, proxy, monkeypatch):
    """The table, reached through the proxy."""
    options = delta_log.object_store_options
    monkeypatch.setattr(delta_log, "object_store_options", lambda storage: {**options(storage), "max_retries": "2"})
    patience = {"s3.connect-timeout": "5", "s3.request-timeout": "20"}
    spoiled = {**seaweed_server.storage_options, **patience, "s3.endpoint": proxy.url}
    with connections.given("store", seaweed_server.storage_options), connections.given("spoiled", spoiled):
        yield DeltaSink(f"{lake_folder}/orders", "spoiled")


def plain(sink):
    return DeltaSink(sink.path, "store")


def held(sink):
    return {window: sorted(row["id"] for row in rows) for window, rows in windows(storage_of(plain(sink))).items()}


def commits_to_the_log(request):
    return request.method == "PUT" and "/_delta_log/" in request.target


def test_windows_are_landed_replaced_and_emptied_as_another_reader_sees(sink):
    for window, rows in [(0, 10), (1, 5), (2, 8), (0, 7), (2, 0)]:
        land(sink, hour(window), rows_of(window * 100, rows))
    assert held(sink) == {hour(0): list(range(7)), hour(1): list(range(100, 105)), hour(2): []}
    assert DeltaWriter.read_state(sink) == TableState(TERMS.mark, frozenset(held(sink)))
    read = duck.connect(storage_of(plain(sink)), "delta")
    table = read.sql("SELECT window_start, window_end, id FROM delta_scan($path)", params={"path": sink.path})
    rows = table.to_arrow_table().to_pylist()
    assert sorted((row["window_start"], row["window_end"], row["id"]) for row in rows) == [
        (window.start, window.end, number) for window, numbers in sorted(held(sink).items()) for number in numbers
    ]
    later = table.filter("window_start >= '2026-11-20 13:00:00+00' AND id >= 104")
    assert [row["id"] for row in later.to_arrow_table().to_pylist()] == [104]


@pytest.fixture
def seen(sink):
    """The version with one window, loaded a while ago."""
    land(sink, hour(0), rows_of(0, 10))
    loaded = delta_log.load(storage_of(sink))
    return delta_log.SeenVersion(storage_of(sink), loaded), loaded.number


def test_what_others_landed_meanwhile_follows_the_version_that_was_loaded(sink, seen):
    version, number = seen
    for later in (1, 2):
        land(plain(sink), hour(later), rows_of(later * 100, 5))
    newest = version.newest()
    assert (newest.number, set(newest.contents())) == (number + 2, {hour(0), hour(1), hour(2)})


@pytest.mark.parametrize("rows", [10, 1000], ids=["by its time", "by its size"])
def test_a_table_that_was_made_again_is_not_taken_for_the_version_that_was_loaded(sink, seen, rows):
    version, number = seen
    system, root = storage_of(sink).open()
    made = system.get_file_info(entry_of(root, number)).mtime
    remove(system, root)
    assert version.newest() is None
    while modified(system, f"{root}-clock") <= made:  # the store tells whole seconds
        pass
    land(plain(sink), hour(3), rows_of(0, rows))
    newest = version.newest()
    assert (newest.number, set(newest.contents())) == (number, {hour(3)})


def remove(system, root):
    """A table, with the folders that this store keeps for it."""
    inside = system.get_file_info(pafs.FileSelector(root, recursive=True))
    for one in sorted(inside, key=lambda one: one.path, reverse=True):
        (system.delete_file if one.is_file else system.delete_dir)(one.path)


def modified(system, path):
    """The store's time now."""
    with system.open_output_stream(path) as file:
        file.write(b"now")
    return system.get_file_info(path).mtime


@pytest.mark.slow_except("lost")
@pytest.mark.parametrize("fault", ["refused", "spoiled", "lost", "late"])
def test_a_commit_is_done_once_whatever_became_of_its_answer(sink, proxy, fault):
    land(sink, hour(0), rows_of(0, 10))
    proxy.once(fault, commits_to_the_log)
    land(sink, hour(0), rows_of(100, 5))
    assert len(proxy.spoilt) == 1
    if fault == "late":
        assert proxy.send_late_ones() == [412]
    assert held(sink) == {hour(0): list(range(100, 105))}
    assert len(list(commits(storage_of(plain(sink))))) == 3  # made, landed, landed again


@pytest.mark.slow_except("late")
@pytest.mark.parametrize("fault", ["spoiled", "late"])
def test_a_commit_whose_answer_never_comes_keeps_its_files(sink, proxy, fault):
    land(sink, hour(0), rows_of(0, 10))
    first = []

    def decide(request):
        """The first commit is spoiled, and then nothing is heard of the log any more."""
        if commits_to_the_log(request) and not first:
            first.append(request)
            return fault
        return "refused" if first and "/_delta_log/" in request.target else None

    proxy.fault = decide
    with pytest.raises(CommitStateUnknown, match="Landing it again settles that") as caught:
        land(sink, hour(0), rows_of(100, 5))
    assert caught.value.retryable
    proxy.fault = lambda _: None
    if fault == "late":
        assert held(sink) == {hour(0): list(range(10))}
        assert proxy._forward(first[0])[0] == 200
    assert held(sink) == {hour(0): list(range(100, 105))}
    land(sink, hour(0), rows_of(200, 2))
    assert held(sink) == {hour(0): [200, 201]}


def test_a_commit_that_may_still_come_keeps_its_files_whatever_fails_next(sink, monkeypatch):
    land(sink, hour(0), rows_of(0, 10))
    failures = iter([OSError("no answer"), ValueError("refused")])

    def fails(*_arguments, **_named):
        raise next(failures)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", fails)
    with pytest.raises(CommitStateUnknown):
        land(sink, hour(0), rows_of(100, 5))
    assert len(stored_files(storage_of(plain(sink))) - adds(storage_of(plain(sink))).keys()) == 2


def test_windows_that_are_landed_at_once_are_all_there(sink):
    land(sink, hour(9), rows_of(0, 0))
    attempts = [Attempt(sink, hour(n), rows_of(n, 2)).write() for n in range(4)]
    threads = [threading.Thread(target=attempt.commit) for attempt in attempts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held(sink) == {hour(9): [], **{hour(n): [n, n + 1] for n in range(4)}}


def test_a_store_that_fails_while_files_are_written_changes_nothing(sink, proxy):
    land(sink, hour(0), rows_of(0, 10))
    proxy.fault = lambda request: "refused" if ".parquet" in request.target else None
    with pytest.raises(TableUnavailable, match="data file"):
        land(sink, hour(0), rows_of(100, 5))
    proxy.fault = lambda _: None
    assert held(sink) == {hour(0): list(range(10))}
    assert stored_files(storage_of(plain(sink))) == adds(storage_of(plain(sink))).keys()


def test_a_store_that_does_not_answer_may_later(sink, seaweed_server):
    gone = {**seaweed_server.storage_options, "s3.endpoint": "http://127.0.0.1:1"}
    with connections.given("gone", gone), pytest.raises(TableUnavailable) as caught:
        DeltaWriter.read_state(DeltaSink(sink.path, "gone"))
    assert caught.value.retryable


@pytest.mark.parametrize("wrong", ["s3.secret-access-key", "s3.access-key-id"])
def test_wrong_keys_do_not_pass_by_waiting_and_are_not_shown(sink, seaweed_server, wrong):
    told = {**seaweed_server.storage_options, wrong: "canary-6a9f"}
    with connections.given("wrong", told), pytest.raises(SinkError) as caught:
        land(DeltaSink(sink.path, "wrong"), hour(0), rows_of(0, 1))
    assert not caught.value.retryable
    assert re.search(r"(InvalidAccessKeyId|SignatureDoesNotMatch): .*the keys are right", str(caught.value))
    assert "<" not in str(caught.value)
    assert "canary-6a9f" not in str(caught.value)
    assert seaweed_server.secret_key not in str(caught.value)


def test_a_bucket_that_is_not_there_is_no_missing_table(sink):
    with pytest.raises(SinkError, match=r"nowhere/orders: .*\(NoSuchBucket: [^<>]*\): make it at the store"):
        DeltaWriter.read_state(DeltaSink("s3://nowhere/orders", "store"))
