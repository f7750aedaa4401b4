"""Postgres to Debezium to a stream to tables: they equal `SELECT *`, whatever order windows run in.

The connector is killed twice, so it sends changes again. Its snapshot is taken while transactions run.
`PIPELINE_SEED` chooses the transactions, `PIPELINE_SECONDS` for how long they run.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pulsar
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from airflow_provider_streams import AutoCdc, Debezium, DeltaSink, IcebergSink, PublishTime, PulsarSource, Window
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.table import IcebergTable
from airflow_provider_streams.testing import landing
from stream_servers import QUICK_START, DebeziumServer, PostgresServer, PulsarServer
from tests.pipeline.postgres import DECLARED, LAST, LOGICAL, TABLES, Database

pytestmark = pytest.mark.pulsar

SEED = int(os.environ.get("PIPELINE_SEED", "1"))
SECONDS = float(os.environ.get("PIPELINE_SECONDS", "15"))
KILLS = 2
OFFSETS_SECONDS = 2
SLACK = PublishTime(timedelta(milliseconds=50))
LARGE = 10**9
"""Plans up to this size are read without Spark."""
PATIENCE_SECONDS = 180.0


@pytest.fixture(scope="module")
def broker() -> Iterator[PulsarServer]:
    with PulsarServer(settings={"allowAutoTopicCreation": "true"}, jvm=QUICK_START) as server:
        yield server


@pytest.mark.parametrize(
    ("with_schemas", "whole_rows"), [(True, False), (False, True)], ids=["schemas", "plain JSON, whole rows"]
)
def test_tables_equal_those_of_the_database(
    broker: PulsarServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_schemas: bool, whole_rows: bool
) -> None:
    chance = random.Random(SEED)
    namespace = f"public/pipeline-{int(with_schemas)}"
    broker.create_namespace(namespace)
    made = landing.context_without_spark
    monkeypatch.setattr(landing, "context_without_spark", lambda *args: replace(made(*args), small_plan_bytes=LARGE))
    with PostgresServer(LOGICAL) as server:
        database = Database(server, SEED)
        database.make(whole_rows=whole_rows)
        windows = written(database, broker, namespace, chance, with_schemas=with_schemas)
        wanted = {table: [plain(row) for row in database.rows(table)] for table in TABLES}
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with given("changes", options):
        for table, keys in TABLES.items():
            value = Debezium("" if with_schemas else DECLARED[table])
            source = PulsarSource(f"{namespace}/dbz.public.{table}", value=value)
            for sink in (
                IcebergSink(f"lake.{table}", conn_id="changes", apply=AutoCdc(), widen=True),
                DeltaSink(str(tmp_path / table), apply=AutoCdc(), widen=True),
            ):
                order = [*windows, *chance.sample(windows, 5)]
                chance.shuffle(order)
                land(broker, source, sink, order, tmp_path / f"{sink.kind}-{table}.db")
                names = list(wanted[table][0])
                found = [{name: row[name] for name in names} for row in map(plain, rows_of(sink))]
                differing = [row for row in (*found, *wanted[table]) if (row in found) != (row in wanted[table])]
                assert not differing, said_of(broker, source, differing, keys)
                assert len(found) == len(wanted[table])


def written(
    database: Database, broker: PulsarServer, namespace: str, chance: random.Random, *, with_schemas: bool
) -> list[Window]:
    """Run transactions and the connector; the windows of all that it wrote."""
    tenant, name = namespace.split("/")
    sink = {
        "debezium.sink.type": "pulsar",
        "debezium.sink.pulsar.client.serviceUrl": broker.service_url,
        "debezium.sink.pulsar.tenant": tenant,
        "debezium.sink.pulsar.namespace": name,
    }
    edges = [datetime.now(UTC)]
    settings = {**sink, **database.connector(with_schemas=with_schemas)}
    with DebeziumServer(settings, offsets_ms=1000 * OFFSETS_SECONDS) as connector:
        with database.written():
            kills = sorted(chance.random() * SECONDS for _ in range(KILLS))
            # killed in its snapshot, it would take another, which does not tell what was deleted in between
            wait_for(broker, f"{namespace}/dbz.public.orders", b'"op":"u"')
            time.sleep(2 * OFFSETS_SECONDS)
            begun = time.monotonic()
            while (passed := time.monotonic() - begun) < SECONDS or kills:
                time.sleep(1)
                edges.append(datetime.now(UTC))
                if kills and passed > kills[0]:
                    kills.pop(0)
                    connector.kill()
                    connector.start()
        for table in TABLES:
            wait_for(broker, f"{namespace}/dbz.public.{table}", b'"last"', str(LAST).encode())
    edges.append(datetime.now(UTC))
    time.sleep(2 * SLACK.slack.total_seconds())
    return [Window(start, end) for start, end in pairwise(edges)]


def said_of(broker: PulsarServer, source: PulsarSource, rows: list[dict[str, Any]], keys: tuple[str, ...]) -> str:
    """All changes of rows that differ, as the topic has them."""
    client = pulsar.Client(broker.service_url)
    reader = client.create_reader(source.topics[0], pulsar.MessageId.earliest)
    wanted, lines = {tuple(row[name] for name in keys) for row in rows}, [str(row) for row in rows]
    with suppress(pulsar.Timeout):
        while True:
            message = json.loads(reader.read_next(1000).data() or b"{}")
            change = message.get("payload", message)
            images = [change[name] for name in ("before", "after") if change.get(name)]
            if any(tuple(image[name] for name in keys) in wanted for image in images):
                place = {name: change["source"][name] for name in ("snapshot", "ts_us", "lsn", "txId")}
                lines.append(f"{change['op']} {[[image[name] for name in keys] for image in images]} {place}")
    client.close()
    return "\n".join(lines)


def wait_for(broker: PulsarServer, topic: str, *parts: bytes) -> None:
    """Until a message with these parts is in a topic."""
    client = pulsar.Client(broker.service_url)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with suppress(pulsar.Timeout):
            said = reader.read_next(1000).data()
            if all(part in said for part in parts):
                client.close()
                return
    raise AssertionError(f"{parts} did not come into {topic}")


def land(broker: PulsarServer, source: PulsarSource, sink: Any, order: list[Window], journal: Path) -> None:
    options = {"service_url": broker.service_url, "admin_url": broker.admin_url}
    with Journal(f"sqlite:///{journal}") as opened:
        for window in order:
            landing.cover_without_spark(opened, source, window, "reader", options, sink=sink, basis=SLACK)


def rows_of(sink: Any) -> list[dict[str, Any]]:
    if isinstance(sink, IcebergSink):
        return IcebergTable(sink).loaded().scan().to_arrow().to_pylist()
    return pa.table(DeltaTable(sink.path).to_pyarrow_table()).to_pylist()


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """With documents as text in one spelling, and times in UTC."""
    return {name: _plain(name, value) for name, value in row.items()}


def _plain(name: str, value: Any) -> Any:
    if name == "doc" and value is not None:
        return json.dumps(json.loads(value) if isinstance(value, str) else value, sort_keys=True)
    return value.astimezone(UTC) if isinstance(value, datetime) else value
