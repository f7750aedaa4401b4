"""No room for a window's files: said by name, the old window stays, and nothing is left that takes more room."""

from __future__ import annotations

import resource
from contextlib import contextmanager

import pytest

from airflow_provider_streams.errors import StorageFull
from airflow_provider_streams.lake.connections import given
from tests.integration.lake.killed_landing import land
from tests.integration.lake.landing import hour
from tests.integration.lake.test_kills import OLD, Delta, Iceberg, Parquet


@contextmanager
def no_file_beyond(size):
    """Of this process: what a full disk says, no mount needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(params=["iceberg", "delta", "parquet"])
def table(request, tmp_path):
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    with given("store", catalog):
        yield {
            "iceberg": lambda: Iceberg("full"),
            "delta": lambda: Delta(tmp_path / "delta"),
            "parquet": lambda: Parquet(tmp_path / "parquet"),
        }[request.param]()


def test_a_full_disk_is_said_by_name_and_leaves_the_old_window(table):
    land(table.sink, hour(0), OLD)
    before = table.orphans()
    with no_file_beyond(16_384), pytest.raises(StorageFull, match=r"Free some, then land the window again") as raised:
        land(table.sink, hour(0), list(range(100_000)))
    assert not raised.value.retryable
    assert "orders" in raised.value.target or "full" in raised.value.target
    assert table.ids() == OLD
    assert table.orphans() == before == set()
