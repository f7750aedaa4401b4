"""The names that pyiceberg reads a table's files by, as their file systems take them."""

import pytest
from pyarrow.fs import AzureFileSystem

from airflow_provider_streams.lake.iceberg.files.file_io import StoreFileIO


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("s3://lake/orders/a b.parquet", "lake/orders/a b.parquet"),
        ("gs://lake/orders/1", "lake/orders/1"),
        ("abfs://lake/orders/1", "lake/orders/1"),
        ("abfss://lake@account.dfs.core.windows.net/orders/1", "lake/orders/1"),
        ("file:///lake/orders/1", "/lake/orders/1"),
        ("/lake/orders/1", "/lake/orders/1"),
    ],
)
def test_a_location_is_a_path_of_its_file_system(location, path):
    assert StoreFileIO.parse_location(location)[2] == path


def test_the_token_that_is_vended_for_an_account_is_used():
    vended = {"adls.sas-token.account.dfs.core.windows.net": "sig=1"}
    opened = StoreFileIO(vended).fs_by_scheme("abfss", "lake@account.dfs.core.windows.net")
    assert opened.equals(AzureFileSystem(account_name="account", sas_token="?sig=1"))
