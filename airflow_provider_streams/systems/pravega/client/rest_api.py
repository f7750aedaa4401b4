"""Questions to the controllers' REST API."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from airflow_provider_streams.errors import AuthenticationFailed, NotAuthorized, SourceNotFound, SystemUnavailable
from airflow_provider_streams.systems.connection.address import normal
from airflow_provider_streams.systems.connection.tls import tls_refusal
from airflow_provider_streams.systems.pravega.client.credentials import Credentials
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint


def get(endpoint: Endpoint, action: str, path: str, query: Mapping[str, int] | None = None, subject: str = "") -> bytes:
    """The answer to one GET below `/v1`; `subject` is what a 404 is about.

    Raises:
        SourceNotFound, AuthenticationFailed, NotAuthorized, SystemUnavailable: as the server says.
    """
    return _get(endpoint, action, path, query, subject).content


def server_date(endpoint: Endpoint) -> str:
    """The time by the server's clock, as HTTP says it; empty: it does not. Raises as `get`."""
    date: str = _get(endpoint, "ask for the time", "health", None, "").headers.get("date", "")
    return date


def _get(endpoint: Endpoint, action: str, path: str, query: Mapping[str, int] | None, subject: str) -> httpx.Response:
    base = endpoint.rest_url.rstrip("/").removesuffix("/v1")
    header = Credentials(endpoint).header()
    # as in `rest.client`: certificates take long to load, and redirects are not followed
    verify = endpoint.ssl_context() if normal(base).startswith("https:") else False
    try:
        with httpx.Client(timeout=endpoint.request_timeout_seconds, verify=verify) as http:
            headers = {"Authorization": header} if header else {}
            answer = http.get(f"{base}/v1/{path}", params=query, headers=headers)
    except httpx.TransportError as error:
        raise tls_refusal(base, error) or SystemUnavailable(base, type(error).__name__) from error
    match answer.status_code:
        case 200:
            return answer
        case 401:
            raise AuthenticationFailed(base)
        case 403:
            raise NotAuthorized(base, action)
        case 404 if subject:
            raise SourceNotFound(subject, base)
    raise SystemUnavailable(base, f"HTTP {answer.status_code}")
