"""The two edges of the admin API, blocking and asynchronous."""

from __future__ import annotations

from airflow_provider_streams.systems.pulsar.endpoint import Endpoint
from airflow_provider_streams.systems.rest.client import CONCURRENCY, AsyncRestClient, RestClient

__all__ = ["CONCURRENCY", "AdminClient", "AsyncAdminClient"]


class AdminClient(RestClient[Endpoint]):
    """Calls the admin API and waits."""


class AsyncAdminClient(AsyncRestClient[Endpoint]):
    """The same for one event loop."""
