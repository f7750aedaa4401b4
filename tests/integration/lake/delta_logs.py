"""Delta tables as other engines make them: a log that is written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.delta.storage import storage_of
from tests.integration.lake.delta_reading import adds

OLD = {"minReaderVersion": 1, "minWriterVersion": 2}
"""What Spark gives to a table for which it needs no more."""

READER_FEATURES = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "timestampNanos",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
    "variantType-preview",
    "variantShredding",
    "variantShredding-preview",
    "typeWidening",
    "typeWidening-preview",
    "catalogManaged",
    "catalogOwned-preview",
    "redirectReaderWriter-preview",
    "adaptiveMetadata",
    "adaptiveMetadata-preview",
    "geospatial",
    "geospatial-dev",
]
"""Features that readers must know as well."""


def column(name: str, type_: Any = "long", *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    """A field in the log's JSON."""
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    """The type of a struct."""
    return {"type": "struct", "fields": list(fields)}


ROWS = [column("id"), column("value", "string"), column("at", "timestamp")]
"""Of the rows that `landing.rows_of` makes."""


def with_features(*features: str) -> dict[str, Any]:
    """A protocol that names its features."""
    readers = [one for one in features if one in READER_FEATURES]
    found = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7, "writerFeatures": list(features)}
    return {**found, "readerFeatures": readers} if readers else found


def write_log(
    folder: Path,
    protocol: Mapping[str, Any],
    properties: Mapping[str, str] | None = None,
    columns: Sequence[Mapping[str, Any]] = ROWS,
    partition_by: Sequence[Mapping[str, Any]] = tuple(column(name, "timestamp") for name in WINDOW_COLUMNS),
) -> None:
    """Make an empty table, by the actions of its first commit."""
    metadata = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(struct(*map(dict, columns), *map(dict, partition_by))),
        "partitionColumns": [one["name"] for one in partition_by],
        "configuration": dict(properties or {}),
        "createdTime": 1700000000000,
    }
    made = {"commitInfo": {"timestamp": 1700000000000, "operation": "CREATE TABLE"}}
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    actions = [made, {"protocol": dict(protocol)}, {"metaData": metadata}]
    (log / f"{0:020}.json").write_text("".join(json.dumps(one) + "\n" for one in actions))


def write_windows_into_files(folder: Path) -> None:
    """Rewrite a table's files with the columns of its partitions in them, as Spark (Delta 4.4) does."""
    logs = sorted((folder / "_delta_log").glob("*.json"))
    actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": 1700000000000, "operation": "OPTIMIZE"}}]
    for number, add in enumerate(adds(storage_of(DeltaSink(str(folder)))).values()):
        table = pq.read_table(folder / unquote(add["path"]), partitioning=None)
        for name in WINDOW_COLUMNS:
            moment = datetime.fromisoformat(add["partitionValues"][name])
            table = table.append_column(name, pa.array([moment] * len(table), pa.timestamp("us", "UTC")))
        path = f"{Path(add['path']).parent}/part-{number}.parquet"
        pq.write_table(table, folder / unquote(path))
        size = (folder / unquote(path)).stat().st_size
        actions.append({"remove": {"path": add["path"], "deletionTimestamp": 1700000000000, "dataChange": False}})
        actions.append({"add": {**add, "path": path, "size": size, "dataChange": False}})
    (logs[-1].parent / f"{len(logs):020}.json").write_text("".join(json.dumps(one) + "\n" for one in actions))
