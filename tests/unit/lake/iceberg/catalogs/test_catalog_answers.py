"""A catalog's answers lead no secret out of TLS, and none of the connection to hosts that it does not name."""

import json
import traceback
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

import pytest
from pyiceberg.catalog.rest.auth import AuthManager
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
    (SECURE, {"adls.dfs-storage-authority": ".dfs.core.windows.net"}),
    (SECURE, {"adls.account-host": "account.blob.core.windows.net"}),
    (SECURE, {"gcs.service.host": "storage.googleapis.com:443"}),
    (SECURE, {"s3.endpoint": "https://[::1]:9000/"}),
    (SECURE, {"uri": "https://my_catalog:8181/realms/me@home?a=b"}),
    (SECURE | {"adls.blob-storage-scheme": "http"}, {"adls.blob-storage-scheme": "http"}),
    (SECURE, {"comment": "see http://wiki"}),
]


IMPROPER = [
    "https://other\\@catalog",
    "https://other@catalog",
    "https://me:canary-96@catalog",
    "https://other#@catalog",
    "https://other?@catalog",
    " https://catalog",
    "https://catalog ",
    "https://catalog/a b",
    "ht\ttp://catalog",
    "http:\\\\catalog",
    "https://catalog\r\nX-A: b",
    "\x00https://catalog",
    "\u00a0https://catalog",
    "https://c\u00e4talog",
    "https://catalog%5c@other",
    "http:///catalog",
    "http:/catalog",
    "http://[::1",
    "ftp://catalog",
]


@pytest.mark.parametrize("address", IMPROPER)
@pytest.mark.parametrize(
    "name",
    [
        *("uri", "oauth2-server-uri", "s3.signer.uri", "s3.endpoint", "s3.proxy-uri", "gcs.service.host"),
        *("adls.account-host", "adls.blob-storage-authority", "adls.dfs-storage-authority", "hf.endpoint"),
    ],
)
def test_an_address_that_clients_read_differently_is_refused(name, address):
    written = {**SECURE, **CLIENT, "adls.blob-storage-scheme": "http", "s3.anonymous": "true"}
    with pytest.raises(RedirectRefused, match=f"sets {name} to an address that clients read differently") as caught:
        check_answer(written, {**written, name: address})
    assert "canary" not in str(caught.value)
    assert "no address" in caught.value.target


@pytest.mark.parametrize("name", ["uri", "oauth2-server-uri", "s3.signer.uri"])
def test_a_catalogs_own_address_has_a_scheme(name):
    with pytest.raises(RedirectRefused, match=f"sets {name} to an address that clients"):
        check_answer(SECURE | CLIENT, {**SECURE, **CLIENT, name: "catalog:8181"})


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
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.is_moved():
            return
        self.server.asked.append(body)
        if "/tables/" in self.path:
            self.answer(self.table())
        else:
            self.answer({"access_token": GIVEN_TOKEN, "token_type": "bearer", "expires_in": 60})

    def do_GET(self):
        if self.is_moved():
            return
        self.server.asked.append((self.headers["Authorization"] or "").encode())
        if self.server.redirect:
            self.lead(self.server.redirect)
        elif "/v1/config" in self.path:
            self.answer({"defaults": {}, "overrides": {}, **self.server.config})
        else:
            self.answer({**self.table(), "config": self.server.of_table})

    def table(self):
        return {"metadata-location": "s3://lake/1.json", "metadata": METADATA | {"properties": self.server.properties}}

    def is_moved(self):
        """Whether it was led to another path of the same host."""
        self.server.authorizations.append(self.headers["Authorization"])
        if not self.server.moved or self.path.startswith("/moved/"):
            return False
        self.lead(f"//127.0.0.1:{self.server.server_port}/moved{self.path}")
        return True

    def lead(self, target):
        self.send_response(307)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

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


def answering(certificates=None, config=None, handler=Answering, **state):
    """`config` has `defaults` and `overrides`."""
    known = {"of_table": {}, "properties": {}, "authorizations": [], "moved": False, "redirect": ""}
    return serving(handler, certificates, **{**known, "config": config or {}, **state})


