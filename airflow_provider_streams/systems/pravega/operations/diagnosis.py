"""What doctor asks of a Pravega cluster. Nothing is created or changed."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Self
from urllib.parse import urlsplit

from airflow_provider_streams.errors import NotAuthorized
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.connection.address import normal
from airflow_provider_streams.systems.diagnosis import Grant, ServerTime, Service, bounded
from airflow_provider_streams.systems.pravega.client.controller import hold_calls, segment_calls, stream_calls
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.client.rest_api import get, server_date
from airflow_provider_streams.systems.pravega.client.segment_store_connection import Connection
from airflow_provider_streams.systems.pravega.client.stream_client import Client
from airflow_provider_streams.systems.pravega.metadata import queries
from airflow_provider_streams.systems.pravega.schema_registry.client import RegistryClient
from airflow_provider_streams.systems.pravega.schema_registry.endpoint import RegistryEndpoint
from airflow_provider_streams.systems.pravega.schema_registry.requests import groups
from airflow_provider_streams.systems.pravega.source import pravega_source
from airflow_provider_streams.systems.rest.server_date import HTTP_SECONDS, parse_date

_MOST_STREAMS = 20
"""How many streams of a source are asked."""
_HTTP_PORTS = {"http": 80, "https": 443}
_SYSTEM = "_system"
_CONTROLLER = "controller"
_TOKEN_SECONDS = 1.0
"""The resolution of a token's times."""
_HOLD_UNSEEN = "whether the user may make a reader group in the scope shows only when a hold is placed"


class PravegaDiagnosis:
    """See `Diagnosis`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._client = Client(endpoint)
        self._streams: dict[str, tuple[str, ...]] = {}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See `Diagnosis`."""
        return cls(Endpoint.from_options(bounded(options)))

    def services(self, source: Source | None) -> Sequence[Service]:
        """Controller and segment store; the REST API and the Schema Registry if the connection names them."""
        endpoint = self.endpoint
        found = [
            Service(
                _CONTROLLER,
                "controller",
                lambda: endpoint.controllers,
                endpoint.tls,
                endpoint.ssl_context,
                self._sign_in_at_controller,
            ),
            Service(
                "segment store",
                "controller",
                lambda: (self._store(source),),
                endpoint.tls,
                endpoint.ssl_context,
                lambda: self._sign_in_at_store(source),
                after=_CONTROLLER,
            ),
        ]
        if endpoint.rest_url:
            found.append(self._rest())
        if registry := endpoint.registry:
            found.append(_registry(registry, endpoint.scope))
        return found

    def _sign_in_at_controller(self) -> str:
        with suppress(NotAuthorized):  # it knows us
            self._client.call(stream_calls.scope_exists(self.endpoint.scope or _SYSTEM))
        return f"it accepts us (auth_method {self.endpoint.method})"

    def _store(self, source: Source | None) -> tuple[str, int]:
        """The store that serves a segment; any name has one."""
        stream = f"{self.endpoint.scope or _SYSTEM}/doctor" if source is None else self._named(source)[0]
        return self._client.call(segment_calls.store_of(stream, 0))

    def _sign_in_at_store(self, source: Source | None) -> str:
        Connection(self.endpoint, self._store(source)).close()
        return "it speaks Pravega's wire protocol; it asks for a token only when a stream is read"

    def _rest(self) -> Service:
        endpoint = self.endpoint
        return Service(
            "REST API",
            "rest_url",
            lambda: (_host_of(endpoint.rest_url),),
            normal(endpoint.rest_url).startswith("https:"),
            endpoint.ssl_context,
            self._ask_health,
        )

    def _ask_health(self) -> str:
        get(self.endpoint, "look at the health", "health")
        return "it says that it is healthy; it asks for no credentials"

    def server_time(self, source: Source | None) -> ServerTime | None:
        """By the token for a stream, which says when the controller made it, or by HTTP where a proxy adds the time."""
        if source is not None and (made := made_at(self._token(source))):
            return ServerTime("Pravega's controller", made, _TOKEN_SECONDS)
        told = parse_date(server_date(self.endpoint)) if self.endpoint.rest_url else None
        return None if told is None else ServerTime(f"the REST API at {self.endpoint.rest_url}", told, HTTP_SECONDS)

    def _token(self, source: Source) -> str:
        """For the first stream; empty: the cluster asks for no credentials."""
        with suppress(NotAuthorized):  # see the grants
            return self._client.call(segment_calls.delegation_token(self._named(source)[0]))
        return ""

    def grants(self, source: Source) -> Sequence[Grant]:
        """To plan and to read need `READ`, and a hold `READ_UPDATE`."""
        scope = self._named(source)[0].partition("/")[0]
        return (
            Grant("plan", "READ on the stream", lambda: self._each(source, self._plan)),
            Grant("read", "READ on the stream", lambda: self._each(source, self._read)),
            Grant(
                "hold",
                f"READ_UPDATE on the stream and on scope {scope}",
                lambda: self._each(source, self._hold),
                is_needed=False,
                unseen=lambda: _HOLD_UNSEEN if self._token(source) else "",
            ),
        )

    def _plan(self, stream: str) -> str:
        self._client.run(queries.describe(stream))
        return "the controller gave settings, head and tail"

    def _read(self, stream: str) -> str:
        self._client.run(queries.unread(stream))
        return "the segment stores took our token for the stream"

    def _hold(self, stream: str) -> str:
        self._client.call(hold_calls.list_holds(stream))
        return "the controller listed the stream's subscribers, which needs READ_UPDATE on the stream"

    def _each(self, source: Source, act: Callable[[str], str]) -> str:
        streams = self._named(source)
        said = [act(stream) for stream in streams[:_MOST_STREAMS]]
        first = said[0]
        return (
            f"{first} (asked for {_MOST_STREAMS} of {len(streams)} streams)" if len(streams) > _MOST_STREAMS else first
        )

    def _named(self, source: Source) -> tuple[str, ...]:
        if source.key not in self._streams:
            self._streams[source.key] = self._client.run(queries.streams_of(pravega_source(source)))
        return self._streams[source.key]

    def close(self) -> None:
        """See `Diagnosis`."""
        self._client.close()


def made_at(token: str) -> datetime | None:
    """When a token was made, by the clock of the server that signed it; None: it does not say. It is not verified."""
    try:
        claims = token.split(".")[1]
        issued = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["iat"]
        return datetime.fromtimestamp(issued, UTC)
    except (LookupError, ValueError, TypeError, OverflowError, OSError):
        return None


def _registry(registry: RegistryEndpoint, scope: str) -> Service:
    def sign_in() -> str:
        with RegistryClient(registry) as client, suppress(NotAuthorized):  # it knows us
            client(groups(scope or _SYSTEM))
        return "it accepts us"

    return Service(
        "schema registry",
        "registry_url",
        lambda: (_host_of(registry.url),),
        normal(registry.url).startswith("https:"),
        registry.ssl_context,
        sign_in,
    )


def _host_of(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or _HTTP_PORTS.get(parts.scheme, 0)
