import pytest

from airflow_provider_streams.errors import AuthenticationFailed, NotAuthorized, SourceNotFound, SystemUnavailable
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient, AsyncAdminClient
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint

pytestmark = pytest.mark.pulsar


@pytest.fixture
def admin(bench):
    with AdminClient(bench.endpoint) as client:
        yield client


def test_a_cluster_tells_its_version_and_name(admin):
    assert admin(requests.brokers_version()).startswith("4.")
    assert admin(requests.brokers_ready())
    assert admin(requests.clusters()) == ("standalone",)


def test_every_call_on_a_topic_is_understood(bench, admin):
    topic = bench.topic()
    bench.write(topic, [b"%d" % number for number in range(120)], batch=2)
    subscription = bench.client.subscribe(topic, "held", initial_position=_earliest())
    subscription.close()
    stats = admin(requests.internal_stats(topic))
    assert sum(ledger.entries for ledger in stats.ledgers) == 60
    assert len(stats.ledgers) == 2
    info = admin(requests.internal_info(topic))[topic]
    assert [ledger.ledger for ledger in info.ledgers] == [ledger.ledger for ledger in stats.ledgers]
    assert [ledger.closed_ms is None for ledger in info.ledgers] == [False, True]
    assert info.durable_cursors == {"held"}
    assert info.version <= len(info.ledgers), "a record that lost no ledger proves it"
    first = stats.ledgers[0].ledger
    peeked = admin(requests.peek(topic, first, 3))
    assert (peeked.aborted, peeked.marker_type) == (False, None)
    publish_ms = int(peeked.publish_time.timestamp() * 1000)
    found = admin(requests.message_id_at(topic, publish_ms))
    assert (found.ledger, found.entry <= 3) == (first, True)
    assert admin(requests.last_message_id(topic)).ledger == stats.ledgers[-1].ledger
    held = admin(requests.stats(topic)).subscriptions["held"]
    assert (held.entries, held.durable) == (60, True)
    assert admin(requests.subscriptions(topic)) == ("held",)
    assert admin(requests.retention(topic)).unlimited
    assert admin(requests.message_ttl(topic)) == 0
    assert admin(requests.backlog_quotas(topic)) == admin(requests.namespace_backlog_quotas(topic)) == {}
    assert admin(requests.peek(topic, first - 1, 0)) is None
    assert admin(requests.transaction_buffer(topic)) is not None


def _earliest():
    import pulsar

    return pulsar.InitialPosition.Earliest


def test_partitioned_topics_are_listed_by_parent_and_by_partition(bench, admin):
    topic = bench.topic(partitions=3)
    assert admin(requests.partitions(topic)) == 3
    assert admin(requests.partitioned_topics(bench.namespace)) == (topic,)
    assert sorted(admin(requests.topics(bench.namespace))) == [f"{topic}-partition-{n}" for n in range(3)]
    assert admin(requests.partitioned_stats(topic)).subscriptions == {}


@pytest.mark.usefixtures("pulsar_unchanged")
def test_asking_about_a_missing_topic_creates_nothing(bench, admin):
    topic = f"persistent://{bench.namespace}/missing"
    calls = (
        requests.partitions,
        requests.stats,
        requests.internal_stats,
        requests.last_message_id,
        requests.subscriptions,
    )
    for call in calls:
        with pytest.raises(SourceNotFound, match="missing"):
            admin(call(topic))
    for extra in (requests.peek(topic, 1, 1), requests.message_id_at(topic, 1)):
        with pytest.raises(SourceNotFound):
            admin(extra)


async def test_many_calls_share_one_loop(bench):
    topics = [bench.topic() for _ in range(5)]
    async with AsyncAdminClient(bench.endpoint) as client:
        found = await client.all(requests.internal_stats(topic) for topic in topics * 4)
    assert len(found) == 20


def test_a_broker_that_is_not_there_is_unavailable(bench):
    nowhere = Endpoint(bench.server.service_url, admin_url="http://127.0.0.1:1")
    with AdminClient(nowhere, backoff=Backoff(2, 0, 0)) as client, pytest.raises(SystemUnavailable):
        client(requests.brokers_version())


@pytest.mark.slow
def test_the_two_meanings_of_401_are_told_apart(pulsar_auth_server):
    server = pulsar_auth_server
    topic = server.create_topic("public/default/secret")
    server.grant("public/default", "reader", ["consume"])

    def ask(token, request):
        endpoint = Endpoint(server.service_url, server.admin_url, token=token)
        with AdminClient(endpoint) as client:
            return client(request)

    for token in ("", "garbage", server.token("reader", valid_seconds=-60)):
        with pytest.raises(AuthenticationFailed) as caught:
            ask(token, requests.brokers_version())
        assert not token or token not in str(caught.value)
    assert ask(server.token("stranger"), requests.brokers_version())
    with pytest.raises(NotAuthorized, match="secret"):
        ask(server.token("stranger"), requests.internal_stats(topic))
    with pytest.raises(NotAuthorized):
        ask(server.token("stranger"), requests.topics("public/default"))
    assert ask(server.token("reader"), requests.internal_stats(topic)).ledgers
    assert ask(server.token("reader"), requests.retention(topic)) is None
    assert ask(server.token(), requests.retention(topic)) is not None