@pytest.fixture
def certificates(tmp_path, monkeypatch):
    made = Certificates.make(tmp_path / "tls", client="me")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(made.authority))
    return made


@pytest.mark.parametrize("name", ["uri", "oauth2-server-uri", "s3.endpoint"])
def test_a_catalogs_configuration_calls_nothing_without_tls(certificates, name):
    with answering() as plain:
        target = f"http://127.0.0.1:{plain.server_port}"
        with answering(certificates, {"overrides": {name: target}}) as secure:
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


def rest(server, **more):
    return {"type": "rest", "uri": f"http://127.0.0.1:{server.server_port}", **more}


class Loaded(AuthManager):
    """Code that an answer names."""

    made: ClassVar[list[object]] = []

    def __init__(self, *given, **named):
        self.made.append((given, named))

    def auth_header(self):
        return "Bearer loaded"


CODE = f"{__name__}.Loaded"
NOT_SETTABLE = {
    "py-io-impl": CODE,
    "py-catalog-impl": CODE,
    "s3.retry-strategy-impl": CODE,
    "write.other": CODE,
    "credential": "other:client",
    "scope": "all",
    "rest.sigv4-enabled": "true",
    "ssl": {"cabundle": False},
    "header.Authorization": "Basic b3RoZXI6b3RoZXI=",
    "header.Cookie": "a=b",
    "header.Host": "other",
    "client.profile-name": "other",
    "s3.role-arn": "arn:aws:iam::1:role/other",
    "s3.anonymous": "true",
    "s3.tls-ca-file": "/etc/ca.pem",
    "adls.connection-string": "BlobEndpoint=https://other",
    "gcs.session-kwargs": '{"trust_env": true}',
    "hdfs.kerberos_ticket": "/etc/krb5cc",
    "snapshot-loading-mode": "refs",
    "DEFAULT_SCHEME": "s3",
    "s3.region": "",
    "s3.endpoint": None,
}
SETTABLE = {
    "prefix": "main",
    "warehouse": "w",
    "rest-page-size": "7",
    "s3.path-style-access": "true",
    "s3.remote-signing-enabled": "false",
    "s3.session-token-expires-at-ms": "1",
    "client.region": "eu-west-1",
    "adls.sas-token.account.dfs.core.windows.net": "sig",
    "gcs.oauth2.token-expires-at": "1",
    "header.X-Iceberg-Access-Delegation": "vended-credentials",
    "header.Polaris-Realm": "shop",
}
AUTHENTICATIONS = [
    {"type": "custom", "impl": CODE, "custom": {"a": 1}},
    {"type": "custom", "impl": "subprocess.Popen", "custom": {"args": ["false"]}},
    {"type": "oauth2", "oauth2": {"client_id": "a", "client_secret": "b", "token_url": "http://127.0.0.1:1/t"}},
    {"type": "google", "google": {"credentials_path": "/etc/passwd"}},
    {"type": "entra", "entra": {}},
    {"type": "basic", "basic": {"username": "a", "password": "b"}},
    {"type": "noop"},
    "noop",
]


@pytest.mark.parametrize("place", ["defaults", "overrides"])
@pytest.mark.parametrize("auth", AUTHENTICATIONS)
def test_a_catalogs_configuration_changes_nothing_of_authentication(auth, place):
    with answering(config={place: {"auth": auth}}) as server, given("lake", rest(server, token="own")):
        catalog_of(SINK).load_table(SINK.table)
    assert server.asked == [b"Bearer own"] * 2
    assert Loaded.made == []


def test_an_answer_sets_only_what_is_listed():
    answer = NOT_SETTABLE | SETTABLE
    with (
        answering(config={"overrides": answer}, of_table=answer) as server,
        given("lake", rest(server, **{"s3.region": "own"})),
    ):
        catalog = catalog_of(SINK)
        of_table = catalog.load_table(SINK.table).io
    own = {"type": "rest", "uri": catalog.uri, "s3.region": "own", "py-io-impl": catalog.properties["py-io-impl"]}
    assert catalog.properties == {**own, **SETTABLE}
    assert type(of_table) is StoreFileIO
    ours = {"auth.manager": None, "streams.table-in-store": "s3://lake/1.json"}
    assert {**of_table.properties, "auth.manager": None} == {**own, **SETTABLE, **ours}
    assert catalog._session.headers["Polaris-Realm"] == "shop"  # as it is sent
    assert Loaded.made == []


