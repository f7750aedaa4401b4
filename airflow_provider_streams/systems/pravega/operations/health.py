"""Whether each service of a cluster answers, and accepts us. Nothing is created, and little permission is needed."""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_streams.errors import NotAuthorized, StreamsError
from airflow_provider_streams.systems.pravega.client.controller import segment_calls, stream_calls
from airflow_provider_streams.systems.pravega.client.rest_api import get
from airflow_provider_streams.systems.pravega.client.segment_store_connection import Connection
from airflow_provider_streams.systems.pravega.client.stream_client import Client
from airflow_provider_streams.systems.pravega.schema_registry.client import RegistryClient
from airflow_provider_streams.systems.pravega.schema_registry.endpoint import RegistryEndpoint
from airflow_provider_streams.systems.pravega.schema_registry.requests import groups

UP = "up"
NOT_ASKED = "not asked: this user may look at no stream of the connection's scope"

_SYSTEM = "_system"


def health(client: Client) -> dict[str, str | StreamsError]:
    """Each service that the endpoint names: `up`, why it was not asked, or the error it met."""
    endpoint, scope = client.endpoint, client.endpoint.scope or _SYSTEM
    found = {
        "controller": _answer(lambda: client.call(stream_calls.scope_exists(scope))),
        "segment store": _answer(lambda: _connect(client, scope), NOT_ASKED),
    }
    if endpoint.rest_url:
        found["REST API"] = _answer(lambda: get(endpoint, "look at the health", "health"))
    if registry := endpoint.registry:
        found["schema registry"] = _answer(lambda: _ask_registry(registry, scope))
    return found


def _answer(probe: Callable[[], object], not_granted: str = UP) -> str | StreamsError:
    """A service that knows us is up, even if it grants other things."""
    try:
        probe()
    except NotAuthorized:
        return not_granted
    except StreamsError as error:
        return error
    return UP


def _connect(client: Client, scope: str) -> None:
    # any name does: the controller says which store would serve it
    Connection(client.endpoint, client.call(segment_calls.store_of(f"{scope}/health", 0))).close()


def _ask_registry(registry: RegistryEndpoint, namespace: str) -> None:
    with RegistryClient(registry) as client:
        client(groups(namespace))
