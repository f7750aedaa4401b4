"""Where a Pulsar cluster is and how we show who we are: one description for REST, our wire and pulsar-client."""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import urlsplit

from airflow_provider_streams.errors import InvalidRequest, MissingDependency, NotFollowed
from airflow_provider_streams.redaction import conceal
from airflow_provider_streams.systems import secret_places, settings
from airflow_provider_streams.systems.pulsar.limits import GREATEST, Limits
from airflow_provider_streams.systems.pulsar.options import OPTIONS
from airflow_provider_streams.systems.reach import Reach
from airflow_provider_streams.systems.rest.exchange import Route
from airflow_provider_streams.systems.rest.failures import Dialect
from airflow_provider_streams.systems.tls import client_context

_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}
_DIALECT = Dialect(
    passing=((412, "find owner"), (412, "owner broker"), (404, "no owner")),
    # a question about an entry that is not there, or a schema that does not fit: asking again does not change it
    lasting=((500, "lastconfirmedentry"),),
    # 401 comes as an HTML page for an unknown or expired token, and with a JSON reason without the permission
    not_granted=("unauthorized to", "don't have permission to"),
)


@dataclass(frozen=True, slots=True)
class Address:
    """One broker's binary port."""

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'pulsar+ssl' if self.tls else 'pulsar'}://{host}:{self.port}"


def parse_service_url(url: str) -> tuple[Address, ...]:
    """The hosts of `pulsar://a:6650,b:6650`, in order; ports default to 6650, with TLS 6651.

    Raises:
        InvalidRequest: another scheme, no host, credentials in the address, or a port that is no number.
    """
    scheme, mark, hosts = url.strip().partition("://")
    if not mark or scheme not in _PORTS:
        raise InvalidRequest(
            f"service_url must start with pulsar:// or pulsar+ssl://, got {settings.without_credentials(url)!r}"
            + ("; an http(s) address belongs in admin_url" if scheme in {"http", "https"} else "")
        )
    if "@" in hosts:
        raise InvalidRequest(
            f"service_url {settings.without_credentials(url)!r} must hold no credentials: a token belongs into the "
            "connection's password, or the option token"
        )
    return tuple(_address(scheme, part.strip(), url) for part in hosts.rstrip("/").split(","))