@pytest.mark.parametrize("name", ["uri", "oauth2-server-uri", "s3.endpoint", "header.X-A"])
@pytest.mark.parametrize("value", [["http://other"], {"a": 1}])
def test_a_structure_where_a_text_belongs_is_refused_by_name(name, value):
    with (
        answering(config={"overrides": {name: value}}) as server,
        given("lake", rest(server, **CLIENT)),
        pytest.raises(SinkError, match=f"catalog 'lake': its answer sets {name} to a structure") as caught,
    ):
        catalog_of(SINK)
    assert not caught.value.retryable


@pytest.mark.parametrize("value", ["a\r\nX-B: c", "a\n", "\u20ac"])
def test_a_header_that_cannot_be_sent_is_refused_by_name(value):
    with (
        answering(config={"overrides": {"header.X-A": value}}) as server,
        given("lake", rest(server)),
        pytest.raises(SinkError, match=r"header\.X-A holds a line break") as caught,
    ):
        catalog_of(SINK)
    assert not caught.value.retryable


@pytest.mark.parametrize("place", ["table", "commit"])
def test_a_table_names_no_code_for_its_writes(place):
    """Another writer of the table may set it at any time."""
    code = {"write.py-location-provider.impl": CODE}
    with answering() as server, given("lake", rest(server)):
        server.properties = code if place == "table" else {}
        catalog = catalog_of(SINK)
        if place == "table":
            with pytest.raises(SinkError, match=r"3://lake/1\.json: .*write\.py-location-provider\.impl names code"):
                catalog.load_table(SINK.table)
        else:
            table = catalog.load_table(SINK.table)
            server.properties = code
            table = table.transaction().set_properties({"a": "b"}).commit_transaction()
            assert type(table.location_provider()).__name__ == "SimpleLocationProvider"
    assert Loaded.made == []


