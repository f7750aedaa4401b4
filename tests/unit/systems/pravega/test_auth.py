from __future__ import annotations

import base64
import json
import math
import pickle
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from airflow_provider_streams.errors import AuthenticationFailed, InvalidRequest, SystemUnavailable
from airflow_provider_streams.systems.pravega.auth import OPTIONS, Credentials, DelegationToken, Endpoint

URI = "tcp://controller:9090"


def test_options_are_the_fields_of_an_endpoint():
    assert {option.name for option in OPTIONS} == set(Endpoint.__slots__)
    assert [option.name for option in OPTIONS if option.secret] == ["password", "token"]


@pytest.mark.parametrize("name", ["controller", "controllerUri", "controller_uri", "CONTROLLERURI"])
def test_names_are_compared_without_case_and_peers_names_are_aliases(name):
    assert Endpoint.from_options({name: URI, "unknown": "x"}) == Endpoint(URI)


@pytest.mark.parametrize("scheme", ["tcp", "pravega", "tls", "ssl", "tcps", "pravegas"])
def test_the_scheme_decides_about_tls(scheme):
    endpoint = Endpoint(f"{scheme}://a:1,b,[::1]:3")
    assert endpoint.tls is (scheme not in {"tcp", "pravega"})
    assert endpoint.controllers == (("a", 1), ("b", 9090), ("::1", 3))


@pytest.mark.parametrize(
    "uri", ["controller:9090", "http://a:9090", "tcp://", "tcp://a:x", "tcp://a/path", "tcp://u:pw@a:1"]
)
def test_other_addresses_are_refused_without_their_credentials(uri):
    with pytest.raises(InvalidRequest) as refused:
        Endpoint.from_options({"controller": uri})
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "controller is missing"),
        ({"controller": URI, "auth_method": "kerberos"}, "auth_method is one of"),
        ({"controller": URI, "auth_method": "basic", "username": "u"}, "needs the option password"),
        ({"controller": URI, "username": "u"}, "needs the option password"),
        ({"controller": URI, "auth_method": "bearer"}, "needs the option token"),
        ({"controller": URI, "stall_seconds": "0"}, "stall_seconds must be positive|must be a positive"),
        ({"controller": URI, "request_timeout_seconds": "soon"}, "must be a number"),
        ({"controller": URI, "read_ahead": "2.5"}, "whole number"),
        ({"controller": URI, "tls_verify_hostname": "maybe"}, "true or false"),
    ],
)
def test_settings_that_cannot_work_are_refused(given, message):
    with pytest.raises(InvalidRequest, match=message):
        Endpoint.from_options(given)


def test_options_round_trip_and_secrets_stay_out_of_the_repr():
    endpoint = Endpoint(
        "tls://a:1", username="u", password="hidden1", token="hidden2", tls_verify_hostname=False, read_ahead=4
    )
    assert Endpoint.from_options(endpoint.to_options()) == endpoint
    assert pickle.loads(pickle.dumps(endpoint)) == endpoint  # noqa: S301
    assert "hidden" not in repr(endpoint)


@pytest.mark.parametrize(
    ("given", "header"),
    [
        ({}, None),
        ({"username": "u", "password": "p:w"}, "Basic " + base64.b64encode(b"u:p:w").decode()),
        ({"token": "jwt"}, "Bearer jwt"),
        ({"token": "jwt", "auth_method": "none"}, None),
    ],
)
def test_credentials_become_a_header(given, header):
    assert Credentials(Endpoint.from_options({"controller": URI, **given})).header() == header


def jwt(claims: object) -> str:
    return ".".join(["h", base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("="), "s"])


def test_a_delegation_token_is_renewed_before_it_ends_and_an_unreadable_one_when_it_is_refused():
    assert DelegationToken(jwt({"exp": 1000})).renew_at() == 995
    for value in ("", "junk", "a.b.c", jwt({}), jwt([]), jwt({"exp": None})):
        assert DelegationToken(value).renew_at() == math.inf
    assert "secret" not in repr(DelegationToken("secret"))


class Keycloak(BaseHTTPRequestHandler):
    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        server = self.server
        server.seen.append((self.path, {k: v[0] for k, v in form.items()}, self.headers.get("Authorization")))
        status, body = server.answers.pop(0)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def keycloak(tmp_path):
    with HTTPServer(("127.0.0.1", 0), Keycloak) as server:
        server.seen, server.answers = [], []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        path = tmp_path / "keycloak.json"
        url = f"http://127.0.0.1:{server.server_port}/auth/"
        settings = {"realm": "r", "auth-server-url": url, "resource": "app", "credentials": {"secret": "hidden"}}
        path.write_text(json.dumps(settings))
        server.credentials = Credentials(Endpoint(URI, keycloak_file=str(path), request_timeout_seconds=5))
        yield server
        server.shutdown()
        thread.join()


def test_keycloak_gives_a_token_for_pravega_in_two_steps_and_it_is_kept(keycloak):
    keycloak.answers = [(200, {"access_token": "own"}), (200, {"access_token": "pravega", "expires_in": 300})]
    assert keycloak.credentials.header() == keycloak.credentials.header() == "Bearer pravega"
    (path, first, none), (_, second, bearer) = keycloak.seen
    assert path == "/auth/realms/r/protocol/openid-connect/token"
    assert first == {"grant_type": "client_credentials", "client_id": "app", "client_secret": "hidden"}
    assert none is None
    assert second["audience"] == "pravega-controller"
    assert bearer == "Bearer own"


def test_a_token_about_to_end_is_asked_for_again(keycloak):
    pair = [(200, {"access_token": "own"}), (200, {"access_token": "short", "expires_in": 4})]
    keycloak.answers = [*pair, *pair]
    keycloak.credentials.header()
    keycloak.credentials.header()
    assert len(keycloak.seen) == 4


def test_keycloak_s_refusals_are_typed_and_show_no_secret(keycloak, tmp_path):
    keycloak.answers = [(401, {"error": "hidden"})]
    with pytest.raises(AuthenticationFailed) as refused:
        keycloak.credentials.header()
    assert "hidden" not in str(refused.value)
    keycloak.answers = [(503, {})]
    with pytest.raises(SystemUnavailable):
        keycloak.credentials.header()
    (tmp_path / "keycloak.json").write_text("{}")
    with pytest.raises(InvalidRequest, match="keycloak_file"):
        keycloak.credentials.header()
