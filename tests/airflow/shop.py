"""The topic and the stream that the examples read, with hours of events in them; and what the servers acknowledged.

Producers stamp what they publish: ours stamps the past, or hours to come. Pravega's events carry no time: their cuts
are recorded by the example's own recorder, which is then said to have been at work in the past.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
from airflow.utils.state import DagRunState

from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.journal.tables import cuts
from airflow_provider_streams.model.window.window import EPOCH, Window, moment_label
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from stream_servers.waiting import wait_until
from tests.integration.pulsar.raw_producer import RawProducer, metadata
from tests.unit.formats.change_data.debezium_messages import SOURCE, change, key_of, raw

HOUR = timedelta(hours=1)
PARTITIONS = 2
FIELDS = {"number": "long", "customer": "string", "cents": "long", "at": "long"}
SCHEMA = json.dumps(
    {"type": "record", "name": "Order", "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()]}
)


def every(step: timedelta, span: Window) -> list[datetime]:
    """The moments of a time, one step from each to the next."""
    return [span.start + number * step for number in range((span.end - span.start) // step)]


QUARTERS = Every(timedelta(minutes=15))
"""Of an hour."""
NOW = datetime.now(UTC)
PAST = Every(HOUR).before(NOW - timedelta(minutes=30))
DAY = next(Every(24 * HOUR).cells(PAST - 48 * HOUR, PAST))
PUBLISHED = every(timedelta(minutes=5), Window(DAY.start, QUARTERS.before(NOW - timedelta(minutes=5))))
"""A day and what came after it, for Airflow's own processes, whose clock is right."""

AHEAD = 8 * HOUR
"""How far the clock goes ahead where payloads are decoded: a message that is older than its schema is not."""
FIRST = Every(HOUR).after(NOW)
HOURS = tuple(Every(HOUR).cells(FIRST + HOUR, FIRST + 5 * HOUR))
"""Hours that are over by that clock; in the last one are enough orders that one may be torn."""
TO_BE_PUBLISHED = [
    *every(timedelta(minutes=5), Window(FIRST, HOURS[-1].start)),
    *every(timedelta(seconds=30), HOURS[-1]),
    *every(timedelta(minutes=5), Window(HOURS[-1].end, HOURS[-1].end + HOUR)),
]
TORN = TO_BE_PUBLISHED.index(HOURS[-1].start) + 7


@dataclass(frozen=True, slots=True)
class Order:
    """A message that the broker acknowledged."""

    number: int
    published: datetime
    at: datetime
    """Its own time, up to half an hour earlier."""
    place: tuple[int, int, int]
    """Partition, ledger and entry."""


@dataclass
class Topic:
    """A topic of the shop, by its short name, and its orders."""

    name: str
    orders: list[Order] = field(default_factory=list)

    def published(self, *windows: Window) -> list[Order]:
        return [one for one in self.orders if any(window.start <= one.published < window.end for window in windows)]

    def of_time(self, window: Window) -> list[Order]:
        """By the orders' own time."""
        return [one for one in self.orders if window.start <= one.at < window.end]


def open_shop(server: Any, namespace: str) -> None:
    """The namespace, and its tenant, if they are not there."""
    tenant = namespace.partition("/")[0]
    if tenant not in server.admin("GET", "tenants"):
        server.admin("PUT", f"tenants/{tenant}", {"allowedClusters": server.admin("GET", "clusters")})
    server.create_namespace(namespace)


def take_orders(server: Any, name: str, moments: Sequence[datetime], *, torn: int = -1) -> Topic:
    """A partitioned topic with a JSON schema, and one order published at each of some times.

    Args:
        server: the broker.
        name: `tenant/namespace/topic`.
        moments: when its orders were published, as their producers say.
        torn: the number of one whose bytes are no order.
    """
    topic = Topic(name)
    full = server.create_topic(name, PARTITIONS)
    server.admin("POST", f"schemas/{name}/schema", {"type": "JSON", "schema": SCHEMA, "properties": {}})
    endpoint = Endpoint(server.service_url, server.admin_url)
    with ExitStack() as stack:
        partitions = [f"{full}-partition-{number}" for number in range(PARTITIONS)]
        producers = [stack.enter_context(_producer(endpoint, partition)) for partition in partitions]
        for number, published in enumerate(moments):
            at = published - timedelta(minutes=number * 7 % 30)
            order = {"number": number, "customer": f"c{number % 17}", "cents": number * 3, "at": _ms(at)}
            payload = b"torn" if number == torn else json.dumps(order).encode()
            head = metadata(_ms(published), event_ms=_ms(at), schema_version=struct.pack(">q", 0))
            partition = number % PARTITIONS
            topic.orders.append(Order(number, published, at, (partition, *producers[partition].send(head, payload))))
    return topic


