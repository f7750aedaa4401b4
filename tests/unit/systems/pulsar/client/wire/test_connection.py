from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl

import pytest

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    CertificateNotTrusted,
    InvalidRequest,
    NotAuthorized,
    ProtocolError,
    ReadStalled,
    RedirectRefused,
    SourceNotFound,
    SystemUnavailable,
)
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.pulsar.client.endpoint import Address, Endpoint
from airflow_provider_streams.systems.pulsar.client.wire import broker_client as broker_module
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire import connection as connection_module
from airflow_provider_streams.systems.pulsar.client.wire import probe_consumers
from airflow_provider_streams.systems.pulsar.client.wire.broker_client import BrokerClient
from airflow_provider_streams.systems.pulsar.client.wire.connection import Connection
from airflow_provider_streams.systems.pulsar.planning.entry_probe import ProbePoint

TOPIC = "persistent://public/default/t"


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(broker_module.time, "sleep", lambda _: None)


def owner(url, asked, **more):
    """The answer to a lookup: this broker owns the topic."""
    return pb.CommandLookupTopicResponse(brokerServiceUrl=url.encode(), request_id=asked.request_id, **more)


def redirect(url, asked, **more):
    return owner(url, asked, response=pb.CommandLookupTopicResponse.Redirect, **more)


def refusal(asked, number):
    """As brokers refuse; a refused connection has the number -1."""
    request_id = getattr(asked, "request_id", (1 << 64) - 1)
    return pb.CommandError(request_id=request_id, error=number, message=b"why")


def ask(fake, **settings):
    with BrokerClient(Endpoint(fake.url, **settings)) as client:
        return client.last_message_ids([TOPIC])[TOPIC]


def test_the_token_is_shown_and_refreshed_when_challenged(fake_broker, tmp_path):
    file = tmp_path / "token"
    file.write_text("first")
    endpoint = Endpoint(fake_broker.url, token_file=str(file))

    def challenge(asked):
        file.write_text("second")
        return [
            pb.CommandAuthChallenge(challenge=pb.AuthData(auth_method_name="token", auth_data=b"PulsarAuthRefresh")),
            pb.CommandGetLastMessageIdResponse(request_id=asked.request_id),
        ]

    fake_broker.answers[pb.CommandGetLastMessageId] = challenge
    with BrokerClient(endpoint) as client:
        assert client.last_message_ids([TOPIC]) == {TOPIC: None}
        assert client.last_message_ids([TOPIC]) == {TOPIC: None}  # by now the broker has our answer
    connect = fake_broker.of(pb.CommandConnect)[0]
    assert (connect.auth_method_name, connect.auth_data, connect.feature_flags.supports_auth_refresh) == (
        "token",
        b"first",
        True,
    )
    assert fake_broker.of(pb.CommandAuthResponse)[0].response == pb.AuthData(
        auth_method_name="token", auth_data=b"second"
    )


def test_without_credentials_none_are_sent(fake_broker):
    ask(fake_broker)
    connect = fake_broker.of(pb.CommandConnect)[0]
    assert not connect.HasField("auth_method_name")
    assert not connect.HasField("auth_data")


@pytest.mark.parametrize(
    ("number", "kind", "tries"),
    [(3, AuthenticationFailed, 1), (4, NotAuthorized, 1), (11, SourceNotFound, 1), (6, SystemUnavailable, 6)],
)
@pytest.mark.parametrize(
    "command", [pb.CommandConnect, pb.CommandLookupTopic, pb.CommandSubscribe, pb.CommandGetLastMessageId]
)
def test_refusals_are_typed_and_only_passing_ones_are_asked_again(fake_broker, command, number, kind, tries):
    fake_broker.answers[command] = lambda asked: [refusal(asked, number)]
    with pytest.raises(kind):
        ask(fake_broker)
    assert len(fake_broker.of(command)) == tries


def test_a_passing_failure_passes(fake_broker):
    refusals = [6, 6]

    def subscribe(asked):
        return [refusal(asked, refusals.pop()) if refusals else pb.CommandSuccess(request_id=asked.request_id)]

    fake_broker.answers[pb.CommandSubscribe] = subscribe
    fake_broker.tail = (3, 4)
    assert ask(fake_broker) == Position.of(3, 4, -1)


def test_pings_are_answered(fake_broker):
    fake_broker.answers[pb.CommandGetLastMessageId] = lambda asked: [
        pb.CommandPing(),
        pb.CommandGetLastMessageIdResponse(request_id=asked.request_id),
    ]
    with BrokerClient(Endpoint(fake_broker.url)) as client:
        client.last_message_ids([TOPIC])
    assert fake_broker.of(pb.CommandPong)


def test_a_broker_that_does_not_answer_pings_is_gone(fake_broker, monkeypatch):
    monkeypatch.setattr(connection_module, "PING_SECONDS", 0.05)
    fake_broker.answers[pb.CommandPing] = lambda _: []
    endpoint = Endpoint(fake_broker.url)
    connection = Connection(endpoint.addresses[0], endpoint)
    with pytest.raises(SystemUnavailable, match="PING"):
        connection.exchange({1: pb.CommandPing()})
    connection.close()
    assert fake_broker.of(pb.CommandPing)


