"""A store whose certificate an authority of its own signed, with paths in place of bucket names in its addresses."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.errors import InvalidRequest, SinkError, TableUnavailable
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.delta.writer import DeltaWriter
from stream_servers import SeaweedServer
from tests.integration.lake.iceberg_reading import ids, new_table
from tests.integration.lake.landing import hour, land, rows_of

pytestmark = pytest.mark.lake

_LAND_DELTA = """
import json, sys
from airflow_provider_streams import DeltaSink
from airflow_provider_streams.lake.connections import given
from tests.integration.lake.delta_reading import windows
from tests.integration.lake.landing import hour, land, rows_of
from airflow_provider_streams.lake.delta.writer import storage_of

with given("store", json.load(sys.stdin)):
    sink = DeltaSink("s3://lake/orders", "store")
    for rows in (5, 3):
        land(sink, hour(0), rows_of(0, rows))
    print([len(rows) for rows in windows(storage_of(sink)).values()])
"""


@pytest.fixture(scope="module")
def secure():
    with SeaweedServer(tls=True) as server:
        yield server


def options(server, *, trusted=True):
    authority = {"s3.tls-ca-file": str(server.certificates.authority)} if trusted else {}
    return {"s3.endpoint": server.secure_url, **authority}


def test_an_iceberg_table_is_written_and_read_with_the_authority_of_its_connection(secure):
    sink = new_table()
    with given("iceberg_test", {**secure.catalog_properties, **options(secure)}):
        land(sink, hour(0), rows_of(0, 3))
        land(sink, hour(0), rows_of(0, 2))
        assert ids(sink) == {hour(0): [0, 1]}
    with given("iceberg_test", {**secure.catalog_properties, **options(secure, trusted=False)}):
        with pytest.raises(SinkError, match=r"s3\.tls-ca-file") as raised:
            land(sink, hour(0), rows_of(0, 3))
        assert not isinstance(raised.value, TableUnavailable)


def test_a_delta_table_is_with_the_authority_of_the_environment(secure):
    told = {**secure.storage_options, **options(secure)}
    ran = subprocess.run(
        [sys.executable, "-c", _LAND_DELTA],
        input=json.dumps(told),
        env={**os.environ, "SSL_CERT_FILE": told["s3.tls-ca-file"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "[3]\n", ran.stderr[-2000:]
    with given("store", told), pytest.raises(InvalidRequest, match="SSL_CERT_FILE"):
        DeltaWriter.read_state(DeltaSink("s3://lake/orders", "store"))