@contextmanager
def database(server: Any, namespace: str, tables: Mapping[str, Sequence[tuple[int, str, int, Any]]]) -> Iterator[None]:
    """Topics as Debezium writes them, of the tables of a database; they go at the end.

    Args:
        server: the broker.
        namespace: of the topics.
        tables: changes by table: the number of the hour, the operation, the id, and the name.
    """
    open_shop(server, namespace)
    endpoint = Endpoint(server.service_url, server.admin_url)
    for table, changes in tables.items():
        topic = server.create_topic(f"{namespace}/dbz.public.{table}", 1)
        with _producer(endpoint, f"{topic}-partition-0") as producer:
            for number, (hour, op, key, name) in enumerate(changes):
                at = _ms(HOURS[hour].start) + number
                source = {**SOURCE, "table": table, "lsn": 1000 + number, "ts_us": at * 1000}
                row = {"id": key, "name": name}
                message = change(op, None if op == "d" else row, row if op == "d" else None, source=source)
                producer.send(metadata(at, key=key_of(id=key)), raw(message) or b"")
    yield
    server.delete_namespace(namespace)


def _producer(endpoint: Endpoint, partition: str) -> RawProducer:
    """As soon as the broker takes one: it refuses while it still closes a topic that had this name before."""
    made: list[RawProducer] = []

    def accepted() -> bool:
        with suppress(AssertionError):
            made.append(RawProducer(endpoint, partition))
        return bool(made)

    wait_until(accepted, f"the broker refuses producers of {partition}")
    return made[0]


def _ms(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


EACH = 10
"""Events between two recorded cuts."""
EDGES = tuple(DAY.start + number * QUARTERS.length for number in range(6))
"""When the cuts are said to have been recorded."""


def write_between_cuts(
    dag_test: Callable[..., Any], recorder: Any, server: Any, stream: str, event: Callable[[int], bytes]
) -> None:
    """Events between each two runs of a recorder, which are then said to have been at `EDGES`."""
    hook = PravegaHook(options={"controller": server.controller_uri})
    with closing(hook), PravegaWriter(hook.client.endpoint, stream) as writer:
        succeeded(dag_test(recorder), recorder.task_ids[0])
        for part in range(len(EDGES) - 1):
            writer.write((f"k{n}", event(n)) for n in range(EACH * part, EACH * (part + 1)))
            succeeded(dag_test(recorder), recorder.task_ids[0])
    with open_journal() as journal:
        _recorded_at(journal, EDGES)


def _recorded_at(journal: Any, edges: Sequence[datetime]) -> None:
    """Say of the journal's cuts, the oldest first, that they were recorded at these times."""
    with journal._database.writing() as connection:
        for number, edge in zip(
            connection.execute(cuts.select().order_by(cuts.c.id)).scalars().all(), edges, strict=True
        ):
            moved = {"sampled_from": edge, "sampled_to": edge + timedelta(milliseconds=5)}
            connection.execute(cuts.update().where(cuts.c.id == number).values(moved))


def succeeded(run: Any, task: str = "read") -> dict[str, Any]:
    """What a task of a successful run returned."""
    assert run.state == DagRunState.SUCCESS
    return run.get_task_instance(task).xcom_pull(task_ids=task)


def in_folder(folder: Path, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a Parquet table, as DuckDB finds them."""
    return duckdb.read_parquet(f"{folder}/window_start=*/window_end=*/*.parquet").project(*columns).fetchall()


def in_window(folder: Path, window: Window, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of one window of a Parquet table, as DuckDB finds them."""
    start, end = moment_label(window.start), moment_label(window.end)
    files = f"{folder}/window_start={start}/window_end={end}/*.parquet"
    return duckdb.read_parquet(files).project(*columns).fetchall()


def places(orders: Iterable[Order]) -> list[tuple[int, ...]]:
    return sorted(one.place for one in orders)


PLACE = ("partition", "ledger", "entry")
