"""A catalog that vends keys for its tables' files: writers have them, nothing shows them, and they expire."""

from __future__ import annotations

import time

import pytest

from airflow_provider_streams.errors import CredentialsExpired, SinkError, TableUnavailable
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg import commit as iceberg_commit
from airflow_provider_streams.lake.storage import Storage
from tests.integration.lake.iceberg_reading import ids, new_table
from tests.integration.lake.landing import Attempt, hour, land, rows_of
from tests.integration.lake.vending_catalog import lending

pytestmark = pytest.mark.lake

ENDED = {"s3.access-key-id": "ended-5c2e", "s3.secret-access-key": "canary-77d1", "s3.session-token": "canary-9e0b"}


@pytest.fixture
def catalog(seaweed_server, monkeypatch):
    monkeypatch.setattr(iceberg_commit, "_PAUSES_SECONDS", (0.0, 0.05))
    with lending(seaweed_server) as catalog, given("iceberg_test", catalog.properties):
        yield catalog


@pytest.mark.parametrize("place", ["config", "storage-credentials"])
def test_tasks_and_driver_use_vended_credentials_in_place_of_the_connections(catalog, place):
    if place == "config":
        catalog.lends = {"config": catalog.keys}
    sink = new_table()
    attempt = land(sink, hour(0), rows_of(0, 3))
    assert ids(sink) == {hour(0): [0, 1, 2]}
    storage = attempt.target.storage
    assert storage.is_vended
    assert Storage.from_json(storage.to_json()) == storage
    secret = catalog.keys["s3.secret-access-key"]
    assert secret in attempt.target.to_json()  # which is veiled, and never shown
    assert secret not in repr(attempt.target)


def test_keys_that_end_while_tasks_write_are_new_ones_for_the_next_attempt(catalog):
    sink = new_table()
    land(sink, hour(0), rows_of(0, 3))
    catalog.once = [{"config": ENDED}]
    with pytest.raises(SinkError) as at_once:
        Attempt(sink, hour(1), rows_of(50, 2)).write()
    attempt = Attempt(sink, hour(0), rows_of(50, 2))
    attempt.target = attempt.writer.open(attempt.rows.schema)
    over = Storage(attempt.target.storage.root, {**attempt.target.storage.options, **ENDED}, is_vended=True)
    object.__setattr__(attempt.target, "storage", over)  # the vended credentials have expired by now
    with pytest.raises(CredentialsExpired, match="shorter windows") as later:
        attempt.write_files()
    attempt.writer.discard()
    for raised in (at_once, later):
        assert raised.value.retryable
        assert isinstance(raised.value, CredentialsExpired)
        assert "canary" not in str(raised.value)
    assert ids(sink) == {hour(0): [0, 1, 2]}
    land(sink, hour(0), rows_of(50, 2))
    assert ids(sink) == {hour(0): [50, 51]}


def test_keys_that_expire_before_the_commit_are_vended_again(catalog):
    sink = new_table()
    land(sink, hour(0), rows_of(0, 3))
    attempt = Attempt(sink, hour(0), rows_of(10, 2)).write()
    catalog.once = [{"config": ENDED}]
    attempt.commit()
    attempt.writer.discard()
    assert not catalog.once
    assert ids(sink) == {hour(0): [10, 11]}


def test_keys_that_say_when_they_end_are_over_then_whatever_the_store_says():
    refused = PermissionError("AWS Error ACCESS_DENIED during PutObject operation: Access Denied.")
    for ends, kind in ((time.time() - 1, CredentialsExpired), (time.time() + 60, SinkError)):
        told = {"s3.session-token-expires-at-ms": str(int(ends * 1000))}
        assert type(Storage("s3://lake/orders", told, is_vended=True).failure("no", refused)) is kind
        assert type(Storage("s3://lake/orders", told).failure("no", refused)) is SinkError


def test_a_catalog_that_wants_to_sign_every_request_is_refused_in_words(catalog):
    keyless = {name: value for name, value in catalog.properties.items() if name not in ENDED}
    with given("iceberg_test", keyless):
        sink = new_table()
        land(sink, hour(0), rows_of(0, 3))
        catalog.lends = {"config": {"s3.remote-signing-enabled": "true", "s3.access-key-id": ""}}
        with pytest.raises(SinkError, match="sign every request") as raised:
            land(sink, hour(0), rows_of(0, 3))
    assert not isinstance(raised.value, TableUnavailable)
