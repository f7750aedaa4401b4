"""The whole way over TLS: REST, lookup and reading, with a token or with a client's certificate."""

from __future__ import annotations

import secrets
import ssl
import threading
import traceback
from contextlib import closing, nullcontext
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pulsar
import pytest

from airflow_provider_streams.errors import AuthenticationFailed, CertificateNotTrusted, InvalidRequest, RedirectRefused
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from tests.integration.pulsar.conftest import written_from

pytestmark = pytest.mark.pulsar


@pytest.fixture(scope="module")
def topic(pulsar_auth_server):
    """A topic of 100 messages, written over TLS by the official client; and when it was there."""
    server, namespace = pulsar_auth_server, f"public/tls-{secrets.token_hex(4)}"
    server.create_namespace(namespace)
    topic, made = server.create_topic(f"{namespace}/t"), written_from()
    files = server.certificates
    client = pulsar.Client(
        server.service_url_tls,
        authentication=pulsar.AuthenticationTLS(str(files.client.certificate), str(files.client.key)),
        tls_trust_certs_file_path=str(files.authority),
        tls_validate_hostname=True,
    )
    with closing(client):
        producer = client.create_producer(topic)
        for number in range(100):
            producer.send(b"%d" % number)
    yield topic, made
    server.delete_namespace(namespace)


def by_token(server):
    return {"token": server.token()}


def by_certificate(server):
    files = server.certificates.client
    return {"tls_cert_file": str(files.certificate), "tls_key_file": str(files.key)}


def connected(server, **options):
    urls = {"service_url": server.service_url_tls, "admin_url": server.admin_url_tls}
    return PulsarSystem.from_options({**urls, "tls_ca_file": str(server.certificates.authority), **options})


def request(topic):
    name, made = topic
    window = Window(made, datetime.now(UTC) - timedelta(milliseconds=1))
    return PlanRequest(PulsarSource(name), window, "d.read", slack=timedelta(0))


@pytest.mark.parametrize("credentials", [by_token, by_certificate])
def test_a_window_is_planned_and_read(pulsar_auth_server, topic, credentials):
    with closing(connected(pulsar_auth_server, **credentials(pulsar_auth_server))) as system:
        plan = system.plan(request(topic))
        values, receipts = [], []
        for split in plan.splits:
            with closing(system.read(plan, split, ["value"])) as reader:
                values += [value for batch in reader for value in batch["value"].to_pylist()]
                receipts.append(reader.receipt)
    assert values == [b"%d" % number for number in range(100)]
    assert compare(plan, receipts, seconds=0).verdict == "complete"


def test_a_certificate_of_an_unknown_authority_ends_it(pulsar_auth_server, topic):
    options = {**by_token(pulsar_auth_server), "tls_ca_file": ""}
    with (
        closing(connected(pulsar_auth_server, **options)) as system,
        pytest.raises(CertificateNotTrusted, match="tls_ca_file") as caught,
    ):
        system.plan(request(topic))
    assert not caught.value.retryable


def test_a_host_must_bear_the_name_in_its_certificate_unless_told_otherwise(pulsar_auth_server, topic):
    """`localhost` is the same broker, but the certificate does not name it."""
    strangers = {
        "service_url": pulsar_auth_server.service_url_tls.replace("127.0.0.1", "localhost"),
        "admin_url": pulsar_auth_server.admin_url_tls.replace("127.0.0.1", "localhost"),
        **by_token(pulsar_auth_server),
    }
    with closing(connected(pulsar_auth_server, **strangers)) as system, pytest.raises(CertificateNotTrusted):
        system.plan(request(topic))
    relaxed = {**strangers, "tls_verify_hostname": "false"}
    with closing(connected(pulsar_auth_server, **relaxed)) as system:
        assert not system.plan(request(topic)).is_empty


