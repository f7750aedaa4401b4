"""Where a Schema Registry is, and who we are there."""

from __future__ import annotations

import base64
from dataclasses import MISSING, dataclass
from urllib.parse import urlsplit

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.redaction import register_secret
from airflow_provider_streams.systems.connection import secret_references
from airflow_provider_streams.systems.connection.address import AddressRules
from airflow_provider_streams.systems.connection.endpoint import EndpointBase, setting
from airflow_provider_streams.systems.connection.redirect_policy import RedirectPolicy
from airflow_provider_streams.systems.rest.exchange import Route

ADDRESS = AddressRules(
    kind="schema_registry",
    option="url",
    secure=("https",),
    plain=("http",),
    default="http",
    types=frozenset({"https"}),  # `http` is the type of Airflow's own HTTP connections
    protected=("password", "token", "tls_ca_file"),
)
"""How a connection says where the registry is."""


@dataclass(frozen=True, slots=True)
class RegistryEndpoint(EndpointBase):
    """A Schema Registry and our identity there.

    Raises:
        InvalidRequest: as `EndpointBase`; or two ways to show who we are.
    """

    url: str = setting(
        "Schema Registry: http://host:9092 or https://..; wins over a connection's host and port",
        MISSING,
        kind="http",
        variables=("PRAVEGA_SCHEMA_REGISTRY_URI",),
        carries=("password", "token"),
        label="URL",
        placeholder="https://registry.example.com:9092",
    )
    namespace: str = setting("The namespace of groups that are named without one")
    username: str = setting("The user's name (basic)", masked_without="password")
    password: str = setting("The user's password (basic)", secret=True)
    token: str = setting("A token of your identity provider (bearer)", kind="token", secret=True, label="Bearer token")

    def __post_init__(self) -> None:
        EndpointBase.__post_init__(self)
        secret_references.check_credentials(self.username, self.password)
        if self.token and self.username:
            raise InvalidRequest("give a token, or username and password")
        if bool(self.username) != bool(self.password):
            raise InvalidRequest("username and password belong together")

    def route(self) -> Route:
        """Where calls go."""
        base = self.url.rstrip("/").removesuffix("/v1")
        reach = RedirectPolicy.of([urlsplit(base).hostname or ""], ())
        return Route(
            base, reach, allow="", stay="Give the address that answers: the connection's host, or its extra url."
        )

    def headers(self) -> dict[str, str]:
        """HTTP headers of a call; secret."""
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if not self.username:
            return {}
        pair = register_secret(base64.b64encode(f"{self.username}:{self.password}".encode()).decode())
        return {"Authorization": f"Basic {pair}"}
