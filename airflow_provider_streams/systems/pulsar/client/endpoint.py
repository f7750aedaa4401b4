"""Where a Pulsar cluster is, and our identity there."""

from __future__ import annotations

import ssl
from dataclasses import MISSING, dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from airflow_provider_streams.errors import InvalidRequest, RedirectRefused, foreseen
from airflow_provider_streams.model.optional_dependencies import importing
from airflow_provider_streams.systems.connection import endpoint_fields, secret_references
from airflow_provider_streams.systems.connection.address import AddressRules
from airflow_provider_streams.systems.connection.endpoint import ClusterEndpoint, setting
from airflow_provider_streams.systems.connection.redirect_policy import RedirectPolicy
from airflow_provider_streams.systems.connection.tls import client_context
from airflow_provider_streams.systems.pulsar.reading.entry_limits import GREATEST, Limits
from airflow_provider_streams.systems.rest.exchange import Dialect, Route

_TOKENS = ("token", "token_file", "token_env")
ADDRESS = AddressRules(
    kind="pulsar",
    option="service_url",
    secure=("pulsar+ssl",),
    plain=("pulsar",),
    default="pulsar",
    types=frozenset({"pulsar+ssl"}),
    protected=(*_TOKENS, "tls_cert_file", "tls_ca_file"),
    takes_several=True,
    credentials="the field password, which holds the token",
)
"""How a connection says where brokers are."""
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
    scheme, hosts = endpoint_fields.hosts_of(Endpoint.option(ADDRESS.option), url)
    return tuple(Address(host, port, scheme == "pulsar+ssl") for host, port in hosts)


@dataclass(frozen=True, slots=True)
class Endpoint(ClusterEndpoint):
    """A Pulsar cluster and our identity there: one description for REST, our wire and pulsar-client.

    Raises:
        InvalidRequest: as `ClusterEndpoint`; more than one source of the token, or half of a client certificate.
    """

    service_url: str = setting(
        "Brokers: pulsar://host:6650 or pulsar+ssl://host:6651, several hosts between commas; wins over a "
        "connection's host and port",
        MISSING,
        kind="hosts",
        ports=(("pulsar", 6650), ("pulsar+ssl", 6651)),
        web_option="admin_url",
        aliases=("service.url", "serviceUrl"),
        variables=("PULSAR_SERVICE_URL",),
        carries=_TOKENS,
        label="Service URL",
        placeholder="pulsar+ssl://broker-1:6651,broker-2:6651",
    )
    admin_url: str = setting(
        "REST service: http://host:8080 or https://..; planning and sensors ask it",
        kind="http",
        api_path="admin/v2",
        aliases=("admin.url", "adminUrl"),
        variables=("PULSAR_ADMIN_URL",),
        carries=_TOKENS,
        label="Admin URL",
        placeholder="https://broker.example.com:8443",
    )
    token: str = setting("The token (JWT) itself", kind="token", secret=True)
    token_file: str = setting(
        "A file that holds the token, read again at every use", reads="file", placeholder="/run/secrets/pulsar-token"
    )
    token_env: str = setting("The environment variable that holds the token", reads="variable", label="Token variable")
    tls_cert_file: str = setting("Our client certificate (PEM)", reads="file", label="Client certificate")
    tls_key_file: str = setting("The key of our client certificate (PEM)", reads="file", label="Client key")
    rewrite_redirects: bool = setting(
        "Whether to call the given host when the cluster names another one", default=False
    )
    listener_name: str = setting("The brokers' advertised listener to ask for")
    max_entry_bytes: int = setting(
        "The largest entry that is read, decompressed and put together of its chunks; at most 536870912",
        Limits.max_entry_bytes,
        most=GREATEST["max_entry_bytes"],
        label="Largest entry",
    )
    max_entry_rows: int = setting(
        "The most messages of an entry that is read, and properties of them all",
        Limits.max_entry_rows,
        most=GREATEST["max_entry_rows"],
        label="Most messages",
    )
    max_entry_ratio: int = setting(
        "How many times its stored size an entry that is read may decompress to; 16 MiB are always allowed",
        Limits.max_entry_ratio,
        most=GREATEST["max_entry_ratio"],
        label="Highest compression",
    )

    def __post_init__(self) -> None:
        ClusterEndpoint.__post_init__(self)
        if sum(map(bool, (self.token, self.token_file, self.token_env))) > 1:
            raise InvalidRequest("give one of token, token_file and token_env")
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            raise InvalidRequest("tls_cert_file and tls_key_file belong together")

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
            return secret_references.token_of_file("token_file", self.token_file)
        if self.token_env:
            return secret_references.token_of_variable("token_env", self.token_env)
        return self.token or None

    def token_expiry(self) -> datetime | None:
        """When the token says that it expires, unverified; None: it is no JWT, or does not say."""
        end = endpoint_fields.token_end(self.token_value() or "")
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

    @foreseen()
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
        """As `EndpointBase`, for `pulsar+ssl` and `https`, with our own certificate."""
        return client_context(
            tls_ca_file=self.tls_ca_file,
            tls_cert_file=self.tls_cert_file,
            tls_key_file=self.tls_key_file,
            tls_verify_hostname=self.tls_verify_hostname,
        )

    @property
    def reach(self) -> RedirectPolicy:
        """Where the cluster's servers may lead us."""
        given = [address.host for address in self.addresses]
        return RedirectPolicy.of([*given, urlsplit(self.admin_url).hostname or given[0]], self.allowed_hosts)

    def check_led_to(self, where: str, broker: Address) -> None:
        """Before a broker is called that the one at `where` named.

        Raises:
            RedirectRefused: without TLS, although the connection asks for it; or to a host that is not called.
        """
        if self.tls and not broker.tls:
            fix = "Brokers must advertise an address with TLS: brokerServicePortTls, advertisedListeners."
            raise RedirectRefused(where, str(broker), "without TLS, although the connection asks for it", fix)
        self.reach.check(where, broker.host, shown=str(broker))

    def client_arguments(self) -> dict[str, Any]:
        """Keyword arguments of `pulsar.Client`; the client asks for the token whenever it needs it.

        Raises:
            MissingDependency: pulsar-client is not installed.
        """
        with importing("pulsar-client"):
            import pulsar
        arguments: dict[str, Any] = {
            "service_url": self.service_url,
            "operation_timeout_seconds": max(1, int(self.request_timeout_seconds)),
            # the client's own default would log to stdout
            "logger": pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        }
        if self.auth_method == "token":
            arguments["authentication"] = pulsar.AuthenticationToken(lambda: self.token_value() or "")
        elif self.auth_method == "tls":
            arguments["authentication"] = pulsar.AuthenticationTLS(self.tls_cert_file, self.tls_key_file)
        if self.tls:
            arguments["tls_validate_hostname"] = self.tls_verify_hostname
            if self.tls_ca_file:
                arguments["tls_trust_certs_file_path"] = self.tls_ca_file
        if self.listener_name:
            arguments["listener_name"] = self.listener_name
        return arguments
