"""A cluster of two brokers: each sends us to the other for the topics that it does not own."""

from __future__ import annotations

import collections
import secrets
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pulsar
import pytest

from airflow_provider_streams.errors import AccessError
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.reading import entry_fetcher as feed_module
from airflow_provider_streams.systems.pulsar.reading import reader as reader_module
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from stream_servers import PulsarBroker, PulsarStorage
from tests.integration.pulsar.conftest import written_from

pytestmark = [pytest.mark.pulsar, pytest.mark.slow]

PARTITIONS = 8
EVENTS = 1600


@pytest.fixture(scope="module")
def brokers():
    with (
        PulsarStorage() as storage,
        PulsarBroker(storage, ledger_entries=50, token_auth=True) as first,
        PulsarBroker(storage, address="localhost", ledger_entries=50, token_auth=True) as second,
    ):
        yield first, second


@pytest.fixture
def first(brokers):
    return brokers[0]


@pytest.fixture
def second(brokers):
    """Another host, as far as names tell; again, if a test has killed it."""
    return brokers[1].start()


@pytest.fixture(scope="module")
def spread(brokers):
    """A topic of numbered events, of which each broker owns partitions; who owns which; and since when it is there."""
    first, _ = brokers
    for _ in range(10):
        topic = _topic(first)
        owners = {shard: first.owner(shard) for shard in shards_of(topic)}
        if len(set(owners.values())) > 1:
            break
    else:
        pytest.fail("ten topics, and each was given to one broker alone")
    made = written_from()
    client = pulsar.Client(first.service_url, authentication=pulsar.AuthenticationToken(first.token()))
    with closing(client):
        router = pulsar.PartitionsRoutingMode.RoundRobinDistribution
        producer = client.create_producer(topic, message_routing_mode=router)
        for number in range(EVENTS):
            producer.send_async(b"%d" % number, lambda *_: None)
        producer.flush()
    return topic, owners, made


def _topic(server):
    namespace = f"public/two-{secrets.token_hex(4)}"
    server.admin("PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": 2 * PARTITIONS}})
    server.set_retention(namespace)
    return server.create_topic(f"{namespace}/t", PARTITIONS)


def shards_of(topic):
    return [f"{topic}-partition-{number}" for number in range(PARTITIONS)]


def connected(server, **options):
    given = {"service_url": server.service_url, "admin_url": server.admin_url, "token": server.token()}
    return closing(PulsarSystem.from_options({**given, **options}))


def request(topic, made):
    window = Window(made, datetime.now(UTC) - timedelta(milliseconds=1))
    return PlanRequest(PulsarSource(topic), window, "d.read", slack=timedelta(0))


def read(system, plan):
    """Each value with how often it came, and the proven receipt."""
    values, receipts = collections.Counter(), []
    for split in plan.splits:
        with closing(system.read(plan, split, ["value"])) as reader:
            for batch in reader:
                values.update(batch["value"].to_pylist())
            receipts.append(reader.receipt)
    return values, compare(plan, receipts, seconds=0)


EVERY_EVENT_ONCE = collections.Counter(b"%d" % number for number in range(EVENTS))


@pytest.mark.parametrize("asked", ["first", "second"])
def test_a_window_over_both_is_read_whole_whichever_is_asked(first, second, spread, asked):
    urls = {} if asked == "first" else {"service_url": second.service_url, "admin_url": second.admin_url}
    hosts = f"127.0.0.1,{second.address}"
    with connected(first, **urls, allowed_hosts=hosts) as system:
        values, receipt = read(system, system.plan(request(spread[0], spread[2])))
    assert values == EVERY_EVENT_ONCE
    assert receipt.verdict == "complete"


def test_credentials_go_to_no_host_that_was_not_named(first, second, spread):
    with connected(first) as system, pytest.raises(AccessError, match=second.address) as caught:
        system.plan(request(spread[0], spread[2]))
    assert "allowed_hosts" in str(caught.value)
    assert not caught.value.retryable


def test_a_killed_brokers_topics_are_read_on_from_the_other(first, second, spread, monkeypatch):
    # little is on the way at any moment
    monkeypatch.setattr(feed_module, "PERMITS", 20)
    monkeypatch.setattr(reader_module, "FLUSH_ENTRIES", 1)
    topic, owners, made = spread
    options = {"allowed_hosts": second.address, "stall_seconds": "200"}
    both = f"pulsar://{second.address}:{second.port['broker']},127.0.0.1:{first.port['broker']}"
    with connected(first, service_url=both, **options) as system:
        plan = system.plan(request(topic, made))
        split = next(one for one in plan.splits if owners[one.shard] == second.service_url)
        with closing(system.read(plan, split, ["value"])) as reader:
            batches = iter(reader)
            values = next(batches)["value"].to_pylist()
            assert len(values) < split.entries
            second.kill()
            for batch in batches:
                values += batch["value"].to_pylist()
            receipt = reader.receipt
        assert not second.running
        assert reader.reconnects > 0
        assert receipt.entries == split.entries == len(values) == len(set(values))
        # also the others, by the list of hosts whose first does not answer
        assert read(system, plan)[0] == EVERY_EVENT_ONCE
