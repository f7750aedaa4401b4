"""Which file system a folder is in, how it is reached, and that no error shows a key."""

from __future__ import annotations

import pyarrow.fs as pafs
import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.storage import Storage, place_in

SECRET = "canary-of-the-store"


@pytest.mark.parametrize(
    ("root", "options", "kind", "path"),
    [
        ("file:///lake/shop%20orders", {}, pafs.LocalFileSystem, "/lake/shop orders"),
        ("s3://lake/orders/", {"s3.endpoint": "http://127.0.0.1:9"}, pafs.S3FileSystem, "lake/orders"),
        ("s3a://lake/a%25b", {"client.region": "eu-west-1"}, pafs.S3FileSystem, "lake/a%b"),
        ("gs://lake/orders", {"gcs.service.host": "http://127.0.0.1:9"}, pafs.GcsFileSystem, "lake/orders"),
        ("gs://lake/orders", {"gcs.oauth2.token": SECRET}, pafs.GcsFileSystem, "lake/orders"),
        ("abfs://lake/orders", {"adls.account-name": "shop"}, pafs.AzureFileSystem, "lake/orders"),
        ("abfss://lake@shop.dfs.core.windows.net/orders", {}, pafs.AzureFileSystem, "lake/orders"),
    ],
)
def test_a_folder_is_in_the_file_system_of_its_scheme(root, options, kind, path):
    keys = {"s3.access-key-id": "me", "s3.secret-access-key": SECRET, "adls.account-key": "Y2FuYXJ5"}
    storage = Storage(root, {**options, **keys})
    system, found = storage.open()
    assert isinstance(system, kind)
    assert found == path
    assert SECRET not in repr(storage)
    assert Storage.from_json(storage.to_json()) == storage


def test_options_of_s3_have_the_names_of_icebergs_file_io():
    given = {
        "client.region": "eu-west-1",
        "s3.region": "us-west-2",
        "s3.request-timeout": "2.5",
        "s3.endpoint": "http://x",
    }
    system, _ = Storage("s3://lake/x", {**given, "s3.anonymous": "true"}).open()
    assert system.region == "us-west-2"
    assert Storage("s3://lake/x", {"s3.endpoint": "http://x"}).open()[0].region == "us-east-1"  # AWS is not asked


def test_what_cannot_be_reached_is_said_without_keys():
    with pytest.raises(InvalidRequest, match="no file system is known as ftp"):
        Storage("ftp://x/y").open()
    options = {"s3.secret-access-key": SECRET, "s3.request-timeout": SECRET}
    with pytest.raises(InvalidRequest, match="cannot be reached") as raised:
        Storage("s3://lake/orders", options).open()
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("folder", "location", "place"),
    [
        ("file:///lake/o/data", "file:/lake/o/data/a=1/x.parquet", "a=1/x.parquet"),
        ("/lake/o/data", "file://localhost/lake/o/data/x.parquet", "x.parquet"),
        ("file:/lake/o/data", "/lake/o/data/x#1?.parquet", "x#1?.parquet"),
        ("s3://lake/o/data", "s3a://lake/o/data/a%20b/x.parquet", "a%20b/x.parquet"),
        ("gs://lake/o", "gcs://lake/o/x.parquet", "x.parquet"),
        ("abfs://lake@shop/o", "abfss://lake@shop/o/x.parquet", "x.parquet"),
        ("s3://lake/o/data", "s3://other/o/data/x.parquet", None),
        ("s3://lake/o/data", "gs://lake/o/data/x.parquet", None),
        ("s3://lake/o/data", "s3://lake/o/data2/x.parquet", None),
        ("hdfs://one/o", "hdfs://two/o/x.parquet", None),
    ],
)
def test_a_file_is_in_a_folder_however_both_are_written(folder, location, place):
    assert place_in(folder, location) == place


@pytest.mark.parametrize("variable", ["CLOUD_STORAGE_EMULATOR_ENDPOINT", "CLOUD_STORAGE_TESTBENCH_ENDPOINT"])
@pytest.mark.parametrize(
    ("told", "address"),
    [({}, "http://127.0.0.1:1"), ({}, "127.0.0.1:1"), ({"gcs.service.host": "https://store"}, "https://other")],
)
def test_the_environment_leads_no_token_of_a_google_bucket_elsewhere(variable, told, address, monkeypatch):
    monkeypatch.setenv(variable, address)
    with pytest.raises(InvalidRequest, match=f"variable {variable} would lead the token") as caught:
        Storage("gs://lake/orders", {"gcs.oauth2.token": "canary-7", **told}).open()
    assert "canary" not in str(caught.value)
    Storage("gs://lake/orders", told).open()  # the machine's own token goes where the machine says
