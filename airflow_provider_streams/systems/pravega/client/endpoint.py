"""Where a Pravega cluster is, and our identity there."""

from __future__ import annotations

from dataclasses import MISSING, dataclass

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.connection import endpoint_fields, secret_references
from airflow_provider_streams.systems.connection.address import AddressRules
from airflow_provider_streams.systems.connection.endpoint import ClusterEndpoint, setting
from airflow_provider_streams.systems.connection.redirect_policy import RedirectPolicy
from airflow_provider_streams.systems.pravega.schema_registry.endpoint import RegistryEndpoint

_SECRETS = ("password", "token", "keycloak_file")
ADDRESS = AddressRules(
    kind="pravega",
    option="controller",
    secure=("tls", "ssl", "tcps", "pravegas"),
    plain=("tcp", "pravega"),
    default="tcp",
    types=frozenset({"tcp", "tls", "ssl", "tcps", "pravegas"}),
    protected=(*_SECRETS, "tls_ca_file"),
    takes_several=True,
)
"""How a connection says where controllers are."""
_PORTS = tuple(dict.fromkeys(("tcp", "tls", *ADDRESS.plain, *ADDRESS.secure), 9090).items())
_NEEDS: dict[str, tuple[str, ...]] = {
    "none": (),
    "basic": ("username", "password"),
    "bearer": ("token",),
    "keycloak": ("keycloak_file",),
}
"""The ways to show who we are, and what each needs."""


@dataclass(frozen=True, slots=True)
class Endpoint(ClusterEndpoint):
    """A Pravega cluster and our identity there: one description for its controller and segment stores.

    Raises:
        InvalidRequest: as `ClusterEndpoint`; credentials are missing for the method; or there are two of them, and
            `auth_method` does not say which one counts.
    """

    controller: str = setting(
        "Controllers: tcp://host:9090 or tls://host:9090, several hosts between commas; wins over a connection's host "
        "and port",
        MISSING,
        kind="hosts",
        ports=_PORTS,
        web_option="rest_url",
        aliases=("controllerUri", "controller_uri"),
        variables=("PRAVEGA_CONTROLLER_URI",),
        carries=_SECRETS,
        placeholder="tls://controller-1:9090,controller-2:9090",
    )
    scope: str = setting("The scope of streams that are named without one", variables=("PRAVEGA_SCOPE",))
    rest_url: str = setting(
        "The controllers' REST API, http://host:9091 or https://..: only health is asked there",
        kind="http",
        aliases=("restUrl",),
        carries=_SECRETS,
        label="REST URL",
        placeholder="https://controller.example.com:9091",
    )
    registry_url: str = setting(
        "Schema Registry of events with value=Registry(..): http://host:9092 or https://..; only planning asks it",
        kind="http",
        aliases=("schema_registry", "schemaRegistry", "schema_registry_uri", "schemaRegistryUri"),
        carries=("registry_password", "registry_token"),
        label="Schema Registry",
        placeholder="https://registry.example.com:9092",
    )
    registry_username: str = setting("Schema Registry: the user's name (basic)", masked_without="registry_password")
    registry_password: str = setting("Schema Registry: the user's password (basic)", secret=True)
    registry_token: str = setting(
        "Schema Registry: a token of your identity provider (bearer)", kind="token", secret=True
    )
    registry_tls_ca_file: str = setting(
        "Schema Registry: certificates (PEM) to trust; default: those of tls_ca_file", placeholder="/etc/ssl/our-ca.pem"
    )
    registry_tls_verify_hostname: bool = setting(
        "Schema Registry: whether a certificate must name the host we call", default=True
    )
    auth_method: str = setting(
        "none, basic, bearer or keycloak; default: what the given credentials need",
        kind="word",
        choices=tuple(_NEEDS),
        label="Authentication",
    )
    username: str = setting("The user's name (basic)", masked_without="password")
    password: str = setting("The user's password (basic)", secret=True)
    token: str = setting("A token of your identity provider (bearer)", kind="token", secret=True, label="Bearer token")
    keycloak_file: str = setting(
        "The client's adapter configuration from Keycloak, a JSON file (keycloak)",
        reads="file",
        placeholder="/run/secrets/keycloak.json",
    )
    read_ahead: int = setting(
        "How many requests of 2 MiB a read keeps on their way; more help over long distances", 2, most=64
    )
    max_event_bytes: int = setting(
        "The largest event that is read; a read holds about twice as much",
        128 << 20,
        most=(1 << 31) - 1,
        label="Largest event",
    )

    def __post_init__(self) -> None:
        ClusterEndpoint.__post_init__(self)
        secret_references.check_credentials(self.username, self.password)
        if self.method == "none" and self.password and not self.auth_method:
            raise InvalidRequest(
                "the password has no user: set the option username (a connection's field Login), or auth_method=none"
            )
        given = [name for name in _SECRETS if getattr(self, name)]
        if len(given) > 1 and not self.auth_method:
            raise InvalidRequest(
                f"{' and '.join(given)} are given, and only one of them is sent: leave out the others, or say with "
                "auth_method which one counts"
            )
        if self.username and self.method in ("bearer", "keycloak") and not self.auth_method:
            raise InvalidRequest(
                f"username and {given[0]} are both given, but {given[0]} itself says who we are: leave username empty "
                f"(a connection's field Login), or give the user's password instead of {given[0]}"
            )
        for name in _NEEDS[self.method]:
            if not getattr(self, name):
                raise InvalidRequest(f"auth_method {self.method} needs the option {name}")

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
    def reach(self) -> RedirectPolicy:
        """Where controllers may lead us."""
        return RedirectPolicy.of((host for host, _ in self.controllers), self.allowed_hosts)

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


def parse_controller(uri: str) -> tuple[bool, tuple[tuple[str, int], ...]]:
    """Whether `tcp://a:9090,b:9090` means TLS, and its hosts and ports, in order; the port defaults to 9090.

    Raises:
        InvalidRequest: another scheme, no host, credentials in the address, or a port that is no number.
    """
    scheme, hosts = endpoint_fields.hosts_of(Endpoint.option(ADDRESS.option), uri)
    return scheme in ADDRESS.secure, hosts
