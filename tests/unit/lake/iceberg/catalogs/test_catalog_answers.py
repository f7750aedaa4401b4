"""A catalog's answers lead no secret out of TLS, and none of the connection to hosts that it does not name."""

import json
import traceback
from http.server import BaseHTTPRequestHandler

import pytest
from pyiceberg.exceptions import ForbiddenError

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import RedirectRefused, SinkError
from airflow_provider_streams.lake.connections import given, secrets_of
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.catalogs.catalog_answers import check_answer
from airflow_provider_streams.lake.iceberg.files.file_io import StoreFileIO
from stream_servers.certificates import Certificates
from tests.unit.lake.iceberg.rest_servers import serving

SINK = IcebergSink("shop.orders", conn_id="lake")
SECURE, CLEAR = {"uri": "https://catalog:8181"}, {"uri": "http://catalog:8181"}
CLIENT = {"credential": "me:canary-96"}
KEYS = {"s3.access-key-id": "key", "s3.secret-access-key": "canary-96"}
SECRET = CLIENT["credential"].partition(":")[2]
GIVEN_TOKEN = "canary-of-the-catalog"
VENDED = {"s3.access-key-id": "vended", "s3.secret-access-key": "canary-97"}
STORE = {"s3.endpoint": "http://store:9000"}

LED_AWAY = [
    (SECURE, {"uri": "http://catalog:8181"}),
    (SECURE, {"uri": "http://other"}),
    (SECURE | {"token": "canary-96"}, {"uri": "https://other"}),
    (SECURE | {"header.Authorization": "canary-96"}, {"uri": "https://other"}),
    (CLEAR | CLIENT, {"uri": "http://other"}),
    (SECURE | CLIENT, {"oauth2-server-uri": "http://catalog:8181/v1/oauth/tokens"}),
    (SECURE | CLIENT, {"oauth2-server-uri": "https://other/v1/oauth/tokens"}),
    (SECURE | CLIENT | STORE, {"uri": "http://store:9000"}),
    (SECURE, STORE),
    (SECURE, STORE | VENDED),
    (SECURE | KEYS | {"s3.endpoint": "https://store:9000"}, STORE),
    (SECURE | KEYS, {"s3.endpoint": "other:9000"}),
    (SECURE | KEYS, {"s3.endpoint": "https://other"}),
    (SECURE, {"s3.proxy-uri": "http://other"}),
    (SECURE | CLIENT, {"s3.signer.uri": "https://other"}),
    (SECURE, {"s3.endpoint": "http://[::1"}),
    (CLEAR | KEYS, STORE),
    (CLEAR, STORE),
    (SECURE, {"gcs.service.host": "http://other"}),
    (SECURE | {"gcs.oauth2.token": "canary-96"}, {"gcs.service.host": "https://other"}),
    (SECURE, {"adls.blob-storage-scheme": "http"}),
    (SECURE | {"adls.account-key": "canary-96"}, {"adls.dfs-storage-authority": ".dfs.other"}),
    ({"uri": "thrift://metastore:9083"} | KEYS, STORE),
    ({"type": "glue"}, STORE),
]
TAKEN = [
    (SECURE | CLIENT, {"uri": "https://CATALOG:443/prefix"}),
    (SECURE, {"uri": "https://other"}),
    (SECURE, {"oauth2-server-uri": "http://other"}),
    (SECURE | CLIENT | {"oauth2-server-uri": "https://identity/a"}, {"oauth2-server-uri": "https://identity/b"}),
    (CLEAR | CLIENT, {"uri": "http://catalog:8182"}),
    (CLEAR, {"uri": "http://other"}),
    (SECURE | STORE | KEYS, STORE),
    (SECURE | STORE | KEYS, {"s3.endpoint": "http://store:9001"}),
    (SECURE | {"s3.endpoint": "https://elsewhere"}, {"s3.endpoint": "https://other"} | VENDED),
    (SECURE | KEYS, {"s3.endpoint": "https://other"} | VENDED),
    (SECURE | KEYS, {"s3.endpoint": "https://catalog:9000"}),
    (CLEAR, STORE | VENDED),
    (CLEAR | {"s3.anonymous": "true"}, STORE),
    (SECURE, {"adls.blob-storage-scheme": "https"}),
    (SECURE | {"adls.blob-storage-scheme": "http"}, {"adls.blob-storage-scheme": "http"}),
    (SECURE, {"comment": "see http://wiki"}),
]


@pytest.mark.parametrize(("written", "told"), LED_AWAY)
def test_what_leads_secrets_away_is_refused_by_name(written, told):
    with pytest.raises(RedirectRefused) as caught:
        check_answer(written, {**written, **told})
    name = next(iter(told))
    assert f"its answer sets {name} to" in str(caught.value)
    assert f"write {name} with this value" in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(("written", "told"), LED_AWAY)
def test_what_the_user_wrote_as_well_is_taken(written, told):
    check_answer({**written, **told}, {**written, **told})


@pytest.mark.parametrize(("written", "told"), TAKEN)
def test_what_leads_no_secret_away_is_taken(written, told):
    check_answer(written, {**written, **told})