def test_a_missing_answer_is_unavailability_in_bounded_time(fake_broker):
    fake_broker.answers[pb.CommandLookupTopic] = lambda _: []
    with pytest.raises(SystemUnavailable, match="no answer to CommandLookupTopic"):
        ask(fake_broker, request_timeout_seconds=0.05)


@pytest.mark.parametrize(("tail", "end"), [((3, 4), "its last entry 3:4"), (None, "the broker does not tell")])
def test_a_look_at_an_entry_that_nobody_is_sent_ends(fake_broker, monkeypatch, tail, end):
    monkeypatch.setattr(probe_consumers, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(broker_module, "PATIENCE", Backoff(attempts=2))
    fake_broker.tail = tail
    if tail is None:
        fake_broker.answers[pb.CommandGetLastMessageId] = lambda _: []
    with (
        BrokerClient(Endpoint(fake_broker.url, request_timeout_seconds=0.3)) as client,
        pytest.raises(ReadStalled, match=rf"nothing came for 0 s at 3:0 on the way to .*{end}") as caught,
    ):
        client.probe([ProbePoint(TOPIC, 3, 0)])
    assert "cannot read what is stored there" in str(caught.value)
    assert len(fake_broker.of(pb.CommandSubscribe)) == 2


def test_lookups_follow_redirects_with_their_authority(fake_brokers):
    owner, service = fake_brokers(tail=(9, 9)), fake_brokers()
    service.answers[pb.CommandLookupTopic] = lambda asked: [redirect(owner.url, asked, authoritative=True)]
    assert ask(service) == Position.of(9, 9, -1)
    assert owner.of(pb.CommandLookupTopic)[0].authoritative
    assert not service.of(pb.CommandLookupTopic)[0].authoritative
    assert not service.of(pb.CommandSubscribe)


def test_redirects_in_a_circle_end(fake_broker):
    fake_broker.answers[pb.CommandLookupTopic] = lambda asked: [redirect(fake_broker.url, asked)]
    with pytest.raises(SystemUnavailable, match="redirects"):
        ask(fake_broker)


def test_a_proxy_is_told_which_broker_is_meant(fake_broker):
    fake_broker.answers[pb.CommandLookupTopic] = lambda asked: [
        owner("pulsar://inside:6650", asked, proxy_through_service_url=True)
    ]
    ask(fake_broker)
    assert [connect.proxy_to_broker_url for connect in fake_broker.of(pb.CommandConnect)] == ["", "inside:6650"]


def test_a_broker_behind_nat_is_called_at_the_given_host(fake_broker):
    fake_broker.answers[pb.CommandLookupTopic] = lambda asked: [
        owner(f"pulsar://inside.invalid:{fake_broker.port}", asked)
    ]
    fake_broker.tail = (1, 1)
    assert ask(fake_broker, rewrite_redirects=True) == Position.of(1, 1, -1)


def test_credentials_go_to_allowed_hosts_only(fake_brokers):
    other, service = fake_brokers(), fake_brokers()
    service.answers[pb.CommandLookupTopic] = lambda asked: [owner(other.url.replace("127.0.0.1", "localhost"), asked)]
    with pytest.raises(RedirectRefused, match="allowed_hosts"):
        ask(service, token="jwt", allowed_hosts=("elsewhere",))
    assert not other.heard
    ask(service, token="jwt", allowed_hosts=("localhost",))
    assert other.of(pb.CommandConnect)[0].auth_data == b"jwt"


@pytest.mark.parametrize("response", [pb.CommandLookupTopicResponse.Connect, pb.CommandLookupTopicResponse.Redirect])
@pytest.mark.parametrize("rewrite", [False, True])
def test_a_lookup_does_not_lead_from_tls_to_plain_tcp(tls_broker, certificate, fake_broker, response, rewrite):
    tls_broker.answers[pb.CommandLookupTopic] = lambda asked: [
        pb.CommandLookupTopicResponse(
            brokerServiceUrlTls=fake_broker.url.encode(), response=response, request_id=asked.request_id
        )
    ]
    endpoint = Endpoint(tls_broker.url_tls, token="jwt", tls_ca_file=certificate[0], rewrite_redirects=rewrite)
    with BrokerClient(endpoint) as client, pytest.raises(RedirectRefused, match="without TLS"):
        client.last_message_ids([TOPIC])[TOPIC]
    assert not fake_broker.heard


def test_the_listener_name_is_asked_for(fake_broker):
    ask(fake_broker, listener_name="outside")
    assert fake_broker.of(pb.CommandLookupTopic)[0].advertised_listener_name == "outside"


def test_a_listener_that_a_broker_does_not_have_is_a_setting_and_not_retried(fake_broker):
    fake_broker.answers[pb.CommandLookupTopic] = lambda asked: [
        pb.CommandLookupTopicResponse(
            request_id=asked.request_id,
            response=pb.CommandLookupTopicResponse.Failed,
            error=pb.ServiceNotReady,
            message=f"the broker do not have {asked.advertised_listener_name or 'leader'} listener".encode(),
        )
    ]
    with pytest.raises(InvalidRequest, match=r"no advertised listener 'outside': .* listener_name") as caught:
        ask(fake_broker, listener_name="outside")
    assert not caught.value.retryable
    assert len(fake_broker.of(pb.CommandLookupTopic)) == 1


def test_the_next_host_is_tried_when_one_is_down(fake_broker):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    fake_broker.tail = (1, 2)
    url = f"pulsar://127.0.0.1:{port},127.0.0.1:{fake_broker.port}"
    with BrokerClient(Endpoint(url)) as client:
        assert client.last_message_ids([TOPIC])[TOPIC] == Position.of(1, 2, -1)


@pytest.mark.parametrize(("host", "hint"), [("127.0.0.1", "refused"), ("nowhere.invalid", "unknown")])
def test_hosts_that_cannot_be_reached_say_why(host, hint):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(SystemUnavailable, match=hint), BrokerClient(Endpoint(f"pulsar://{host}:{port}")) as client:
        client.last_message_ids([TOPIC])


def test_many_topics_are_asked_over_one_connection(fake_broker):
    fake_broker.tail = (5, 6)
    topics = [f"{TOPIC}-partition-{number}" for number in range(250)]
    with BrokerClient(Endpoint(fake_broker.url)) as client:
        assert client.last_message_ids(topics) == dict.fromkeys(topics, Position.of(5, 6, -1))
    assert len(fake_broker.of(pb.CommandConnect)) == 1
    assert len(fake_broker.of(pb.CommandCloseConsumer)) == 250
    assert len({x.subscription for x in fake_broker.of(pb.CommandSubscribe)}) == 250


def test_an_empty_topic_has_no_last_message(fake_broker):
    fake_broker.tail = None
    assert ask(fake_broker) is None


def test_the_entry_before_is_where_a_cursor_stands(fake_broker):
    fake_broker.mark_delete = (3, 4)
    with BrokerClient(Endpoint(fake_broker.url)) as client:
        assert client.entry_before(TOPIC, (7, 0)) == (3, 4)
        assert fake_broker.subscriptions() == [(7, 0)]
        fake_broker.mark_delete = (7, -1)
        assert client.entry_before(TOPIC, (7, 0)) is None


@pytest.mark.parametrize(("raw", "hint"), [(b"HTTP/1.1 400\r\n", "HTTP"), (b"\x15\x03\x01\x00\x02\x02", "TLS")])
def test_a_wrong_port_is_named(fake_broker, raw, hint):
    fake_broker.raw = raw
    with pytest.raises(ProtocolError, match=hint) as caught:
        ask(fake_broker)
    assert not caught.value.retryable


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Files of a self-signed certificate and its key, for localhost and 127.0.0.1 only."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(folder / "cert.pem"), str(folder / "key.pem")


@pytest.fixture
def tls_broker(fake_brokers, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.load_verify_locations(certificate[0])
    return fake_brokers(tls=context, tail=(1, 2))


def test_tls_with_our_certificate_authority(tls_broker, certificate):
    with BrokerClient(Endpoint(tls_broker.url_tls, tls_ca_file=certificate[0])) as client:
        assert client.last_message_ids([TOPIC])[TOPIC] == Position.of(1, 2, -1)


def test_tls_with_a_client_certificate(tls_broker, certificate):
    tls_broker.tls.verify_mode = ssl.CERT_REQUIRED
    cert, key = certificate
    with BrokerClient(Endpoint(tls_broker.url_tls, tls_ca_file=cert, tls_cert_file=cert, tls_key_file=key)) as client:
        client.last_message_ids([TOPIC])[TOPIC]
    connect = tls_broker.of(pb.CommandConnect)[0]
    assert (connect.auth_method_name, connect.auth_data) == ("tls", b"")


def test_an_unknown_certificate_is_refused_before_anything_is_sent(tls_broker):
    with (
        pytest.raises(CertificateNotTrusted, match="tls_ca_file"),
        BrokerClient(Endpoint(tls_broker.url_tls, token="x")) as client,
    ):
        client.last_message_ids([TOPIC])[TOPIC]
    assert not tls_broker.heard


def test_a_certificate_for_another_host_is_refused_unless_told_otherwise(tls_broker, certificate, monkeypatch):
    real = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda address, *rest: real(("127.0.0.1", address[1]), *rest))
    address = Address("other.example", tls_broker.port, tls=True)
    with pytest.raises(CertificateNotTrusted, match=r"other\.example"):
        Connection(address, Endpoint(tls_broker.url_tls, tls_ca_file=certificate[0]))
    Connection(address, Endpoint(tls_broker.url_tls, tls_ca_file=certificate[0], tls_verify_hostname=False)).close()


def test_tls_to_a_plain_port_is_named(fake_broker):
    with pytest.raises(ProtocolError, match="TLS"):
        Connection(Address("localhost", fake_broker.port, tls=True), Endpoint(fake_broker.url))
