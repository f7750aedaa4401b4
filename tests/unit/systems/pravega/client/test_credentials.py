from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from airflow_provider_streams.errors import AuthenticationFailed, InvalidRequest, SystemUnavailable
from airflow_provider_streams.systems.pravega.client.credentials import Credentials, Tokens
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint

URI = "tcp://controller:9090"


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


def test_a_delegation_token_is_renewed_before_it_ends_and_an_unreadable_one_when_it_is_refused(monkeypatch):
    now = 994.9
    monkeypatch.setattr(time, "time", lambda: now)
    tokens = Tokens()
    ends = jwt({"exp": 1000})
    assert tokens.known("a/b") is None
    assert tokens.learn("a/b", ends) == tokens.known("a/b") == ends
    now = 995
    assert tokens.known("a/b") is None
    now = 1e12
    for value in ("", "junk", "a.b.c", jwt({}), jwt([]), jwt({"exp": None}), jwt({"exp": 10**400})):
        tokens.learn("a/b", value)
        assert tokens.known("a/b") == value
    tokens.learn("a/b", "secret")
    assert "secret" not in repr(tokens)


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
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
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


@pytest.mark.parametrize("life", ["soon", None, -1, float("inf"), float("nan"), [1]])
def test_a_life_that_is_no_time_is_none(keycloak, life):
    pair = [(200, {"access_token": "own"}), (200, {"access_token": "t", "expires_in": life})]
    keycloak.answers = [*pair, *pair]
    assert keycloak.credentials.header() == keycloak.credentials.header() == "Bearer t"
    assert len(keycloak.seen) == 4


def test_a_token_that_no_header_can_hold_is_refused_unseen(keycloak):
    keycloak.answers = [(200, {"access_token": "hidden\nhidden"})]
    with pytest.raises(AuthenticationFailed) as refused:
        keycloak.credentials.header()
    assert "hidden" not in str(refused.value)


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
