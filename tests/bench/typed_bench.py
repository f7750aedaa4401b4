"""A typed window against an untyped one: the same topic of flat records, to Arrow, by our reader."""

from __future__ import annotations

import io
import json
import random
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import fastavro
import pulsar
from pulsar.schema import AvroSchema, Boolean, Double, JsonSchema, Long, Record, String

from airflow_provider_streams import PulsarSource
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.datasource.split_reading import open_split
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from stream_servers.pulsar import PulsarServer
from tests.bench.pulsar_load import BATCH, roomy_server
from tests.bench.pulsar_reads import options, plan_source
from tests.bench.report import race, show

_DIFFERENT = 1_000
"""Records that are encoded once, and published over and over."""


class Order(Record):
    """Seven fields, as the figures of the formats have them."""

    id = Long(required=True)
    cents = Long(required=True)
    customer = String(required=True)
    at = Long(required=True)
    paid = Boolean(required=True)
    weight = Double(required=True)
    note = String()


def run(scale: float) -> None:
    """Start a broker, fill two topics, race."""
    events = int(1_000_000 * scale)
    with roomy_server() as server:
        for name, schema, payloads in (("avro", _Avro(Order), avro()), ("json", _Json(Order), plain())):
            topic = f"persistent://public/default/typed-{name}"
            server.create_topic(f"public/default/typed-{name}")
            print(f"publishing {events:,} records as {name}", flush=True)
            _publish(server, topic, schema, payloads, events)
            plan = plan_source(server, PulsarSource(topic, value="auto"))
            contenders = {
                "untyped": partial(_read, server, replace(plan, decoding=None), SplitReadOptions(), events),
                "typed": partial(_read, server, plan, SplitReadOptions(), events),
            }
            size = sum(map(len, payloads)) // len(payloads)
            title = f"typed rows, {name}: {events:,} records of {size} B and 7 fields"
            show(title, race(contenders), against={"x untyped": "untyped"}, event_bytes=size)


def orders() -> list[dict[str, Any]]:
    """Records, the same in each run."""
    chosen = random.Random(11)
    return [
        {
            "id": 10_000_000 + number,
            "cents": chosen.randrange(1 << 20),
            "customer": f"customer-{chosen.randrange(1 << 16)}",
            "at": 1_700_000_000_000 + number,
            "paid": chosen.random() < 0.5,
            "weight": chosen.random(),
            "note": f"note {number}" if number % 3 else None,
        }
        for number in range(_DIFFERENT)
    ]


def avro() -> list[bytes]:
    """The records as Avro."""
    return [_avro(fastavro.parse_schema(Order.schema()), order) for order in orders()]


def plain() -> list[bytes]:
    """The records as JSON."""
    return [json.dumps(order).encode() for order in orders()]


def _avro(schema: Any, order: dict[str, Any]) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, schema, order)
    return written.getvalue()


class _Avro(AvroSchema):  # type: ignore[misc]  # untyped
    """Announces the schema, and takes what is encoded already."""

    def encode(self, obj: bytes) -> bytes:
        """As it is."""
        return obj


class _Json(JsonSchema):  # type: ignore[misc]  # untyped
    """The same."""

    def encode(self, obj: bytes) -> bytes:
        """As it is."""
        return obj


def _publish(server: PulsarServer, topic: str, schema: Any, payloads: list[bytes], events: int) -> None:
    client = pulsar.Client(server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer(
        topic,
        schema=schema,
        batching_enabled=True,
        batching_max_messages=BATCH,
        batching_max_allowed_size_in_bytes=4 << 20,
        batching_max_publish_delay_ms=200,
        max_pending_messages=20_000,
        block_if_queue_full=True,
    )
    for number in range(events):
        producer.send_async(payloads[number % _DIFFERENT], callback=lambda *_: None)
    producer.flush()
    client.close()


def _read(server: PulsarServer, plan: Plan, split_read_options: SplitReadOptions, events: int) -> int:
    with closing(PulsarSystem.from_options(options(server))) as system:
        rows = 0
        for split in plan.splits:
            with closing(open_split(system, plan, split, split_read_options)) as reader:
                rows += sum(batch.num_rows for batch in reader)
    assert rows == events
    return rows
