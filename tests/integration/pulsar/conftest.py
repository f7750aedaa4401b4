"""Writing with the official client, and plans by hand from what the broker says it stores."""

from __future__ import annotations

import datetime as dt
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from airflow_provider_streams.model.plan.plan import Plan, SourceRef, Span, Split
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.reading.reader import PulsarSplitReader
from airflow_provider_streams.testing.plans import plan_of
from tests.seeds import random_bytes

COLUMNS = ("value", "key", "publish_time", "event_time", "ledger", "entry", "batch_index", "properties", "message_id")
NOW = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)

Row = tuple[Any, ...]


@dataclass
class Workbench:
    """One broker and one namespace of it."""

    server: Any
    namespace: str
    client: Any
    made: dt.datetime = NOW
    """When the last topic was there."""

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.server.service_url, self.server.admin_url)

    def topic(self, name: str = "t", partitions: int | None = None) -> str:
        topic = self.server.create_topic(f"{self.namespace}/{name}-{secrets.token_hex(4)}", partitions)
        self.made = written_from()
        return topic

    def path(self, topic: str) -> str:
        return topic.replace("://", "/", 1)

    def write(
        self, topic: str, values: Sequence[bytes], *, batch: int = 1, send: Callable | None = None, **settings: Any
    ) -> None:
        """`send(number)` may add keyword arguments of each message."""
        batching = {"batching_enabled": batch > 1}
        if batch > 1:
            batching |= {"batching_max_messages": batch, "batching_max_publish_delay_ms": 600_000}
        producer = self.client.create_producer(topic, block_if_queue_full=True, **{**batching, **settings})
        for number, value in enumerate(values):
            producer.send_async(value, lambda *_: None, **(send(number) if send else {}))
            if batch > 1 and (number + 1) % batch == 0:
                producer.flush()
        producer.flush()
        producer.close()

    def spans(self, topic: str) -> tuple[Span, ...]:
        stats = self.server.admin("GET", f"{self.path(topic)}/internalStats")
        counts = {ledger["ledgerId"]: ledger["entries"] for ledger in stats["ledgers"]}
        # the open ledger is listed with zeros; `currentLedgerEntries` may still be the count of the one before it
        ledger, entry = map(int, stats["lastConfirmedEntry"].split(":"))
        if counts.get(ledger) == 0:
            counts[ledger] = entry + 1
        return tuple(Span(ledger, 0, entries) for ledger, entries in sorted(counts.items()) if entries)

    def subscriptions(self, topic: str) -> list[str]:
        return self.server.admin("GET", f"{self.path(topic)}/subscriptions")

    def unload(self, topic: str) -> None:
        self.server.admin("PUT", f"{self.path(topic)}/unload")

    def split(self, topic: str, start: Position | None = None, end: Position | None = None) -> Split:
        """Everything stored between two positions, by default all of it."""
        stored = self.spans(topic)
        start = start or Position.of(stored[0].run, 0, -1)
        end = end or Position.of(stored[-1].run, stored[-1].end, -1)
        inside = []
        for span in stored:
            first = max(0, start.parts[1]) if span.run == start.parts[0] else 0
            last = span.end
            if span.run == end.parts[0]:
                last = min(last, end.parts[1] + (end.parts[2] >= 0))
            if start.parts[0] <= span.run <= end.parts[0] and first < last:
                inside.append(Span(span.run, first, last))
        return Split(0, topic, start, end, 1, tuple(inside))

    def plan(self, split: Split) -> Plan:
        return plan_of([split], source=SourceRef("pulsar", "standalone", (split.shard,)))

    def reader(self, split: Split, columns: Sequence[str] = COLUMNS, **settings: Any) -> PulsarSplitReader:
        return PulsarSplitReader(self.endpoint, self.plan(split), split, columns, **settings)

    @staticmethod
    def row(row: dict[str, Any]) -> Row:
        return our_row(row)

    def read(self, split: Split) -> tuple[list[Row], PulsarSplitReader]:
        reader = self.reader(split)
        return [our_row(row) for batch in reader for row in batch.to_pylist()], reader

    def peer(self, topic: str) -> list[Row]:
        """The same rows by the official client."""
        import pulsar

        reader = self.client.create_reader(topic, pulsar.MessageId.earliest, receiver_queue_size=1000)
        rows = []
        while reader.has_message_available():
            rows.append(peer_row(reader.read_next(60_000)))
        reader.close()
        return rows


def written_from() -> dt.datetime:
    """The time by the broker's clock, which is ours: no message that is written now is older. In whole milliseconds."""
    return dt.datetime.fromtimestamp(time.time_ns() // 1_000_000 / 1000, dt.UTC)


def our_row(row: dict[str, Any]) -> Row:
    event = row["event_time"]
    return (
        (row["ledger"], row["entry"], row["batch_index"]),
        row["value"],
        row["key"] or "",
        dict(row["properties"] or []),
        milliseconds(row["publish_time"]),
        milliseconds(event) if event else 0,
        row["message_id"],
    )


def peer_row(message: Any) -> Row:
    incarnation = message.message_id()
    return (
        (incarnation.ledger_id(), incarnation.entry_id(), incarnation.batch_index()),
        message.data(),
        message.partition_key(),
        message.properties(),
        message.publish_timestamp(),
        message.event_timestamp(),
        incarnation.serialize(),
    )


def milliseconds(moment: dt.datetime) -> int:
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


@pytest.fixture(scope="session")
def pulsar_peer(pulsar_server: Any) -> Iterator[Any]:
    client_module = pytest.importorskip("pulsar")
    client = client_module.Client(**Endpoint(pulsar_server.service_url).client_arguments())
    yield client
    client.close()


@pytest.fixture
def bench(pulsar_server: Any, pulsar_peer: Any, pulsar_namespace: str) -> Workbench:
    return Workbench(pulsar_server, pulsar_namespace, pulsar_peer)


@pytest.fixture
def bench_of() -> Iterator[Callable[[Any], Workbench]]:
    """A workbench at a broker of one's own."""
    client_module = pytest.importorskip("pulsar")
    clients = []

    def make(server: Any) -> Workbench:
        clients.append(client_module.Client(**Endpoint(server.service_url).client_arguments()))
        return Workbench(server, "public/default", clients[-1])

    yield make
    for client in clients:
        client.close()


@pytest.fixture(scope="session")
def noise() -> bytes:
    """Random bytes to cut values from."""
    return random_bytes(1 << 20)
