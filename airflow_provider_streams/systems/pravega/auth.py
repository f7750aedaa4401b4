"""Where a Pravega cluster is and how we show who we are: one description for its controller and segment stores."""

from __future__ import annotations

import base64
import json
import math
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from airflow_provider_streams.errors import AuthenticationFailed, InvalidRequest, SystemUnavailable
from airflow_provider_streams.systems.base import Option

OPTIONS: tuple[Option, ...] = (
    Option(
        "controller",
        "Controllers: tcp://host:9090 or tls://host:9090, several hosts between commas",
        aliases=("controllerUri", "controller_uri"),
    ),
    Option("scope", "The scope of streams that are named without one"),
    Option(
        "rest_url",
        "The controllers' REST API, http://host:9091 or https://..: only health is asked there",
        aliases=("restUrl",),
    ),
    Option(
        "schema_registry",
        "Schema Registry: http://host:9092 or https://..",
        aliases=("schemaRegistry", "schema_registry_uri", "schemaRegistryUri"),
    ),
    Option("auth_method", "none, basic, bearer or keycloak; default: what the given credentials need"),
    Option("username", "The user's name (basic)"),
    Option("password", "The user's password (basic)", secret=True),
    Option("token", "A token of your identity provider (bearer)", secret=True),
    Option("keycloak_file", "The client's adapter configuration from Keycloak, a JSON file (keycloak)"),
    Option("tls_ca_file", "Certificates (PEM) to trust instead of the system's"),
    Option("tls_verify_hostname", "Whether a certificate must name the host we call", default="true"),
    Option("request_timeout_seconds", "How long one request may take", default="30"),
    Option("stall_seconds", "How long a read may make no progress while there is more to come", default="60"),
    Option("read_ahead", "How many requests of 2 MiB a read keeps on their way; more help over long distances", "2"),
)
"""Every setting of a connection to Pravega."""

METHODS = ("none", "basic", "bearer", "keycloak")
_PLAIN = {"tcp", "pravega"}
_SECURE = {"tls", "ssl", "tcps", "pravegas"}
_PORT = 9090


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A Pravega cluster and our identity there. Its `repr` holds no secret.

    Raises:
        InvalidRequest: a malformed address, an unknown method, credentials that are missing for it, or a limit
            that is not positive.
    """

    controller: str
    scope: str = ""
    rest_url: str = ""
    schema_registry: str = ""
    auth_method: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    keycloak_file: str = ""
    tls_ca_file: str = ""
    tls_verify_hostname: bool = True
    request_timeout_seconds: float = 30.0
    stall_seconds: float = 60.0
    read_ahead: int = 2

    def __post_init__(self) -> None:
        parse_controller(self.controller)
        if self.auth_method not in ("", *METHODS):
            raise InvalidRequest(f"auth_method is one of {', '.join(METHODS)}, got {self.auth_method!r}")
        for name in ("rest_url", "schema_registry"):
            _check_http(name, getattr(self, name))
        for name in _NEEDS[self.method]:
            if not getattr(self, name):
                raise InvalidRequest(f"auth_method {self.method} needs the option {name}")
        for name in ("request_timeout_seconds", "stall_seconds", "read_ahead"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidRequest(f"{name} must be a positive number, got {getattr(self, name)}")

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """From settings by option name or alias, compared without case; empty and unknown ones are ignored.

        Raises:
            InvalidRequest: `controller` is missing, or a setting is malformed.
        """
        given = {name.lower(): str(value).strip() for name, value in options.items() if value not in {None, ""}}
        values: dict[str, Any] = {}
        for option in OPTIONS:
            for name in (option.name, *option.aliases):
                if given.get(name.lower()):
                    values.setdefault(option.name, _PARSERS.get(option.name, _text)(option.name, given[name.lower()]))
        if "controller" not in values:
            raise InvalidRequest("the option controller is missing, for example tcp://localhost:9090")
        return cls(**values)

    def to_options(self) -> dict[str, str]:
        """Its settings by option name, secrets included, defaults left out: the reverse of `from_options`."""
        return {
            item.name: str(getattr(self, item.name)).lower() if item.type == "bool" else str(getattr(self, item.name))
            for item in fields(self)
            if getattr(self, item.name) != item.default
        }

    @property
    def controllers(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each controller, in order."""
        return parse_controller(self.controller)[1]

    @property
    def tls(self) -> bool:
        """Whether controllers and segment stores are called with TLS: the scheme says so for both."""
        return parse_controller(self.controller)[0]

    @property
    def cluster(self) -> str:
        """The cluster's name in plans: its controllers, without the scheme."""
        return ",".join(f"{host}:{port}" for host, port in self.controllers)

    @property
    def method(self) -> str:
        """The way to show who we are: given, or what the credentials need."""
        if self.auth_method:
            return self.auth_method
        if self.keycloak_file:
            return "keycloak"
        if self.token:
            return "bearer"
        return "basic" if self.username else "none"

    def ssl_context(self) -> ssl.SSLContext:
        """Certificates are always checked, host names unless switched off.

        Raises:
            InvalidRequest: the certificate file cannot be used.
        """
        try:
            context = ssl.create_default_context(cafile=self.tls_ca_file or None)
        except (OSError, ssl.SSLError) as error:
            raise InvalidRequest(f"tls_ca_file {self.tls_ca_file} cannot be used: {error}") from error
        context.check_hostname = self.tls_verify_hostname
        return context


