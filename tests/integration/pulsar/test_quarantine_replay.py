"""Messages that a producer wrote without the topic's schema: kept aside, and rows after the user says what they are."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams.formats.json import columns
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload import Auto, Json, Utf8
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.basis import Cuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.quarantine.window_quarantine import WindowQuarantine
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.testing.landing import context_without_spark, cover_without_spark
from airflow_provider_streams.windows.after_landing.quarantine_replay import Replayer
from tests.integration.pulsar.raw_producer import RawProducer, metadata

pytestmark = pytest.mark.pulsar

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WINDOW = Window(NOON, NOON + timedelta(hours=1))


def rows(sink: ParquetSink) -> list[tuple[int, str, str]]:
    folder = WindowQuarantine.of(sink, WINDOW).folder
    found = [row for file in folder.glob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
    assert all(row["_topic"] and row["_publish_time"] for row in found)
    return sorted((row["id"], row["customer"], row["_key"]) for row in found)


def test_messages_without_a_schema_version_become_rows_by_a_schema_that_is_given(bench, tmp_path):
    from pulsar.schema import Integer, JsonSchema, Record, String

    class Order(Record):
        customer = String()
        id = Integer()

    topic = bench.topic("orders", partitions=2)
    producer = bench.client.create_producer(topic, schema=JsonSchema(Order))
    for number in range(6):
        producer.send(Order(id=number, customer=f"c{number}"), partition_key=f"k{number}")
    producer.close()
    plain = [json.dumps({"id": number, "customer": f"c{number}"}).encode() for number in range(6, 11)]
    bench.write(topic, [*plain, b"{"], batch=3, send=lambda number: {"partition_key": f"k{number + 6}"})
    source, sink = PulsarSource(topic, value="auto", key=Utf8()), ParquetSink(str(tmp_path / "lake"))
    options = {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url}
    with Journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        how = {"sink": sink, "undecodable": DecodeErrorPolicy("quarantine"), "basis": Cuts("earliest", "latest")}
        landed = cover_without_spark(journal, source, WINDOW, "reader", options, **how)
        assert (landed.receipt.rows, landed.receipt.totals["quarantined"]) == (6, 6)
        assert set(WindowQuarantine.of(sink, WINDOW).causes()) == {("it says no schema version", "")}
        place, ids = context_without_spark(journal, "pulsar", options), TaskInstanceKey("cli", "me", "replay", 1)
        assert Replayer(place, source, "reader", ids).replay(WINDOW).rows == 0, "the schema is none of theirs"
        given = PulsarSource(topic, value=Json("customer string, id int"), key=Utf8())
        done = Replayer(place, given, "reader", ids).replay(WINDOW)
        assert (done.rows, done.left) == (5, 1)
        wanted = [(number, f"c{number}", f"k{number}") for number in range(11)]
        assert rows(sink) == wanted
        cover_without_spark(journal, given, WINDOW, "reader", options, **how)
        assert rows(sink) == wanted, "a run of the task reads the same plan"
        (item,) = journal.coverage(source.key, "reader", WINDOW.start, WINDOW.end).windows
        assert (item.state, item.rows, item.quarantined) == ("covered", 11, 1)


def test_what_a_deleted_schema_wrote_stays_aside_when_another_one_has_its_number(bench, tmp_path):
    topic = bench.topic("reborn")
    hour_ago = metadata(int((time.time() - 3600) * 1000), schema_version=bytes(8))
    with RawProducer(bench.endpoint, f"{topic}") as producer:
        producer.send(hour_ago, b"\2\4")
        producer.send(metadata(int(time.time() * 1000)), b"plain")
    source, sink = PulsarSource(topic, value="auto"), ParquetSink(str(tmp_path / "lake"))
    options = {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url}
    with Journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        how = {"sink": sink, "undecodable": DecodeErrorPolicy("quarantine"), "basis": Cuts("earliest", "latest")}
        landed = cover_without_spark(journal, source, WINDOW, "reader", options, **how)
        assert (landed.receipt.rows, landed.receipt.totals["quarantined"]) == (1, 1)
        register = {"type": "AVRO", "schema": '"bytes"', "properties": {}}
        path = topic.removeprefix("persistent://")
        assert bench.server.admin("POST", f"schemas/{path}/schema", register)["version"]["version"] == 0
        place, ids = context_without_spark(journal, "pulsar", options), TaskInstanceKey("cli", "me", "replay", 1)
        done = Replayer(place, source, "reader", ids).replay(WINDOW)
        assert (done.rows, done.left) == (0, 1)


def test_json_of_java_that_was_set_aside_becomes_rows_by_what_is_known_of_it_now(bench, tmp_path, monkeypatch):
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "price", "type": ["null", {"type": "string", "java-class": "java.math.BigDecimal"}]},
            {"name": "color", "type": ["null", {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}]},
        ],
    }
    topic = bench.topic("java-orders")
    register = {"type": "JSON", "schema": json.dumps(schema), "properties": {}}
    bench.server.admin("POST", f"schemas/{topic.removeprefix('persistent://')}/schema", register)
    now = metadata(int(time.time() * 1000), schema_version=bytes(8))
    with RawProducer(bench.endpoint, topic) as producer:
        for payload in (b'{"id":1,"price":12.50}', b'{"id":2,"price":null,"color":2}'):
            producer.send(now, payload)
    source, sink = PulsarSource(topic, value="auto"), ParquetSink(str(tmp_path / "lake"))
    options = {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url}
    with Journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        how = {"sink": sink, "undecodable": DecodeErrorPolicy("quarantine"), "basis": Cuts("earliest", "latest")}
        with monkeypatch.context() as earlier:
            earlier.setattr(columns, "type_in_json", lambda *_: None)  # what earlier releases made of a schema
            landed = cover_without_spark(journal, source, WINDOW, "reader", options, **how)
        assert (landed.receipt.rows, landed.receipt.totals["quarantined"]) == (0, 2)
        place, ids = context_without_spark(journal, "pulsar", options), TaskInstanceKey("cli", "me", "replay", 1)
        done = Replayer(place, source, "reader", ids).replay(WINDOW)
        assert (done.rows, done.left) == (1, 1)
        ((cause, _),) = WindowQuarantine.of(sink, WINDOW).causes()
        assert cause.startswith("color: is the number of an enum")
        assert cause.endswith("RED, GREEN")
        declared = PulsarSource(topic, value=Auto("color string(number)"))
        done = Replayer(place, declared, "reader", ids, lasting=False).replay(WINDOW)
        assert (done.rows, done.left) == (1, 0)
        for _ in range(2):
            folder = WindowQuarantine.of(sink, WINDOW).folder
            found = [row for file in folder.glob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
            assert sorted((row["id"], row["price"], row["color"]) for row in found) == [
                (1, "12.50", None),
                (2, None, "2"),
            ]
            cover_without_spark(journal, source, WINDOW, "reader", options, **how)
