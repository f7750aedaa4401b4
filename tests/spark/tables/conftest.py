"""One Spark session with a catalog of Iceberg tables. Only where that Spark is: see `test_table_sink.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from airflow_provider_streams.model.sinks.table_sink import TableSink
from tests.spark.lake_spark import JARS

collect_ignore_glob = [] if JARS in os.environ else ["*.py"]


def catalog_conf(folder: Path) -> dict[str, str]:
    """Spark's settings for a catalog `prod` of Iceberg tables in a folder."""
    return {
        "spark.jars": os.environ[JARS],
        "spark.sql.catalog.prod": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.prod.type": "hadoop",
        "spark.sql.catalog.prod.warehouse": str(folder),
        "spark.sql.catalog.prod.cache-enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "OFF",
    }


DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory):
    from airflow_provider_streams.spark.launch.embedded import embedded_session
    from airflow_provider_streams.spark.settings.spark_settings import SparkSettings

    tests = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), tests]))
    sys.path.insert(0, tests)
    conf = {**catalog_conf(tmp_path_factory.mktemp("lake")), **DELTA}
    session = embedded_session(SparkSettings(conf), quick_start=True)
    yield session
    session.stop()


@pytest.fixture
def sink(request: pytest.FixtureRequest, spark):
    """A table that does not exist yet."""
    name = "".join(one if one.isalnum() else "_" for one in request.node.name)
    made = TableSink(f"prod.shop.{name}")
    yield made
    spark.sql(f"DROP TABLE IF EXISTS {made.table} PURGE")
