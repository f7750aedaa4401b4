"""Delta tables that Spark made: those that ask nothing more land, and Spark's rules are refused by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.delta.storage import storage_of
from airflow_provider_streams.lake.delta.writer import DeltaWriter
from tests.integration.lake.delta_reading import commits
from tests.integration.lake.landing import SCHEMA, TERMS, Attempt, hour, rows_of

NAME = "delta_rules"
PLAIN = "id BIGINT, value STRING, at TIMESTAMP"


@pytest.fixture
def made(spark, tmp_path):
    """Makes a table by Spark's SQL, and its sink."""

    def made(columns: str = PLAIN, **properties: str) -> DeltaSink:
        given = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        spark.sql(
            f"CREATE TABLE {NAME} ({columns}, window_start TIMESTAMP, window_end TIMESTAMP) USING delta "
            f"PARTITIONED BY (window_start, window_end) LOCATION '{tmp_path}/orders' "
            f"{f'TBLPROPERTIES ({given})' if given else ''}"
        )
        return DeltaSink(f"{tmp_path}/orders")

    yield made
    spark.sql(f"DROP TABLE IF EXISTS {NAME}")


def ids(spark, sink: DeltaSink) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(sink.path).select("id").collect())


LANDING: list[tuple[str, dict[str, str]]] = [
    (PLAIN, {}),
    (f"{PLAIN}, note STRING COMMENT 'theirs', more STRUCT<a: INT, b: ARRAY<STRING>>", {}),
    (f"{PLAIN}, more STRUCT<a: INT NOT NULL>", {}),
    (f"{PLAIN}, local TIMESTAMP_NTZ", {}),
    (PLAIN, {"delta.enableDeletionVectors": "true"}),
    (PLAIN, {"delta.enableChangeDataFeed": "true"}),
    (PLAIN, {"delta.checkpointPolicy": "v2"}),
    (PLAIN, {"delta.feature.columnMapping": "supported", "delta.feature.checkConstraints": "supported"}),
    (PLAIN, {"delta.feature.generatedColumns": "supported", "delta.appendOnly": "false"}),
]


@pytest.mark.parametrize(("columns", "properties"), LANDING)
def test_a_table_that_asks_nothing_more_lands(spark, made, columns, properties):
    sink = made(columns, **properties)
    for first in (0, 100):
        DeltaWriter.check_rows(sink, SCHEMA, TERMS)
        Attempt(sink, hour(0), rows_of(first, 3)).land()
    assert ids(spark, sink) == [100, 101, 102]


REFUSED: list[tuple[str, dict[str, str], str]] = [
    (f"{PLAIN}, code CHAR(3)", {}, "column code has __CHAR_VARCHAR_TYPE_STRING"),
    (f"{PLAIN}, more STRUCT<code: VARCHAR(3)>", {}, "column more has __CHAR_VARCHAR_TYPE_STRING"),
    (f"{PLAIN}, note STRING NOT NULL", {}, "note may not be null"),
    (PLAIN, {"delta.constraints.positive": "id > 0"}, "property delta.constraints.positive = id > 0"),
    (PLAIN, {"delta.appendOnly": "true"}, "property delta.appendOnly = true"),
    (PLAIN, {"delta.columnMapping.mode": "name"}, "property delta.columnMapping.mode = name"),
    (PLAIN, {"delta.enableRowTracking": "true"}, "table feature rowTracking"),
    (PLAIN, {"delta.enableInCommitTimestamps": "true"}, "table feature inCommitTimestamp"),
    (PLAIN, {"delta.enableTypeWidening": "true"}, "table feature typeWidening"),
    (PLAIN, {"delta.compatibility.symlinkFormatManifest.enabled": "true"}, "symlinkFormatManifest.enabled = true"),
    (
        f"{PLAIN}, price INT DEFAULT 42",
        {"delta.feature.allowColumnDefaults": "supported"},
        "column price has CURRENT_DEFAULT",
    ),
    (f"{PLAIN}, more VARIANT", {}, "column more is variant"),
]


@pytest.mark.parametrize(("columns", "properties", "said"), REFUSED)
def test_what_spark_asks_of_writers_is_refused_by_its_name(made, columns, properties, said):
    is_refused(made(columns, **properties), said)


IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}


@pytest.mark.parametrize(
    "metadata",
    [
        {"delta.generationExpression": "id + 1"},
        {"delta.invariants": '{"expression": {"expression": "id > 3"}}'},
        IDENTITY,
    ],
)
def test_metadata_of_a_frames_column_is_refused_by_its_name(spark, tmp_path, metadata):
    """Spark's SQL and builder make such columns on other catalogs and releases only; the log is the same."""
    columns = "id BIGINT, value STRING, at TIMESTAMP, more BIGINT, window_start TIMESTAMP, window_end TIMESTAMP"
    frame = spark.createDataFrame([], columns)
    frame = frame.withMetadata("more", metadata)
    frame.write.format("delta").partitionBy(*WINDOW_COLUMNS).save(str(tmp_path / "orders"))
    is_refused(DeltaSink(str(tmp_path / "orders")), f"column more has {next(iter(metadata))}")


def is_refused(sink: DeltaSink, said: str) -> None:
    before = DeltaTable(sink.path).version()
    for act in (
        lambda: DeltaWriter.check_rows(sink, SCHEMA, TERMS),
        lambda: Attempt(sink, hour(0), rows_of(0, 1)).land(),
    ):
        with pytest.raises(SinkError) as caught:
            act()
        assert said in str(caught.value)
    assert DeltaTable(sink.path).version() == before


def test_rows_that_spark_deleted_by_vectors_leave_with_their_window(spark, made):
    sink = made(**{"delta.enableDeletionVectors": "true"})
    for number in range(2):
        Attempt(sink, hour(number), rows_of(number * 10, 5)).land()
    spark.sql("DELETE FROM delta_rules WHERE id IN (1, 11)")
    assert ids(spark, sink) == [0, 2, 3, 4, 10, 12, 13, 14]
    Attempt(sink, hour(0), rows_of(100, 2)).land()
    assert ids(spark, sink) == [10, 12, 13, 14, 100, 101]
    removed = [one["remove"] for one in list(commits(storage_of(sink)))[-1] if "remove" in one]
    assert any(one.get("deletionVector") for one in removed)


def test_a_change_feed_that_spark_reads_has_what_a_window_lost_and_got(spark, made):
    sink = made(**{"delta.enableChangeDataFeed": "true"})
    for first in (0, 100):
        Attempt(sink, hour(0), rows_of(first, 2)).land()
    newest = DeltaTable(sink.path).version()
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", newest)
    found = sorted((row._change_type, row.id) for row in feed.load(sink.path).collect())
    assert found == [("delete", 0), ("delete", 1), ("insert", 100), ("insert", 101)]


def test_a_table_of_an_old_version_keeps_its_features_for_spark(spark, made):
    sink = made(**{"delta.enableChangeDataFeed": "true"})
    rows: Any = rows_of(0, 3, pa.schema([*SCHEMA, ("local", pa.timestamp("us"))]))
    Attempt(DeltaSink(sink.path, widen=True), hour(0), rows).land()
    features = spark.sql(f"DESCRIBE DETAIL delta.`{sink.path}`").collect()[0].tableFeatures
    assert {"appendOnly", "invariants", "changeDataFeed", "timestampNtz"} <= set(features)
    assert ids(spark, sink) == [0, 1, 2]
