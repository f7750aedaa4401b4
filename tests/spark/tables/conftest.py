"""One Spark session with a catalog of Iceberg tables. Only where that Spark is: see `test_table_sink.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from airflow_provider_streams.model.sinks.table_sink import TableSink
from tests.spark.iceberg_spark import JAR

collect_ignore_glob = [] if JAR in os.environ else ["*.py"]


def catalog_conf(folder: Path) -> dict[str, str]:
    """Spark's settings for a catalog `prod` of Iceberg tables in a folder."""
    return {
        "spark.jars": os.environ[JAR],
        "spark.sql.catalog.prod": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.prod.type": "hadoop",
        "spark.sql.catalog.prod.warehouse": str(folder),
        "spark.sql.catalog.prod.cache-enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "OFF",
    }


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory):
    from airflow_provider_streams.spark.launch.embedded import embedded_session
    from airflow_provider_streams.spark.launch.settings import SparkSettings

    tests = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), tests]))
    sys.path.insert(0, tests)
    session = embedded_session(SparkSettings(catalog_conf(tmp_path_factory.mktemp("lake"))), quick_start=True)
    yield session
    session.stop()


@pytest.fixture
def sink(request: pytest.FixtureRequest, spark):
    """A table that does not exist yet."""
    name = "".join(one if one.isalnum() else "_" for one in request.node.name)
    made = TableSink(f"prod.shop.{name}")
    yield made
    spark.sql(f"DROP TABLE IF EXISTS {made.table} PURGE")
