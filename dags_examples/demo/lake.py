"""The table that the demos land in: Iceberg on an object store with its catalog, read by an engine that is not ours."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo.orders import orders, sales
from demo.steps import say, step

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from stream_servers import SeaweedServer

CONN_ID = "lake_demo"
TABLE = "demo.orders"
_SALES = f"SELECT country, count(*), sum(cents)::BIGINT FROM lake.{TABLE} GROUP BY country ORDER BY country"  # noqa: S608


@contextmanager
def lake() -> Iterator[Lake]:
    """A store with a catalog, both gone at the end."""
    from stream_servers import SeaweedServer

    with step("SeaweedFS on loopback: an S3 store with an Iceberg REST catalog"):
        server = SeaweedServer()
        server.start()
    try:
        yield Lake(server)
    finally:
        server.stop()


class Lake:
    """Reads by DuckDB, which knows where the catalog is, and nothing of what was landed."""

    def __init__(self, server: SeaweedServer) -> None:
        self._server = server

    @property
    def connection(self) -> dict[str, Any]:
        """For Airflow."""
        return {"conn_type": "iceberg", "extra": self._server.catalog_properties}

    def read(self, events: int) -> pa.Table:
        """The table, once it was found to hold what was written: each order once, with all its fields.

        Raises:
            SystemExit: it does not.
        """
        duck = self._attached()
        _show_files(duck)
        duck.register("written", orders(events))
        rows, numbers = _only(duck, f"SELECT count(*), count(DISTINCT number) FROM lake.{TABLE}")  # noqa: S608
        fields = "number, customer, country, cents, note"
        (same,) = _only(duck, f"SELECT count(*) FROM lake.{TABLE} JOIN written USING ({fields})")  # noqa: S608
        say(f"   rows {rows:,}, distinct numbers {numbers:,}, as they were written {same:,}")
        if not rows == numbers == same == events:
            sys.exit("PROOF FAILED: the table is not what was written, each order once")
        return duck.sql(f"SELECT * EXCLUDE (note) FROM lake.{TABLE}").to_arrow_table()  # noqa: S608

    def show_sales(self, events: int) -> None:
        """A question that people ask of such a table.

        Raises:
            SystemExit: the answer is not what follows from what was written.
        """
        say(f"   {_SALES}")
        answer = self._attached().execute(_SALES).fetchall()
        for country, many, cents in answer:
            say(f"   {country}  {many:>8,} orders  {cents / 100:>14,.2f}")
        if answer != sales(events):
            sys.exit("PROOF FAILED: what was written gives another answer")
        say("   the same as of what was written")

    def _attached(self) -> duckdb.DuckDBPyConnection:
        """DuckDB with the catalog; its extensions are packages from PyPI, and it downloads nothing."""
        import duckdb

        duck = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        duck.execute("SET TimeZone = 'UTC'")
        spec = find_spec("duckdb_ext")
        (folder,) = (spec and spec.submodule_search_locations) or [""]
        for name in ("httpfs", "avro", "iceberg"):
            (file,) = Path(folder).rglob(f"{name}.duckdb_extension")
            duck.load_extension(str(file))
        store, server = self._server.storage_options, self._server
        account = {"KEY_ID": store["s3.access-key-id"], "SECRET": store["s3.secret-access-key"]}
        place = {"ENDPOINT": server.url.removeprefix("http://"), "REGION": store["s3.region"], "URL_STYLE": "path"}
        client = {"CLIENT_ID": server.access_key, "CLIENT_SECRET": server.secret_key}
        tokens = {"OAUTH2_SERVER_URI": server.catalog_properties["oauth2-server-uri"]}
        duck.execute(f"CREATE SECRET store (TYPE s3, USE_SSL false, {_options({**account, **place})})")
        duck.execute(f"CREATE SECRET catalog (TYPE iceberg, {_options({**client, **tokens})})")
        where = _options({"ENDPOINT": server.catalog_url, "SECRET": "catalog", "ACCESS_DELEGATION_MODE": "none"})
        duck.execute(f"ATTACH '{server.catalog_properties['warehouse']}' AS lake (TYPE iceberg, {where})")
        return duck


def _show_files(duck: duckdb.DuckDBPyConnection) -> None:
    (snapshots,) = _only(duck, f"SELECT count(*) FROM iceberg_snapshots(lake.{TABLE})")  # noqa: S608
    (files,) = _only(duck, f"SELECT count(*) FROM iceberg_metadata(lake.{TABLE}) WHERE status <> 'DELETED'")  # noqa: S608
    say(f"   Iceberg table {TABLE}: {files} data files, {snapshots} snapshots")


def _only(duck: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """The one row of an answer."""
    (row,) = duck.execute(query).fetchall()
    return row


def _options(values: dict[str, str]) -> str:
    return ", ".join(f"{name} '{value}'" for name, value in values.items())