class Answering(BaseHTTPRequestHandler):
    """A catalog whose configuration is given, as is the one of its table."""

    def do_POST(self):
        self.server.asked.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer({"access_token": GIVEN_TOKEN, "token_type": "bearer", "expires_in": 60})

    def do_GET(self):
        self.server.asked.append((self.headers["Authorization"] or "").encode())
        if self.path.startswith("/v1/config"):
            self.answer({"defaults": {}, "overrides": self.server.config})
        else:
            self.answer({"metadata-location": "s3://lake/1.json", "metadata": METADATA, "config": self.server.of_table})

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing."""


METADATA = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://lake/orders",
    "last-sequence-number": 0,
    "last-updated-ms": 0,
    "last-column-id": 1,
    "schemas": [{"schema-id": 0, "type": "struct", "fields": []}],
    "current-schema-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "default-spec-id": 0,
    "last-partition-id": 999,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
}


def answering(certificates=None, config=None, of_table=None):
    return serving(Answering, certificates, config=config or {}, of_table=of_table or {})


@pytest.fixture
def certificates(tmp_path, monkeypatch):
    made = Certificates.make(tmp_path / "tls", client="me")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(made.authority))
    return made


@pytest.mark.parametrize("name", ["uri", "oauth2-server-uri", "s3.endpoint"])
def test_a_catalogs_configuration_calls_nothing_without_tls(certificates, name):
    with answering() as plain:
        target = f"http://127.0.0.1:{plain.server_port}"
        with answering(certificates, {name: target}) as secure:
            where = {"type": "rest", "uri": f"https://127.0.0.1:{secure.server_port}", **CLIENT, **KEYS}
            with given("lake", where), pytest.raises(RedirectRefused, match=f"leads to {target}: .*{name}") as caught:
                catalog_of(SINK)
    assert "canary" not in str(caught.value)
    assert secure.asked
    assert plain.asked == []


def test_the_configuration_of_a_table_calls_nothing_without_tls(certificates):
    with answering() as plain:
        target = f"http://127.0.0.1:{plain.server_port}"
        with answering(certificates, of_table={"s3.endpoint": target, **VENDED}) as secure:
            where = {"type": "rest", "uri": f"https://127.0.0.1:{secure.server_port}", **CLIENT}
            with given("lake", where):
                catalog = catalog_of(SINK)
                with pytest.raises(RedirectRefused, match=r"its answer sets s3\.endpoint"):
                    catalog.load_table(SINK.table)
            with given("lake", {**where, "s3.endpoint": target}):
                assert catalog_of(SINK).load_table(SINK.table).io.properties["s3.endpoint"] == target
    assert plain.asked == []
    assert "canary" not in str(SinkError("lake", f"the store refused {VENDED}"))


def test_a_catalogs_configuration_names_no_code_to_load():
    with (
        answering(config={"py-io-impl": "another.FileIO"}) as server,
        given("lake", {"type": "rest", "uri": f"http://127.0.0.1:{server.server_port}"}),
    ):
        assert type(catalog_of(SINK).load_table(SINK.table).io) is StoreFileIO


class Echoing(Answering):
    """Has its configuration, and answers every other question with what it was asked."""

    def do_GET(self):
        if self.path.startswith("/v1/config"):
            return super().do_GET()
        self.server.asked.append(self.headers["Authorization"].encode())
        told = f"{self.headers['Authorization']} of me with {SECRET}: no"
        return self.answer({"error": {"message": told, "type": "ForbiddenException", "code": 403}}, 403)


def test_a_client_of_the_catalog_shows_no_secret_that_it_sent_or_got():
    with serving(Echoing, config={}) as server:
        with given("lake", {"type": "rest", "uri": f"http://127.0.0.1:{server.server_port}", **CLIENT}):
            catalog = catalog_of(SINK)
        with pytest.raises(ForbiddenError, match=r"Bearer \*\*\* of me with \*\*\*: no") as caught:
            catalog.load_table(SINK.table)
    assert "canary" not in "".join(traceback.format_exception(caught.value))
    assert server.asked[-1] == f"Bearer {GIVEN_TOKEN}".encode()


def test_an_answer_to_the_question_for_a_token_that_cannot_be_read_shows_none():
    class Broken(Answering):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer({"access_token": GIVEN_TOKEN, "token_type": 5})

    with serving(Broken, config={}) as server:
        where = {"type": "rest", "uri": f"http://127.0.0.1:{server.server_port}", **CLIENT}
        with given("lake", where), pytest.raises(SinkError, match="token_type") as caught:
            catalog_of(SINK)
    assert "canary" not in "".join(traceback.format_exception(caught.value))


class Elsewhere(Answering):
    """Leads every question to another host."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def do_GET(self):
        self.server.asked.append(self.headers["Host"])
        self.send_response(307)
        self.send_header("Location", f"http://localhost:{self.server.server_port}{self.path}")
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.mark.parametrize("written", [CLIENT, {"header.X-Api-Key": "canary-99"}])
def test_a_redirect_to_another_host_is_refused(written):
    with serving(Elsewhere) as server:
        where = {"type": "rest", "uri": f"http://127.0.0.1:{server.server_port}", **written}
        with given("lake", where), pytest.raises(RedirectRefused, match=r"localhost:.*another host.*give that"):
            catalog_of(SINK)
    assert server.asked == [f"127.0.0.1:{server.server_port}"]


def test_settings_about_tokens_are_no_secrets():
    assert secrets_of({"token-refresh-enabled": "true", "token": "canary-96"}) == ["canary-96"]
