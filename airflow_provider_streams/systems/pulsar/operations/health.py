"""Whether a cluster's brokers answer, and accept us. Nothing is created."""

from __future__ import annotations

from airflow_provider_streams.errors import SystemUnavailable, as_clause
from airflow_provider_streams.systems.pulsar.client.endpoint import Address, Endpoint


def check_any_broker(endpoint: Endpoint) -> Address:
    """The first broker of an endpoint that accepts a connection and our credentials; it is closed again.

    Raises:
        AuthenticationFailed: the credentials are refused.
        SystemUnavailable: none of the brokers answers.
    """
    from airflow_provider_streams.systems.pulsar.client.wire.connection import Connection  # noqa: PLC0415 - loads Arrow

    silent: list[str] = []
    for address in endpoint.addresses:
        try:
            Connection(address, endpoint).close()
        except SystemUnavailable as error:
            silent.append(f"{error.where}: {as_clause(error.detail)}")
        else:
            return address
    raise SystemUnavailable(endpoint.service_url, "; ".join(silent))