@pytest.mark.parametrize("schema", ["http", "https"])
@pytest.mark.parametrize("moved", [False, True])
def test_no_login_of_a_netrc_file_is_sent(schema, moved, tmp_path, monkeypatch, request):
    (tmp_path / "netrc").write_text("default login other password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    certificates = request.getfixturevalue("certificates") if schema == "https" else None
    with answering(certificates, moved=moved) as server:
        uri = f"{schema}://127.0.0.1:{server.server_port}"
        with given("lake", {"type": "rest", "uri": uri, **CLIENT}):
            catalog_of(SINK).load_table(SINK.table)
    assert set(server.authorizations) == {None, f"Bearer {GIVEN_TOKEN}"}


def test_a_proxy_of_the_environment_is_used_still(monkeypatch):
    with answering() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        with given("lake", {"type": "rest", "uri": "http://catalog.invalid", "token": "own"}):
            catalog_of(SINK)
    assert proxy.asked == [b"Bearer own"]


@pytest.mark.parametrize("name", ["token", "header.X-Api-Key", "credential"])
@pytest.mark.parametrize("wrong", ["\n", "\x00", "\r\nX-A: b"])
def test_a_secret_that_cannot_be_sent_is_refused_by_name(name, wrong):
    with (
        given("lake", {"type": "rest", "uri": "http://127.0.0.1:1", name: f"canary-94{wrong}"}),
        pytest.raises(SinkError, match=f"lake:shop.orders: .*{name}.* holds a line break") as caught,
    ):
        catalog_of(SINK)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("wrong", ["canary 94", " canary-94", "canary\t94", "canary-\u00fc", "canary-\u20ac"])
def test_a_token_with_a_character_that_none_has_is_refused(wrong):
    with (
        given("lake", {"type": "rest", "uri": "http://127.0.0.1:1", "token": wrong}),
        pytest.raises(SinkError, match="token holds a line break, a blank or another") as caught,
    ):
        catalog_of(SINK)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("target", ["http://localhost:1\\@127.0.0.1/v1/config", "http://[::1", "\\\\localhost\\config"])
def test_a_redirect_that_clients_read_differently_is_refused(target):
    with (
        answering(redirect=target) as server,
        given("lake", rest(server, token="own")),
        pytest.raises(RedirectRefused, match="no address: clients would see different hosts"),
    ):
        catalog_of(SINK)
    assert len(server.asked) == 1


class Echoing(Answering):
    """Has its configuration, and answers every other question with what it was asked."""

    def do_GET(self):
        if self.path.startswith("/v1/config"):
            return super().do_GET()
        self.server.asked.append(self.headers["Authorization"].encode())
        told = f"{self.headers['Authorization']} of me with {SECRET}: no"
        return self.answer({"error": {"message": told, "type": "ForbiddenException", "code": 403}}, 403)


def test_a_client_of_the_catalog_shows_no_secret_that_it_sent_or_got():
    with answering(handler=Echoing) as server:
        with given("lake", {"type": "rest", "uri": f"http://127.0.0.1:{server.server_port}", **CLIENT}):
            catalog = catalog_of(SINK)
        with pytest.raises(ForbiddenError, match=r"Bearer \*\*\* of me with \*\*\*: no") as caught:
            catalog.load_table(SINK.table)
    assert "canary" not in "".join(traceback.format_exception(caught.value))
    assert server.asked[-1] == f"Bearer {GIVEN_TOKEN}".encode()


def test_a_catalog_that_gets_signed_requests_shows_no_secret_either():
    keys = {"client.access-key-id": "key", "client.secret-access-key": "canary-93", "client.region": "eu-west-1"}
    with answering(handler=Echoing) as server:
        with given("lake", rest(server, **CLIENT, **keys, **{"rest.sigv4-enabled": "true"})):
            catalog = catalog_of(SINK)
        with pytest.raises(ForbiddenError, match=r"of me with \*\*\*: no") as caught:
            catalog.load_table(SINK.table)
    assert server.asked[-1].startswith(b"AWS4-HMAC-SHA256 ")
    assert "canary" not in str(caught.value)


def test_an_answer_to_the_question_for_a_token_that_cannot_be_read_shows_none():
    class Broken(Answering):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer({"access_token": GIVEN_TOKEN, "token_type": 5})

    with answering(handler=Broken) as server:
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


@pytest.mark.parametrize("name", ["defaults", "overrides", "endpoints"])
def test_null_in_place_of_a_part_of_the_configuration_sets_nothing(name):
    with answering(config={name: None}) as server, given("lake", rest(server)):
        assert catalog_of(SINK).uri == rest(server)["uri"]


HALF = [
    {"s3.access-key-id": "vended"},
    {"s3.secret-access-key": "canary-97"},
    {"s3.session-token": "canary-97"},
    {"client.access-key-id": "vended", "s3.session-token": "canary-97"},
]


@pytest.mark.parametrize("half", HALF)
@pytest.mark.parametrize("own", [{}, KEYS])
def test_a_part_of_a_vended_key_is_refused_by_name(half, own):
    with answering(of_table=half) as server, given("lake", rest(server, **own)):
        catalog = catalog_of(SINK)
        with pytest.raises(SinkError, match=r"catalog 'lake': it vends .* of a table without .*-key") as caught:
            catalog.load_table(SINK.table)
    assert "canary" not in str(caught.value)
    assert next(iter(half)) in str(caught.value)


@pytest.mark.parametrize("size", ["-1", "0", "1e9", 10**12, "many"])
def test_a_page_size_that_is_no_number_is_the_catalogs_fault(size):
    with (
        answering(config={"overrides": {"rest-page-size": size}}) as server,
        given("lake", rest(server, token="own")),
        pytest.raises(SinkError, match=r"its answer sets rest-page-size to .*correct the catalog"),
    ):
        catalog_of(SINK)
