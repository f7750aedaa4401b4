"""Jobs that land in Delta tables on a real S3 store, and in Azure's: files of tasks or of a transform, one commit."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.lake import connections
from airflow_provider_streams.lake.delta.storage import object_store_options
from airflow_provider_streams.lake.delta.writer import DeltaWriter, storage_of
from tests.spark.running import run_window

pytestmark = pytest.mark.lake


@pytest.fixture(params=["s3", "azure"])
def sink(request):
    if request.param == "s3":
        server, folder = (request.getfixturevalue(name) for name in ("seaweed_server", "lake_folder"))
    else:
        server = request.getfixturevalue("azurite")
        folder = f"{server.folder}/test-{secrets.token_hex(4)}"
    with connections.given("store", server.storage_options):
        yield DeltaSink(f"{folder}/orders", "store")


def read(sink):
    return DeltaTable(sink.path, storage_options=object_store_options(storage_of(sink))).to_pyarrow_table()


@pytest.mark.slow_except("driver-s3-None", "tasks-s3-transforms:with_a_column_more")
@pytest.mark.parametrize("transform", [None, "transforms:with_a_column_more"])
def test_a_window_lands_is_replaced_and_emptied(spark, stream, way, sink, transform):
    def run(plan):
        spec = stream.spec(plan, sink=sink, small_plan_bytes=way, transform=transform)
        return run_window(replace(spec, table=storage_of(sink).options), spark)

    windows = [run(plan) for plan in (stream.plan(10, 20), stream.plan(20, 30), stream.plan(10, 20))]
    assert [landed.written for landed in windows] == [landed.receipt.rows for landed in windows] == [1200] * 3
    assert (read(sink).num_rows, len(set(read(sink)["number"].to_pylist()))) == (2400, 1200)
    assert len(DeltaWriter.read_state(sink).windows) == 2
    assert run(stream.empty_plan()).written == 0
    assert read(sink).num_rows == 1200
    assert len(DeltaWriter.read_state(sink).windows) == 2