def test_without_credentials_a_broker_that_asks_for_them_refuses(pulsar_auth_server, topic):
    with closing(connected(pulsar_auth_server)) as system, pytest.raises(AuthenticationFailed):
        system.plan(request(topic))


class _Redirecting(BaseHTTPRequestHandler):
    """Sends every question to the same question elsewhere, with TLS as it was asked itself."""

    def do_GET(self):
        self.server.asked.append(self.headers.get("Authorization"))
        self.send_response(307)
        self.send_header("Location", self.server.target + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def redirecting(pulsar_auth_server):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Redirecting)
    server.asked, server.target = [], ""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issued = pulsar_auth_server.certificates.server
    context.load_cert_chain(issued.certificate, issued.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    running = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    running.start()
    yield server
    server.shutdown()
    running.join()
    server.server_close()


@pytest.mark.parametrize("shown", [True, False])
def test_a_redirect_leads_from_tls_to_the_brokers_tls_port_only(pulsar_auth_server, topic, redirecting, shown):
    """Without credentials no better: what is asked, and what is answered, is nobody's else."""
    given = by_token(pulsar_auth_server) if shown else {}
    url = {"admin_url": f"https://127.0.0.1:{redirecting.server_port}", **given}
    redirecting.target = pulsar_auth_server.admin_url_tls
    with closing(connected(pulsar_auth_server, **url)) as system, nullcontext() if shown else refused():
        assert not system.plan(request(topic)).is_empty
    redirecting.target = pulsar_auth_server.admin_url
    with closing(connected(pulsar_auth_server, **url)) as system, pytest.raises(RedirectRefused, match="plain HTTP"):
        system.plan(request(topic))
    assert all(redirecting.asked) == shown


def refused():
    return pytest.raises(AuthenticationFailed)


def test_no_error_of_a_refused_token_shows_it(pulsar_auth_server, topic, tmp_path, monkeypatch):
    other = f"{pulsar_auth_server.token()[:-8]}AAAAAAAA"
    for text, error in ((other, AuthenticationFailed), (f"{other[:50]}\n{other[50:]}", InvalidRequest)):
        (tmp_path / "token").write_text(text)
        monkeypatch.setenv("STREAMS_TEST_TOKEN", text)
        for given in ({"token": text}, {"token_file": str(tmp_path / "token")}, {"token_env": "STREAMS_TEST_TOKEN"}):
            with pytest.raises(error) as caught, closing(connected(pulsar_auth_server, **given)) as system:
                system.plan(request(topic))
            shown = "".join(traceback.format_exception(caught.value))
            assert not [piece for piece in text.split() if piece in shown]


SPELLINGS = [
    "pulsar+ssl://:{token}@{address}/?admin_url={admin}&tls_ca_file={ca}",
    "pulsar-ssl://:{token}@{address}/?admin_url={admin}&tls_ca_file={ca}",
    "pulsar://pulsar+ssl://:{token}@{address}/?admin_url={admin}&tls_ca_file={ca}",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_uri_that_asks_for_tls_gets_it(pulsar_auth_server, monkeypatch, spelling):
    server = pulsar_auth_server
    words = {
        "token": quote(server.token(), safe=""),
        "address": server.service_url_tls.partition("://")[2],
        "admin": quote(server.admin_url_tls, safe=""),
        "ca": quote(str(server.certificates.authority), safe=""),
    }
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", spelling.format(**words))
    with closing(PulsarHook("spelt")) as hook:
        works, said = hook.test_connection()
    assert works, said
    assert f"The broker at {server.service_url_tls} accepts us" in said


def test_a_token_without_a_scheme_reaches_no_broker(pulsar_auth_server, monkeypatch):
    address, token = pulsar_auth_server.service_url.partition("://")[2], pulsar_auth_server.token()
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", f"pulsar://:{token}@{address}")
    works, said = PulsarHook("spelt").test_connection()
    assert not works
    assert "nothing says whether to use TLS" in said
    assert token not in said
