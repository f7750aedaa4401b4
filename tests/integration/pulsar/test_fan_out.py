"""A pattern of many small topics, of differing schemas, each in its own table, on a real broker."""

from __future__ import annotations

import json
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_provider_streams import PublishTime, PulsarSource, Window
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from stream_servers.waiting import wait_until
from tests.integration.fanning_out import FanOut

pytestmark = pytest.mark.pulsar

TOPICS = 40
EVENTS = 30
SLACK = PublishTime(timedelta(milliseconds=50))


def schema_of(number: int) -> Any:
    """Every fourth topic has bytes, the others records of different fields."""
    import pulsar
    from pulsar.schema import AvroSchema, Integer, JsonSchema, Record, String

    class Numbered(Record):
        n = Integer(required=True)

    class Named(Record):
        n = Integer(required=True)
        name = String()

    return (pulsar.schema.BytesSchema(), AvroSchema(Numbered), JsonSchema(Named), AvroSchema(Named))[number % 4]


class Written:
    """Numbered events in each topic of a namespace, and when."""

    def __init__(self, server: Any, namespace: str) -> None:
        import pulsar

        self.server, self.namespace = server, namespace
        self.client = pulsar.Client(server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        self.start = datetime.now(UTC)
        self.written: Counter[str] = Counter()

    def topic(self, name: str, partitions: int | None = None) -> str:
        return self.server.create_topic(f"{self.namespace}/{name}", partitions)

    def write(self, name: str, number: int, count: int = EVENTS) -> None:
        schema = schema_of(number)
        producer = self.client.create_producer(f"persistent://{self.namespace}/{name}", schema=schema)
        for n in range(self.written[name], self.written[name] + count):
            fields = {"n": n} | ({"name": "x"} if number % 4 > 1 else {})
            value = b"%d" % n if number % 4 == 0 else schema._record_cls(**fields)
            producer.send_async(value, lambda *_: None)
        producer.flush()
        producer.close()
        self.written[name] += count

    def window(self) -> Window:
        """All since the last one."""
        start, end = self.start, datetime.now(UTC) + timedelta(milliseconds=20)
        self.start = end
        wait_until(lambda: datetime.now(UTC) > end + timedelta(milliseconds=60), "the window's end")
        return Window(start, end)


@pytest.fixture
def written(pulsar_server: Any, pulsar_namespace: str) -> Any:
    made = Written(pulsar_server, pulsar_namespace)
    yield made
    made.client.close()


@pytest.fixture
def fan(pulsar_server: Any, pulsar_namespace: str, tmp_path: Any) -> FanOut:
    options = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
    return FanOut(tmp_path, PulsarSource(pattern=f"{pulsar_namespace}/.*", value="auto"), options, SLACK)


def has_all(fan: FanOut, written: Written, name: str, number: int) -> bool:
    """Whether a topic's table has each of its numbers once."""
    values = fan.counts(name, "value" if number % 4 == 0 else "n")
    numbers = Counter({int(value): count for value, count in values.items()})
    return numbers == Counter(range(written.written[name]))


@pytest.mark.slow
def test_forty_topics_of_differing_schemas_land_after_a_kill(fan: FanOut, written: Written) -> None:
    names = [f"t{number:02}" for number in range(TOPICS)]
    for number, name in enumerate(names):
        written.topic(name, 2 if number == 1 else None)
        written.write(name, number)
    window = written.window()
    process = fan.start(window)
    wait_until(lambda: len(fan.landed()) > 2 or process.poll() is not None, "some tables", every_seconds=0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = fan.landed()
    outcome = fan.read(window, attempt=2)
    assert not outcome.failures
    assert fan.jobs <= 1
    assert before <= fan.landed() == set(names)
    assert all(has_all(fan, written, name, number) for number, name in enumerate(names))
    assert {state for name in names for state in fan.states(source(written, name), window)} == {"covered"}
    columns = [set(fan.rows(names[number])[0]) for number in range(4)]
    assert [{"n", "name"} & one for one in columns] == [set(), {"n"}, {"n", "name"}, {"n", "name"}]
    assert fan.read(window, attempt=3).before == TOPICS, "nothing is read twice"


def source(written: Written, name: str) -> PulsarSource:
    return PulsarSource(f"{written.namespace}/{name}", value="auto")


def test_topics_come_meet_and_go(fan: FanOut, written: Written) -> None:
    for name, number in (("orders", 0), ("clicks", 1)):
        written.topic(name)
        written.write(name, number)
    assert not fan.read(written.window(), "one").failures
    for name, number in (("late", 2), ("Some.Topic", 0), ("some_topic", 0)):
        written.topic(name)
        written.write(name, number)
    written.write("orders", 0)
    second = written.window()
    outcome = fan.read(second, "two")
    failed = {name.rpartition("/")[2]: one.error_type for (name, _), one in outcome.failures.items()}
    assert failed == {"Some.Topic": "InvalidRequest", "some_topic": "InvalidRequest"}
    assert has_all(fan, written, "orders", 0)
    assert has_all(fan, written, "late", 2)
    for name in ("some_topic", "late"):
        written.server.admin("DELETE", f"persistent/{written.namespace}/{name}?force=true")
    written.write("Some.Topic", 0, 5)
    third = fan.read(written.window(), "three")
    assert [name.rpartition("/")[2] for name, _ in third.failures] in ([], ["late"], ["late", "some_topic"])
    assert {one.error_type for one in third.failures.values()} <= {"StartTrimmed"}
    assert len(fan.rows("some_topic")) == 5
    assert has_all(fan, written, "late", 2), "what was landed of it stays"


def test_a_named_topic_that_is_not_there_fails_alone(fan: FanOut, written: Written) -> None:
    written.topic("orders")
    written.write("orders", 0)
    fan.source = PulsarSource([f"{written.namespace}/{name}" for name in ("orders", "nowhere")])
    outcome = fan.read(written.window())
    assert [one.error_type for one in outcome.failures.values()] == ["SourceNotFound"]
    assert has_all(fan, written, "orders", 0)


def test_a_pattern_is_expanded_by_two_requests(pulsar_server: Any, pulsar_namespace: str) -> None:
    for name in ("a", "b%252Fc"):
        pulsar_server.create_topic(f"{pulsar_namespace}/{name}")
    pulsar_server.create_topic(f"{pulsar_namespace}/p", 3)
    system = PulsarSystem.from_options({"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url})
    found = system.singles(PulsarSource(pattern=f"{pulsar_namespace}/.*", conn_id="c", keys="k"))
    names = [json.dumps(one.topics).rpartition("/")[2].strip('"]') for one in found]
    assert len(found) == 3
    assert {"a", "b%2Fc", "p"} == set(names)
    assert {(one.conn_id, one.keys) for one in found} == {("c", ("k",))}
