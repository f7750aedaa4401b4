"""What we show: to controllers a header, to segment stores the tokens that controllers give."""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_streams.errors import AuthenticationFailed, InvalidRequest, SystemUnavailable
from airflow_provider_streams.redaction import conceal, remember
from airflow_provider_streams.systems.pravega.endpoint import Endpoint
from airflow_provider_streams.systems.secret_places import read_file
from airflow_provider_streams.systems.settings import check_http, token_end


class Credentials:
    """The header that shows who we are; asks Keycloak for a new token when the last one is about to end.

    Usable from several threads.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._keycloak: tuple[str, float] = ("", 0.0)

    def header(self) -> str | None:
        """The value of `authorization`; None: nothing is shown.

        Raises:
            AuthenticationFailed: Keycloak refuses the client.
            SystemUnavailable: Keycloak does not answer.
            InvalidRequest: its file cannot be used.
        """
        endpoint = self._endpoint
        if endpoint.method == "basic":
            return "Basic " + conceal(base64.b64encode(f"{endpoint.username}:{endpoint.password}".encode()).decode())
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
    """A token for Pravega and the monotonic time to renew it: the client's own token buys it."""
    import httpx  # noqa: PLC0415 - only where Keycloak is used

    path, timeout = endpoint.keycloak_file, endpoint.request_timeout_seconds
    content = read_file("keycloak_file", path)
    try:
        settings = json.loads(content)
        url = f"{settings['auth-server-url'].rstrip('/')}/realms/{settings['realm']}/protocol/openid-connect/token"
        client, secret = settings["resource"], conceal(settings["credentials"]["secret"])
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
    return answer["access_token"], time.monotonic() + max(0.0, _seconds(answer.get("expires_in")) - _EARLY_SECONDS)


def _seconds(life: object) -> float:
    """How long a token lives; what is no such number: not at all, so that each call asks for a new one."""
    return life if isinstance(life, int | float) and 0 <= life < _LONGEST_SECONDS else 0.0


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


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """What a controller gives us to show to segment stores; empty when authorization is off."""

    value: str = field(repr=False)

    def renew_at(self) -> float:
        """The wall time (seconds since 1970) from which a new one should be asked for; a store allows no skew."""
        end = token_end(self.value)
        return math.inf if end is None else end - _LEEWAY_SECONDS


class Tokens:
    """Delegation tokens by stream, renewed before they end."""

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[DelegationToken, float]] = {}

    def known(self, stream: str) -> str | None:
        """The token, unless it is about to end."""
        token, renew_at = self._tokens.get(stream, (DelegationToken(""), 0.0))
        return token.value if time.time() < renew_at else None

    def learn(self, stream: str, value: str) -> str:
        """Remember a token."""
        remember(value)
        token = DelegationToken(value)
        self._tokens[stream] = (token, token.renew_at())
        return value

    def forget(self, stream: str) -> None:
        """Ask for a new one next time: a store refused it."""
        self._tokens.pop(stream, None)
