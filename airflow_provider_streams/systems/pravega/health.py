"""Whether each service of a cluster answers, and accepts us. Nothing is created, and little permission is needed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from airflow_provider_streams.errors import AuthenticationFailed, NotAuthorized, StreamsError, SystemUnavailable
from airflow_provider_streams.systems.pravega import calls
from airflow_provider_streams.systems.pravega.client import Client
from airflow_provider_streams.systems.pravega.connection import Connection
from airflow_provider_streams.systems.pravega.credentials import Credentials
from airflow_provider_streams.systems.pravega.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.registry.endpoint import RegistryEndpoint
from airflow_provider_streams.systems.tls import tls_refusal

UP = "up"
NOT_ASKED = "not asked: this user may look at no stream of the connection's scope"

_SYSTEM = "_system"
_OK, _REFUSED, _FORBIDDEN = 200, 401, 403


def health(client: Client) -> dict[str, str | StreamsError]:
    """Each service that the endpoint names: `up`, why it was not asked, or the error it met."""
    probes: dict[str, Callable[[], str]] = {
        "controller": partial(_controller, client),
        "segment store": partial(_segment_store, client),
    }
    endpoint = client.endpoint
    if endpoint.rest_url:
        url = f"{endpoint.rest_url.rstrip('/').removesuffix('/v1')}/v1/health"
        probes["REST API"] = partial(_http, endpoint, url)
    if registry := endpoint.registry:
        probes["schema registry"] = partial(_registry, registry, endpoint.scope or _SYSTEM)
    return {service: _answer(probe) for service, probe in probes.items()}


def _answer(probe: Callable[[], str]) -> str | StreamsError:
    try:
        return probe()
    except StreamsError as error:
        return error


def _controller(client: Client) -> str:
    with contextlib.suppress(NotAuthorized):  # it knows us, and grants other things
        client.call(calls.scope_exists(client.endpoint.scope or _SYSTEM))
    return UP


def _segment_store(client: Client) -> str:
    try:
        # any name does: the controller says which store would serve it
        address = client.call(calls.store_of(f"{client.endpoint.scope or _SYSTEM}/health", 0))
    except NotAuthorized:
        return NOT_ASKED
    Connection(client.endpoint, address).close()
    return UP


def _registry(registry: RegistryEndpoint, namespace: str) -> str:
    from airflow_provider_streams.systems.pravega.registry.client import RegistryClient  # noqa: PLC0415 - httpx
    from airflow_provider_streams.systems.pravega.registry.requests import groups  # noqa: PLC0415

    with RegistryClient(registry) as client, contextlib.suppress(NotAuthorized):  # it knows us, and grants other things
        client(groups(namespace))
    return UP


def _http(endpoint: Endpoint, url: str) -> str:
    import httpx  # noqa: PLC0415 - only where such a service is named

    header = Credentials(endpoint).header()
    verify = endpoint.ssl_context() if url.startswith("https://") else True
    try:
        with httpx.Client(timeout=endpoint.request_timeout_seconds, verify=verify) as http:
            answer = http.get(url, headers={"Authorization": header} if header else {})
    except httpx.TransportError as error:
        raise tls_refusal(url, error) or SystemUnavailable(url, type(error).__name__) from error
    if answer.status_code == _REFUSED:
        raise AuthenticationFailed(url)
    if answer.status_code not in (_OK, _FORBIDDEN):
        raise SystemUnavailable(url, f"HTTP {answer.status_code}")
    return UP
