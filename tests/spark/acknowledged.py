"""A real topic and a real stream of numbers: their plans, and what the servers acknowledged of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.job.job_spec import WindowSpec
from airflow_provider_streams.systems.pravega.operations import administration, scaling
from airflow_provider_streams.systems.pravega.operations.stream_settings import StreamSettings
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from stream_servers.waiting import wait_until

BEFORE, WITHIN, AFTER = range(100), range(100, 1300), range(1300, 1400)
"""The numbers before a window, in it and after it."""
PARTITIONS = 2
ADDRESSES = "STREAMS_TEST_REAL_STREAMS"
"""The variable that names a file with windows of real streams, for tests in another process."""
_VALUE = Json("number int")


@dataclass(frozen=True)
class Acknowledged:
    """One window of a stream that a server holds."""

    plan: Plan
    options: Mapping[str, str]
    columns: tuple[str, ...]
    """What a row tells of its event: `number`, and where it is, if an acknowledgement says so."""
    rows: list[tuple[int, ...]]
    """Of the window's events, by these columns; sorted."""

    @property
    def system(self) -> str:
        """Its system's name."""
        return self.plan.source.system

    def spec(self, **how: Any) -> WindowSpec:
        """A job that reads it; `options` are added to its own."""
        options = {**self.options, **how.pop("options", {})}
        terms = TableTerms(TableMark("spark-tests", self.plan.source.names[0], "tests"))
        return WindowSpec(self.plan, options=options, terms=terms, **how)

    def of(self, rows: list[dict[str, Any]]) -> list[tuple[int, ...]]:
        """A table's rows, as `rows` has them."""
        return sorted(tuple(row[name] for name in self.columns) for row in rows)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "plan": self.plan.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        columns, rows = tuple(data["columns"]), [tuple(row) for row in data["rows"]]
        return cls(Plan.from_json(data["plan"]), data["options"], columns, rows)


def of_pulsar(server: Any, namespace: str) -> Acknowledged:
    """A topic of two partitions in small ledgers, with batches and single messages."""
    options = {"service_url": server.service_url, "admin_url": server.admin_url}
    topic = server.create_topic(f"{namespace}/numbers", PARTITIONS)
    source = PulsarSource(topic, value=_VALUE)
    with _producing(server.service_url, topic) as send:
        send(BEFORE)
        start = _moment()
        places = send(WITHIN)
        end = _moment()
        send(AFTER)
    wait_until(lambda: datetime.now(UTC) > end + timedelta(seconds=0.5), "the window's end")
    with closing(PulsarSystem.from_options(options)) as system:
        request = PlanRequest(
            source, Window(start, end), "tests", slack=timedelta(seconds=0.3), target_split_bytes=4000
        )
        plan = system.plan(request)
    columns = ("number", "_partition_index", "_ledger", "_entry", "_batch_index")
    return Acknowledged(plan, options, columns, sorted((number, *places[number]) for number in WITHIN))


def of_pravega(server: Any, scope: str) -> Acknowledged:
    """A stream that is split while the window's events are written."""
    options = {"controller": server.controller_uri}
    stream = f"{scope}/numbers"
    with closing(PravegaSystem.from_options(options)) as system:
        client = system.client
        client.run(administration.create(stream, StreamSettings(), make_scope=True))
        with PravegaWriter(client.endpoint, stream) as writer:
            writer.write(_events(BEFORE))
            start = client.run(cuts.tail(stream))
            writer.write(_events(WITHIN[:600]))
            client.run(scaling.scale(stream, scaling.split(0)))
            writer.write(_events(WITHIN[600:]))
            end = client.run(cuts.tail(stream))
            writer.write(_events(AFTER))
        window = Window(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 20, 1, tzinfo=UTC))
        edges = {"start_cut": start.to_model(), "end_cut": end.to_model()}
        request = PlanRequest(PravegaSource(stream, value=_VALUE), window, "tests", basis="cuts", **edges)
        return Acknowledged(system.plan(request), options, ("number",), [(number,) for number in WITHIN])


def _events(numbers: range) -> list[tuple[str, bytes]]:
    return [(f"k{number % 17}", _payload(number)) for number in numbers]


def _payload(number: int) -> bytes:
    return b'{"number": %d}' % number


def _moment() -> datetime:
    """A whole millisecond that no message has, and that is over."""
    moment = datetime.now(UTC) + timedelta(milliseconds=5)
    wait_until(lambda: datetime.now(UTC) > moment + timedelta(milliseconds=5), "the edge")
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@contextmanager
def _producing(service_url: str, topic: str) -> Iterator[Any]:
    """What sends numbers, by turns in batches and each for itself, and gives the places that were acknowledged."""
    import pulsar

    with closing(pulsar.Client(**Endpoint(service_url).client_arguments())) as client:
        producers = [client.create_producer(topic, batching_enabled=batches) for batches in (True, False)]

        def send(numbers: range) -> dict[int, tuple[int, ...]]:
            places: dict[int, tuple[int, ...]] = {}

            def noting(number: int) -> Any:
                def note(result: Any, at: Any) -> None:
                    assert str(result) == "Result.Ok", result
                    places[number] = at.partition(), at.ledger_id(), at.entry_id(), at.batch_index()

                return note

            for number in numbers:
                key = f"k{number % 17}"
                producers[number // 100 % 2].send_async(_payload(number), noting(number), partition_key=key)
            for producer in producers:
                producer.flush()
            wait_until(lambda: len(places) == len(numbers), "acknowledgements")
            return places

        yield send
        for producer in producers:
            producer.close()


def fresh(prefix: str) -> str:
    """A name that no other test has."""
    return f"{prefix}-{secrets.token_hex(4)}"
