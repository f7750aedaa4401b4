"""A catalog that fails, is silent, or whose answer is lost: the old window or the new one, and no file lost."""

from __future__ import annotations

import time

import pytest

from airflow_provider_streams.errors import CommitStateUnknown, SinkError, StorageFull, TableUnavailable, TaskCancelled
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg import commit as iceberg_commit
from airflow_provider_streams.lake.iceberg.catalogs import timeouts
from tests.integration.lake.fault_proxy import FaultProxy
from tests.integration.lake.iceberg_reading import ids, new_table, stored_files
from tests.integration.lake.landing import Attempt, hour, land, rows_of

pytestmark = pytest.mark.lake


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(iceberg_commit, "_PAUSES_SECONDS", (0.0, 0.05, 0.1))
    monkeypatch.setattr(timeouts, "ANSWER_SECONDS", 3.0)


@pytest.fixture
def proxy(seaweed_server):
    """Between pyiceberg and the catalog, whose table has one window."""
    with FaultProxy(seaweed_server.catalog_url) as proxy:
        tokens = f"{proxy.url}/v1/oauth/tokens"
        with given(
            "iceberg_test", {**seaweed_server.catalog_properties, "uri": proxy.url, "oauth2-server-uri": tokens}
        ):
            yield proxy


@pytest.fixture
def sink(proxy):
    sink = new_table()
    land(sink, hour(0), rows_of(0, 3))
    land(sink, hour(1), rows_of(50, 1))
    return sink


def is_commit(request):
    return request.method == "POST" and request.target.endswith("/tables/orders")


def is_sound(sink):
    """Every file that the table names is there; pyiceberg reads it all."""
    return ids(sink)


@pytest.mark.slow_except("0-lost", "2-spoiled")
@pytest.mark.parametrize("fault", ["refused", "spoiled", "lost"])
@pytest.mark.parametrize("rows", [0, 2])
def test_a_commit_is_done_once_whatever_became_of_its_answer(sink, proxy, fault, rows):
    attempt = Attempt(sink, hour(0), rows_of(10, rows)).write()
    proxy.once(fault, is_commit)
    attempt.commit()
    assert len(proxy.spoilt) == 1
    attempt.writer.discard()
    assert is_sound(sink) == {**({hour(0): [10, 11]} if rows else {}), hour(1): [50]}
    assert sum(is_commit(one) for one in proxy.seen) == (2 if fault == "refused" else 1) + 2


def test_a_commit_that_comes_late_is_refused_by_the_catalog(sink, proxy):
    attempt = Attempt(sink, hour(0), rows_of(10, 2)).write()
    proxy.once("late", is_commit)
    attempt.commit()
    attempt.writer.discard()
    assert proxy.send_late_ones() == [409]
    assert is_sound(sink) == {hour(0): [10, 11], hour(1): [50]}


def test_a_commit_in_an_unknown_state_keeps_its_files(sink, proxy):
    attempt = Attempt(sink, hour(0), rows_of(10, 2)).write()
    before = stored_files(sink)
    proxy.once("late", is_commit, times=9)
    with pytest.raises(CommitStateUnknown) as raised:
        attempt.commit()
    assert raised.value.retryable
    attempt.writer.discard()
    proxy.fault = lambda _: None
    assert stored_files(sink) == before
    assert proxy.send_late_ones() == [200, 409, 409]
    assert is_sound(sink) == {hour(0): [10, 11], hour(1): [50]}


@pytest.mark.parametrize("window", [hour(0), hour(5)])
def test_a_commit_that_comes_while_it_is_tried_again_is_done_once(sink, proxy, monkeypatch, window):
    attempt = Attempt(sink, window, rows_of(10, 2)).write()
    proxy.once("late", is_commit)
    change = iceberg_commit.Replacement._change
    changes = []

    def as_the_first_one_comes(*arguments):
        changes.append(change(*arguments))
        if len(changes) == 2:
            assert proxy.send_late_ones() == [200]
        return changes[-1]

    monkeypatch.setattr(iceberg_commit.Replacement, "_change", as_the_first_one_comes)
    attempt.commit()
    assert len(changes) == 2
    assert is_sound(sink)[window] == [10, 11]


def test_an_attempt_that_ends_during_its_commit_keeps_its_files(sink, monkeypatch):
    from pyiceberg.table import Transaction

    commit = Transaction.commit_transaction

    def ended_before_the_answer(transaction):
        commit(transaction)
        raise TaskCancelled

    attempt = Attempt(sink, hour(0), rows_of(10, 2)).write()
    monkeypatch.setattr(Transaction, "commit_transaction", ended_before_the_answer)
    with pytest.raises(TaskCancelled):
        attempt.commit()
    attempt.writer.discard()
    assert is_sound(sink) == {hour(0): [10, 11], hour(1): [50]}


@pytest.mark.parametrize("kind", [TableUnavailable, StorageFull, SinkError])
def test_a_commit_that_may_still_come_keeps_its_files_whatever_fails_next(sink, proxy, monkeypatch, kind):
    attempt = Attempt(sink, hour(0), rows_of(10, 2)).write()
    proxy.once("late", is_commit)
    changes = []
    change = iceberg_commit.Replacement._change

    def fails_later(*arguments):
        changes.append(arguments)
        if len(changes) > 1:
            raise kind("the store", "no answer")
        return change(*arguments)

    monkeypatch.setattr(iceberg_commit.Replacement, "_change", fails_later)
    with pytest.raises(CommitStateUnknown):
        attempt.commit()
    attempt.writer.discard()
    assert proxy.send_late_ones() == [200]
    assert is_sound(sink) == {hour(0): [10, 11], hour(1): [50]}


def test_a_catalog_that_stays_away_changes_nothing(sink, proxy):
    before = stored_files(sink)
    attempt = Attempt(sink, hour(0), rows_of(10, 2)).write()
    proxy.once("refused", lambda _: True, times=99)
    with pytest.raises(TableUnavailable) as raised:
        attempt.commit()
    assert raised.value.retryable
    attempt.writer.discard()
    proxy.fault = lambda _: None
    assert is_sound(sink) == {hour(0): [0, 1, 2], hour(1): [50]}
    assert stored_files(sink) == before


def test_a_silent_catalog_is_not_waited_for_for_ever(sink, proxy, monkeypatch):
    monkeypatch.setattr(timeouts, "ANSWER_SECONDS", 1.0)
    attempt = Attempt(sink, hour(0), rows_of(10, 2)).write()
    silent = []

    def be_silent_once(request):
        if is_commit(request) and not silent:
            silent.append(request)
            time.sleep(2.0)  # then it goes through, and the client listens no more

    proxy.fault = be_silent_once
    attempt.commit()
    assert silent
    assert is_sound(sink) == {hour(0): [10, 11], hour(1): [50]}


@pytest.mark.slow_except("-m0.avro")
@pytest.mark.parametrize("part", [".parquet", "-m0.avro", "/snap-"])
def test_a_store_that_fails_at_any_file_changes_nothing(sink, seaweed_server, part):
    before = stored_files(sink)
    with FaultProxy(seaweed_server.url) as store:
        store.fault = lambda request: "refused" if part in request.target and request.method != "GET" else None
        with given("iceberg_test", {**seaweed_server.catalog_properties, "s3.endpoint": store.url}):
            attempt = Attempt(sink, hour(0), rows_of(10, 2))
            with pytest.raises(TableUnavailable) as raised:
                attempt.land()
        assert store.spoilt
        assert raised.value.retryable
    assert is_sound(sink) == {hour(0): [0, 1, 2], hour(1): [50]}
    assert stored_files(sink) - before == set()
