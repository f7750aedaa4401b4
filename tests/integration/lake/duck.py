"""DuckDB as another reader of tables, with its extensions from PyPI: it downloads nothing."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

from airflow_provider_streams.lake.storage import Storage


def connect(storage: Storage, *extensions: str) -> Any:
    """A database that can read a storage's files."""
    spec = find_spec("duckdb_ext")
    assert spec is not None
    (package,) = spec.submodule_search_locations or []
    duck = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    duck.execute("SET TimeZone = 'UTC'")
    for name in ("httpfs", *extensions):
        (file,) = Path(package).rglob(f"{name}.duckdb_extension")
        duck.load_extension(str(file))
    if storage.options:
        endpoint = storage.options["s3.endpoint"].removeprefix("http://")
        duck.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{storage.options['s3.access-key-id']}', SECRET "
            f"'{storage.options['s3.secret-access-key']}', REGION '{storage.options['s3.region']}', "
            f"ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)"
        )
    return duck