def _address(scheme: str, part: str, url: str) -> Address:
    host, port = settings.host_and_port(part)
    if not host:
        raise InvalidRequest(
            f"service_url {settings.without_credentials(url)!r}: each host is written host or host:port"
        )
    return Address(host, port or _PORTS[scheme], scheme == "pulsar+ssl")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A Pulsar cluster and our identity there. Its `repr` holds no secret.

    Raises:
        InvalidRequest: a malformed address, a limit that is not positive, more than one source of the token,
            or half of a client certificate.
    """

    service_url: str
    admin_url: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    token_env: str = ""
    tls_ca_file: str = ""
    tls_verify_hostname: bool = True
    tls_cert_file: str = ""
    tls_key_file: str = ""
    allowed_hosts: tuple[str, ...] = ()
    rewrite_redirects: bool = False
    listener_name: str = ""
    request_timeout_seconds: float = 30.0
    stall_seconds: float = 60.0
    max_entry_bytes: int = Limits.max_entry_bytes
    max_entry_rows: int = Limits.max_entry_rows
    max_entry_ratio: int = Limits.max_entry_ratio

    def __post_init__(self) -> None:
        parse_service_url(self.service_url)
        settings.check_http("admin_url", self.admin_url)
        secret_places.as_token("token", conceal(self.token))
        Reach.of((), self.allowed_hosts)
        if sum(map(bool, (self.token, self.token_file, self.token_env))) > 1:
            raise InvalidRequest("give one of token, token_file and token_env")
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            raise InvalidRequest("tls_cert_file and tls_key_file belong together")
        for name in ("request_timeout_seconds", "stall_seconds"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidRequest(f"{name} must be a positive number of seconds, got {getattr(self, name)}")
        for name, most in GREATEST.items():
            if not 0 < getattr(self, name) <= most:
                raise InvalidRequest(f"{name} must be between 1 and {most}, got {getattr(self, name)}")

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """From settings by option name or alias, compared without case; empty and unknown ones are ignored.

        Raises:
            InvalidRequest: `service_url` is missing, or a setting is malformed.
        """
        values = settings.parse(options, OPTIONS)
        if "service_url" not in values:
            raise InvalidRequest("the option service_url is missing, for example pulsar://localhost:6650")
        return cls(**values)

    def to_options(self) -> dict[str, str]:
        """Its settings by option name, secrets included, defaults left out: the reverse of `from_options`."""
        return settings.texts(self)

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The given brokers, in order."""
        return parse_service_url(self.service_url)

    @property
    def limits(self) -> Limits:
        """How large an entry may be that we read."""
        return Limits(self.max_entry_bytes, self.max_entry_rows, self.max_entry_ratio)

    @property
    def tls(self) -> bool:
        """Whether brokers are called with TLS."""
        return self.addresses[0].tls

    def token_value(self) -> str | None:
        """The token as it is now; None: there is none.

        Raises:
            InvalidRequest: its file or variable cannot be read, or holds no token.
        """
        if self.token_file:
            return secret_places.token_of_file("token_file", self.token_file)
        if self.token_env:
            return secret_places.token_of_variable("token_env", self.token_env)
        return self.token or None

    def token_expiry(self) -> datetime | None:
        """When the token says that it expires, unverified; None: it is no JWT, or does not say."""
        end = settings.token_end(self.token_value() or "")
        try:
            return None if end is None else datetime.fromtimestamp(end, UTC)
        except (ValueError, OverflowError, OSError):
            return None

    @property
    def auth_method(self) -> str:
        """Pulsar's name of our way to show who we are: `token`, `tls` or, for none, an empty text."""
        if self.token or self.token_file or self.token_env:
            return "token"
        return "tls" if self.tls_cert_file else ""

    def auth_data(self) -> bytes:
        """What CONNECT and AUTH_RESPONSE carry, resolved now."""
        return (self.token_value() or "").encode()

    def route(self) -> Route:
        """Where admin calls go.

        Raises:
            InvalidRequest: there is no admin_url.
        """
        if not self.admin_url:
            raise InvalidRequest(
                "the option admin_url is missing (http://host:8080 or https://..): "
                "windows are planned, and gaps explained, through Pulsar's REST service"
            )
        return Route(self.admin_url, self.reach, self.rewrite_redirects, _DIALECT)

    def headers(self) -> dict[str, str]:
        """HTTP headers of a REST call, resolved now; secret."""
        token = self.token_value()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if self.auth_method:
            headers["X-Pulsar-Auth-Method-Name"] = self.auth_method
        return headers

    def ssl_context(self) -> ssl.SSLContext:
        """For `pulsar+ssl` and `https`: certificates are always checked, host names unless switched off.

        Raises:
            InvalidRequest: a certificate file cannot be used.
        """
        return client_context(
            tls_ca_file=self.tls_ca_file,
            tls_cert_file=self.tls_cert_file,
            tls_key_file=self.tls_key_file,
            tls_verify_hostname=self.tls_verify_hostname,
        )

    @property
    def reach(self) -> Reach:
        """Where the cluster's servers may lead us."""
        given = [address.host for address in self.addresses]
        return Reach.of([*given, urlsplit(self.admin_url).hostname or given[0]], self.allowed_hosts)

    def check_led_to(self, where: str, broker: Address) -> None:
        """Before a broker is called that the one at `where` named.

        Raises:
            NotFollowed: without TLS, although the connection asks for it; or to a host that is not called.
        """
        if self.tls and not broker.tls:
            fix = "Brokers must advertise an address with TLS: brokerServicePortTls, advertisedListeners."
            raise NotFollowed(where, str(broker), "without TLS, although the connection asks for it", fix)
        self.reach.check(where, broker.host)

    def client_arguments(self) -> dict[str, Any]:
        """Keyword arguments of `pulsar.Client`; the token is asked for anew whenever the client needs it.

        Raises:
            MissingDependency: pulsar-client is not installed.
        """
        try:
            import pulsar
        except ImportError as error:
            raise MissingDependency("pulsar", "pulsar-client") from error
        arguments: dict[str, Any] = {
            "service_url": self.service_url,
            "operation_timeout_seconds": max(1, int(self.request_timeout_seconds)),
            # the client's own default would log to stdout
            "logger": pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        }
        if self.auth_method == "token":
            arguments["authentication"] = pulsar.AuthenticationToken(self._token_supplier())
        elif self.auth_method == "tls":
            arguments["authentication"] = pulsar.AuthenticationTLS(self.tls_cert_file, self.tls_key_file)
        if self.tls:
            arguments["tls_validate_hostname"] = self.tls_verify_hostname
            if self.tls_ca_file:
                arguments["tls_trust_certs_file_path"] = self.tls_ca_file
        if self.listener_name:
            arguments["listener_name"] = self.listener_name
        return arguments

    def _token_supplier(self) -> Callable[[], str]:
        return lambda: self.token_value() or ""
