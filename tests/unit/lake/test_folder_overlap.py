"""Which folders are other tables'."""

from __future__ import annotations

import pyarrow.fs as pafs
import pytest

from airflow_provider_streams.lake.folder_overlap import sign_of_owner_around, tables_in


def test_tables_in_a_folder_are_found_by_their_files():
    places = [
        "_delta_log/00000000000000000000.json",  # the folder's own
        "metadata/v1.metadata.json",
        "a/_delta_log/00000000000000000000.json",
        "b/c/_table.json",
        "d=1/metadata/v1.metadata.json",
        "e/metadata/v1.json",
        "f/v1.metadata.json",
        "g/data/x.parquet",
    ]
    assert tables_in(places) == {"a", "b/c", "d=1"}


@pytest.mark.parametrize(
    ("made", "sign"),
    [
        ("shop/_delta_log/0.json", "shop/_delta_log"),
        ("shop/orders/_table.json", "shop/orders/_table.json"),
        ("shop/metadata/v1.metadata.json", None),
        ("other/_delta_log/0.json", None),
    ],
)
def test_a_folder_is_anothers_where_a_delta_or_parquet_table_is_around_it(tmp_path, made, sign):
    (tmp_path / made).parent.mkdir(parents=True)
    (tmp_path / made).touch()
    found = sign_of_owner_around(pafs.LocalFileSystem(), f"{tmp_path}/shop/orders/data")
    assert found == (None if sign is None else f"{tmp_path}/{sign}")