_NEEDS: dict[str, tuple[str, ...]] = {
    "none": (),
    "basic": ("username", "password"),
    "bearer": ("token",),
    "keycloak": ("keycloak_file",),
}


def parse_controller(uri: str) -> tuple[bool, tuple[tuple[str, int], ...]]:
    """Whether `tcp://a:9090,b:9090` means TLS, and its hosts and ports, in order; the port defaults to 9090.

    Raises:
        InvalidRequest: another scheme, no host, credentials in the address, or a port that is no number.
    """
    scheme, mark, hosts = uri.strip().partition("://")
    if not mark or scheme not in _PLAIN | _SECURE:
        raise InvalidRequest(f"controller must start with tcp:// or tls://, got {_without_credentials(uri)!r}")
    return scheme in _SECURE, tuple(_address(part.strip()) for part in hosts.rstrip("/").split(","))


def _address(part: str) -> tuple[str, int]:
    if "@" in part:
        raise InvalidRequest("controller must hold no credentials: use the options username and password")
    try:
        split = urlsplit(f"//{part}")
        host, port = split.hostname, split.port
    except ValueError as error:
        raise InvalidRequest(f"{part!r} in controller is not host:port ({error})") from error
    if not host or split.path or split.query:
        raise InvalidRequest(f"{part!r} in controller: each host is written host or host:port")
    return host, port or _PORT


def _check_http(name: str, url: str) -> None:
    if not url:
        return
    if not url.startswith(("http://", "https://")) or "@" in url:
        raise InvalidRequest(
            f"{name} must start with http:// or https:// and hold no credentials, got {_without_credentials(url)!r}"
        )


def _without_credentials(uri: str) -> str:
    scheme, mark, rest = uri.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


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
            return "Basic " + base64.b64encode(f"{endpoint.username}:{endpoint.password}".encode()).decode()
        if endpoint.method == "bearer":
            return f"Bearer {endpoint.token}"
        if endpoint.method == "keycloak":
            with self._lock:
                if time.monotonic() >= self._keycloak[1]:
                    self._keycloak = _keycloak_token(endpoint.keycloak_file, endpoint.request_timeout_seconds)
                return f"Bearer {self._keycloak[0]}"
        return None

    @property
    def blocks(self) -> bool:
        """Whether `header` may wait for a network: an event loop must not."""
        return self._endpoint.method == "keycloak"


_EARLY_SECONDS = 5
_AUDIENCE = "pravega-controller"


def _keycloak_token(path: str, timeout: float) -> tuple[str, float]:
    """A token for Pravega and the monotonic time to renew it: the client's own token buys it."""
    import httpx  # noqa: PLC0415 - only where Keycloak is used

    try:
        settings = json.loads(Path(path).read_text(encoding="utf-8"))
        url = f"{settings['auth-server-url'].rstrip('/')}/realms/{settings['realm']}/protocol/openid-connect/token"
        client, secret = settings["resource"], settings["credentials"]["secret"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRequest(f"keycloak_file {path} cannot be used: {type(error).__name__}: {error}") from None
    own = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
    ticket = {"grant_type": "urn:ietf:params:oauth:grant-type:uma-ticket", "audience": _AUDIENCE}
    try:
        with httpx.Client(timeout=timeout) as http:
            first = _token_answer(url, http.post(url, data=own))
            bearer = {"Authorization": f"Bearer {first['access_token']}"}
            answer = _token_answer(url, http.post(url, data=ticket, headers=bearer))
    except httpx.TransportError as error:
        raise SystemUnavailable(url, type(error).__name__) from error
    return answer["access_token"], time.monotonic() + max(0.0, float(answer.get("expires_in", 0)) - _EARLY_SECONDS)


def _token_answer(url: str, response: Any) -> dict[str, Any]:
    if response.status_code >= 500:  # noqa: PLR2004
        raise SystemUnavailable(url, f"HTTP {response.status_code}")
    try:
        answer: dict[str, Any] = response.json() if response.status_code == 200 else {}  # noqa: PLR2004
    except ValueError:
        answer = {}
    if not isinstance(answer, dict) or not isinstance(answer.get("access_token"), str):
        raise AuthenticationFailed(url, f"HTTP {response.status_code}")
    return answer


_LEEWAY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """What a controller gives us to show to segment stores; empty when authorization is off."""

    value: str = field(repr=False)

    def renew_at(self) -> float:
        """The wall time (seconds since 1970) from which a new one should be asked for; a store allows no skew."""
        try:
            body = self.value.split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            return float(claims["exp"]) - _LEEWAY_SECONDS
        except (IndexError, ValueError, KeyError, TypeError):
            return math.inf


def _text(_name: str, value: str) -> str:
    return value


def _lower(_name: str, value: str) -> str:
    return value.lower()


def _flag(name: str, value: str) -> bool:
    try:
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[value.lower()]
    except KeyError:
        raise InvalidRequest(f"{name} must be true or false, got {value!r}") from None


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InvalidRequest(f"{name} must be a number of seconds, got {value!r}") from None


def _count(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InvalidRequest(f"{name} must be a whole number, got {value!r}") from None


_PARSERS: dict[str, Callable[[str, str], object]] = {
    "auth_method": _lower,
    "tls_verify_hostname": _flag,
    "request_timeout_seconds": _number,
    "stall_seconds": _number,
    "read_ahead": _count,
}
