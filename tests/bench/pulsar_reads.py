"""Ways to read a Pulsar topic, each from its first event to its last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pulsar
import pyarrow as pa

from airflow_provider_streams import PulsarSource, Window
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.broker_client import BrokerClient
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from stream_servers.pulsar import PulsarServer
from tests.bench.pulsar_load import Load

_SOME_WINDOW = Window(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))


def options(server: PulsarServer) -> dict[str, str]:
    """How our readers reach the broker."""
    return {"service_url": server.service_url, "admin_url": server.admin_url}


def plan_all(server: PulsarServer, load: Load, *, split_bytes: int = 1 << 40) -> Plan:
    """The whole topic; by default in one split."""
    return plan_source(server, PulsarSource(load.topic), split_bytes=split_bytes)


def plan_source(server: PulsarServer, source: PulsarSource, *, split_bytes: int = 1 << 40) -> Plan:
    """All that a source holds; by default in one split."""
    system = PulsarSystem.from_options(options(server))
    request = PlanRequest(
        source,
        _SOME_WINDOW,
        reader="bench",
        basis="cuts",
        slack=timedelta(0),
        start_cut=system.parse_cut(source, "earliest"),
        end_cut=system.parse_cut(source, "latest"),
        target_split_bytes=split_bytes,
    )
    try:
        return system.plan(request)
    finally:
        system.close()


def read_ours(server: PulsarServer, plan: Plan) -> int:
    """Our reader, all default columns, to Arrow batches."""
    system = PulsarSystem.from_options(options(server))
    rows = 0
    for split in plan.splits:
        reader = system.read(plan, split)
        rows += sum(batch.num_rows for batch in reader)
        assert reader.receipt.rows == rows
        reader.close()
    system.close()
    return rows


def read_raw(server: PulsarServer, load: Load, plan: Plan) -> int:
    """The bytes of the topic received from a socket, nothing looked at: the floor."""
    entries = plan.splits[0].entries
    assert entries is not None
    with BrokerClient(Endpoint.from_options(options(server))) as client:
        connection, consumer = client.subscribe(load.topic, (-1, -1))
        connection.send(pb.CommandFlow(consumer_id=consumer, messagePermits=1_000_000_000))
        seen = 0
        while seen < entries:
            seen += len(connection.receive(10))
    return load.events


def read_client(server: PulsarServer, load: Load) -> int:
    """pulsar-client's reader, the same columns, to Arrow batches of 10,000 rows."""
    client = pulsar.Client(server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    reader = client.create_reader(load.topic, pulsar.MessageId.earliest, receiver_queue_size=10_000)
    columns: tuple[list[object], ...] = tuple([] for _ in range(6))
    values, keys, times, ledgers, entries, indexes = columns
    rows = 0
    for number in range(load.events):
        message = reader.read_next(10_000)
        place = message.message_id()
        values.append(message.data())
        keys.append(message.partition_key())
        times.append(message.publish_timestamp())
        ledgers.append(place.ledger_id())
        entries.append(place.entry_id())
        indexes.append(place.batch_index())
        if len(values) == 10_000 or number == load.events - 1:
            names = ["value", "key", "publish", "ledger", "entry", "batch_index"]
            rows += pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=names).num_rows
            for column in columns:
                column.clear()
    reader.close()
    client.close()
    return rows
