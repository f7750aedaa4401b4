"""Where a Pravega cluster is and who we are there: one description for its controller and segment stores."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.redaction import conceal
from airflow_provider_streams.systems import secret_places, settings
from airflow_provider_streams.systems.pravega.options import METHODS, OPTIONS
from airflow_provider_streams.systems.pravega.registry.endpoint import RegistryEndpoint
from airflow_provider_streams.systems.reach import Reach
from airflow_provider_streams.systems.tls import client_context

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
    registry_url: str = ""
    registry_username: str = ""
    registry_password: str = field(default="", repr=False)
    registry_token: str = field(default="", repr=False)
    registry_tls_ca_file: str = ""
    registry_tls_verify_hostname: bool = True
    auth_method: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    keycloak_file: str = ""
    allowed_hosts: tuple[str, ...] = ()
    tls_ca_file: str = ""
    tls_verify_hostname: bool = True
    request_timeout_seconds: float = 30.0
    stall_seconds: float = 60.0
    read_ahead: int = 2
    max_event_bytes: int = 128 << 20

    def __post_init__(self) -> None:
        parse_controller(self.controller)
        if self.auth_method not in ("", *METHODS):
            raise InvalidRequest(f"auth_method is one of {', '.join(METHODS)}, got {self.auth_method!r}")
        for name in ("rest_url", "registry_url"):
            settings.check_http(name, getattr(self, name))
        self._check_credentials()
        Reach.of((), self.allowed_hosts)
        for name in _NEEDS[self.method]:
            if not getattr(self, name):
                raise InvalidRequest(f"auth_method {self.method} needs the option {name}")
        for name, most in _MOST.items():
            if not 0 < getattr(self, name) <= most:
                raise InvalidRequest(f"{name} must be positive, and {most:,} at most, got {getattr(self, name)}")

    def _check_credentials(self) -> None:
        secret_places.as_token("token", conceal(self.token))
        secret_places.check_credentials(self.username, self.password)
        conceal(self.registry_password)
        conceal(self.registry_token)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """From settings by option name or alias, compared without case; empty and unknown ones are ignored.

        Raises:
            InvalidRequest: `controller` is missing, or a setting is malformed.
        """
        values = settings.parse(options, OPTIONS)
        if "controller" not in values:
            raise InvalidRequest("the option controller is missing, for example tcp://localhost:9090")
        return cls(**values)

    def to_options(self) -> dict[str, str]:
        """Its settings by option name, secrets included, defaults left out: the reverse of `from_options`."""
        return settings.texts(self)

    @property
    def controllers(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each controller, in order."""
        return parse_controller(self.controller)[1]

    @property
    def tls(self) -> bool:
        """Whether controllers and segment stores are called with TLS: the scheme says so for both."""
        return parse_controller(self.controller)[0]

    @property
    def registry(self) -> RegistryEndpoint | None:
        """The Schema Registry of its events; None: none is known.

        Raises:
            InvalidRequest: a setting of it is malformed.
        """
        if not self.registry_url:
            return None
        return RegistryEndpoint(
            self.registry_url,
            username=self.registry_username,
            password=self.registry_password,
            token=self.registry_token,
            tls_ca_file=self.registry_tls_ca_file or self.tls_ca_file,
            tls_verify_hostname=self.registry_tls_verify_hostname,
            request_timeout_seconds=self.request_timeout_seconds,
        )

    @property
    def cluster(self) -> str:
        """The cluster's name in plans: its controllers, without the scheme."""
        return ",".join(f"{host}:{port}" for host, port in self.controllers)

    @property
    def reach(self) -> Reach:
        """Where controllers may lead us."""
        return Reach.of((host for host, _ in self.controllers), self.allowed_hosts)

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
        return client_context(tls_ca_file=self.tls_ca_file, tls_verify_hostname=self.tls_verify_hostname)


_MOST = {
    "request_timeout_seconds": 86_400,
    "stall_seconds": 86_400,
    "read_ahead": 64,
    "max_event_bytes": (1 << 31) - 1,
}
"""The most that makes sense; what is not a number is none of it."""
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
        raise InvalidRequest(f"controller must start with tcp:// or tls://, got {settings.without_credentials(uri)!r}")
    if "@" in hosts:
        raise InvalidRequest(
            f"controller {settings.without_credentials(uri)!r} must hold no credentials: they belong into the "
            "connection's login and password, or the options username and password"
        )
    return scheme in _SECURE, tuple(_address(part.strip(), uri) for part in hosts.rstrip("/").split(","))


def _address(part: str, uri: str) -> tuple[str, int]:
    host, port = settings.host_and_port(part)
    if not host:
        raise InvalidRequest(
            f"controller {settings.without_credentials(uri)!r}: each host is written host or host:port"
        )
    return host, port or _PORT
