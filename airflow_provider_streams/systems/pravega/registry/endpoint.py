"""Where a Schema Registry is, and who we are there."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.redaction import conceal
from airflow_provider_streams.systems import secret_places, settings
from airflow_provider_streams.systems.pravega.registry.options import OPTIONS
from airflow_provider_streams.systems.reach import Reach
from airflow_provider_streams.systems.rest.exchange import Route
from airflow_provider_streams.systems.tls import client_context


@dataclass(frozen=True, slots=True)
class RegistryEndpoint:
    """A Schema Registry and our identity there. Its `repr` holds no secret.

    Raises:
        InvalidRequest: a malformed address, two ways to show who we are, or a timeout that is not positive.
    """

    url: str
    namespace: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    tls_ca_file: str = ""
    tls_verify_hostname: bool = True
    request_timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        settings.check_http("url", self.url)
        secret_places.as_token("token", conceal(self.token))
        secret_places.check_credentials(self.username, self.password)
        if self.token and self.username:
            raise InvalidRequest("give a token, or username and password")
        if bool(self.username) != bool(self.password):
            raise InvalidRequest("username and password belong together")
        if not 0 < self.request_timeout_seconds <= _LONGEST:
            given = self.request_timeout_seconds
            raise InvalidRequest(f"request_timeout_seconds must be positive, and {_LONGEST:,} at most, got {given}")

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """From settings by option name, compared without case; empty and unknown ones are ignored.

        Raises:
            InvalidRequest: `url` is missing, or a setting is malformed.
        """
        values = settings.parse(options, OPTIONS)
        if "url" not in values:
            raise InvalidRequest("the option url is missing: where the Schema Registry is, like http://localhost:9092")
        return cls(**values)

    def route(self) -> Route:
        """Where calls go."""
        base = self.url.rstrip("/").removesuffix("/v1")
        return Route(base, Reach.of([urlsplit(base).hostname or ""], ()))

    def headers(self) -> dict[str, str]:
        """HTTP headers of a call; secret."""
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if not self.username:
            return {}
        pair = conceal(base64.b64encode(f"{self.username}:{self.password}".encode()).decode())
        return {"Authorization": f"Basic {pair}"}

    def ssl_context(self) -> ssl.SSLContext:
        """Certificates are always checked, host names unless switched off.

        Raises:
            InvalidRequest: the certificate file cannot be used.
        """
        return client_context(tls_ca_file=self.tls_ca_file, tls_verify_hostname=self.tls_verify_hostname)


_LONGEST = 86_400
