"""Our credentials: a header for controllers, and the tokens that controllers give us for segment stores."""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from typing import Any

from airflow_provider_streams.errors import AuthenticationFailed, InvalidRequest, SystemUnavailable
from airflow_provider_streams.redaction import register_secret, remember
from airflow_provider_streams.systems.connection.endpoint_fields import check_http, token_end
from airflow_provider_streams.systems.connection.secret_references import read_file
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint


class Credentials:
    """The header of our identity, with a fresh token of Keycloak if needed. Usable from several threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._keycloak: tuple[str, float] = ("", 0.0)

    def header(self) -> str | None:
        """The value of `authorization`; None: no credentials.

        Raises:
            AuthenticationFailed: Keycloak refuses the client.
            SystemUnavailable: Keycloak does not answer.
            InvalidRequest: its file cannot be used.
        """
        endpoint = self._endpoint
        if endpoint.method == "basic":
            return "Basic " + register_secret(
                base64.b64encode(f"{endpoint.username}:{endpoint.password}".encode()).decode()
            )
        if endpoint.method == "bearer":
            return f"Bearer {endpoint.token}"
        if endpoint.method == "keycloak":
            with self._lock:
                if time.monotonic() >= self._keycloak[1]:
                    self._keycloak = _keycloak_token(endpoint)
                return f"Bearer {self._keycloak[0]}"
        return None

    @property
    def blocks(self) -> bool:
        """Whether `header` may wait for a network: an event loop must not."""
        return self._endpoint.method == "keycloak"


_EARLY_SECONDS = 5
_LONGEST_SECONDS = 1e9
_AUDIENCE = "pravega-controller"


def _keycloak_token(endpoint: Endpoint) -> tuple[str, float]:
    """A token for Pravega, in exchange for the client's own token, and the monotonic time to renew it."""
    import httpx  # noqa: PLC0415 - only where Keycloak is used

    path, timeout = endpoint.keycloak_file, endpoint.request_timeout_seconds
    content = read_file("keycloak_file", path)
    try:
        settings = json.loads(content)
        url = f"{settings['auth-server-url'].rstrip('/')}/realms/{settings['realm']}/protocol/openid-connect/token"
        client, secret = settings["resource"], register_secret(settings["credentials"]["secret"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidRequest(f"keycloak_file {path} cannot be used: {type(error).__name__}") from None
    check_http("keycloak_file: auth-server-url", url)
    own = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
    ticket = {"grant_type": "urn:ietf:params:oauth:grant-type:uma-ticket", "audience": _AUDIENCE}
    try:
        with httpx.Client(timeout=timeout) as http:
            first = _token_answer(url, http.post(url, data=own))
            bearer = {"Authorization": f"Bearer {first['access_token']}"}
            answer = _token_answer(url, http.post(url, data=ticket, headers=bearer))
    except httpx.TransportError as error:
        raise SystemUnavailable(url, type(error).__name__) from error
    life = answer.get("expires_in")
    if not isinstance(life, int | float) or not 0 <= life < _LONGEST_SECONDS:
        life = 0  # each call asks for a new one
    return answer["access_token"], time.monotonic() + max(0.0, life - _EARLY_SECONDS)


def _token_answer(url: str, response: Any) -> dict[str, Any]:
    if response.status_code >= 500:  # noqa: PLR2004
        raise SystemUnavailable(url, f"HTTP {response.status_code}")
    try:
        answer: dict[str, Any] = response.json() if response.status_code == 200 else {}  # noqa: PLR2004
    except (ValueError, RecursionError):
        answer = {}
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not (token.isascii() and token.isprintable()):
        raise AuthenticationFailed(url, f"HTTP {response.status_code}")
    remember(answer["access_token"])
    return answer


_LEEWAY_SECONDS = 5.0
"""A store allows no skew."""


class Tokens:
    """The delegation tokens that a controller gives us for segment stores, by stream; empty without authorization."""

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[str, float]] = {}
        """Each with the wall time (seconds since 1970) to renew it."""

    def known(self, stream: str) -> str | None:
        """The token, unless it is about to end."""
        token, renew_at = self._tokens.get(stream, ("", 0.0))
        return token if time.time() < renew_at else None

    def learn(self, stream: str, token: str) -> str:
        """Remember a token."""
        remember(token)
        end = token_end(token)
        self._tokens[stream] = (token, math.inf if end is None else end - _LEEWAY_SECONDS)
        return token

    def forget(self, stream: str) -> None:
        """Ask for a new one next time: a store refused it."""
        self._tokens.pop(stream, None)
