"""The two edges of a REST service, blocking and asynchronous. All decisions are in `exchange`."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar
from urllib.parse import urlsplit

import httpx

from airflow_provider_streams.errors import ProtocolError
from airflow_provider_streams.systems.connection.backoff import Backoff, Pause
from airflow_provider_streams.systems.connection.tls import tls_refusal
from airflow_provider_streams.systems.io_free_rules import Rule, arun, run, together
from airflow_provider_streams.systems.rest.exchange import Outcome, Route, Send, Step, Unreachable, exchange
from airflow_provider_streams.systems.rest.request import Request
from airflow_provider_streams.systems.rest.response import Answer
from airflow_provider_streams.systems.rest.server_date import ServerClock

T = TypeVar("T")

CONCURRENCY = 16
"""How many calls one asynchronous client has under way."""
LONGEST_ANSWER = 64 * 1024 * 1024
"""Bytes of the longest answer that is taken."""
_SMALL = 64 * 1024
"""Reading so many bytes costs less than a new connection."""


class Service(Protocol):
    """Where a service is and who we are there: what a system's endpoint says of it."""

    @property
    def request_timeout_seconds(self) -> float:
        """How long one call may take."""

    def route(self) -> Route:
        """Where calls go.

        Raises:
            InvalidRequest: its address is not given.
        """

    def headers(self) -> Mapping[str, str]:
        """Our credentials, resolved now; secret."""

    def ssl_context(self) -> ssl.SSLContext:
        """For an https address."""


S = TypeVar("S", bound=Service)


H = TypeVar("H", httpx.Client, httpx.AsyncClient)


def _settings(endpoint: Service, scheme: str) -> dict[str, Any]:
    return {
        "timeout": httpx.Timeout(endpoint.request_timeout_seconds),
        # redirects are followed by hand: the library drops or sends credentials by another rule than ours
        "follow_redirects": False,
        # a certificate context takes tens of milliseconds to build
        "verify": endpoint.ssl_context() if scheme == "https" else False,
        "limits": httpx.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY),
    }


def _content(send: Send) -> dict[str, Any]:
    return {
        "method": send.method,
        "url": send.url,
        "params": send.params or None,
        "headers": send.headers,
        "content": send.body,
        **({"timeout": send.seconds} if send.seconds is not None else {}),
    }


class _Body:
    """The part of an answer that is read."""

    def __init__(self, send: Send, response: httpx.Response) -> None:
        unwanted = send.headers_only and response.is_success
        # an answer that is not read to its end costs its connection: small ones are read all the same
        self.is_wanted = not unwanted or int(response.headers.get("Content-Length", _SMALL + 1)) <= _SMALL
        self._response, self._action = response, f"{send.method} {response.request.url.path}"
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        """Take the next part.

        Raises:
            ProtocolError: it is more than any answer should have.
        """
        self._parts.append(part)
        self._size += len(part)
        if self._size > LONGEST_ANSWER:
            raise ProtocolError(f"the answer to {self._action} has more than {LONGEST_ANSWER} bytes")

    @property
    def answer(self) -> Answer:
        """The whole answer."""
        headers = {name.lower(): value for name, value in self._response.headers.items()}
        return Answer(self._response.status_code, headers, b"".join(self._parts))


def _unreachable(error: httpx.InvalidURL | httpx.TransportError, where: str) -> Unreachable:
    if isinstance(error, httpx.InvalidURL):
        raise ProtocolError(f"{where} leads to something that is no address") from error
    if refusal := tls_refusal(where, error):
        raise refusal from error
    # connecting failed: nothing was sent
    sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    return Unreachable(f"{type(error).__name__}: {_reason(error)}".rstrip(": "), sent)


def _reason(error: BaseException) -> str:
    """What the machine or TLS says, or else the library: its two edges differ, and one of them may say nothing."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError | socket.gaierror):
            return str(cause)
        if isinstance(cause, OSError) and cause.errno:
            return f"[Errno {cause.errno}] {os.strerror(cause.errno)}"
        cause = cause.__cause__ or cause.__context__
    return str(error)


class _Edge(Generic[S, H]):
    """What the two edges share: whom they call, with which identity, and how often."""

    def __init__(self, endpoint: S, backoff: Backoff | None, opened: Callable[..., H]) -> None:
        self.endpoint = endpoint
        self._route, self._backoff = endpoint.route(), backoff or Backoff()
        self._opened: Callable[..., H] = opened
        self._clients: dict[str, H] = {}
        self._client(self._route.base)

    def _client(self, url: str) -> H:
        """The client of an address; an address without TLS may redirect to one with it."""
        scheme = urlsplit(url).scheme
        if scheme not in self._clients:
            self._clients[scheme] = self._opened(**_settings(self.endpoint, scheme))
        return self._clients[scheme]

    def _exchange(self, request: Request[T]) -> Rule[Step, T]:
        return exchange(request, self._route, self.endpoint.headers(), self._backoff)


class RestClient(_Edge[S, httpx.Client]):
    """Calls a service and waits. Connects when first used.

    Args:
        endpoint: the service.
        transport: another way to send, for tests.
        backoff: how transient failures are repeated.

    Raises:
        InvalidRequest: the endpoint has no address of it.
    """

    def __init__(
        self, endpoint: S, *, transport: httpx.BaseTransport | None = None, backoff: Backoff | None = None
    ) -> None:
        super().__init__(endpoint, backoff, partial(httpx.Client, transport=transport))

    def __call__(self, request: Request[T]) -> T:
        """The result of a call.

        Raises:
            AccessError, SystemUnavailable, ProtocolError: as `exchange`.
        """
        return run(self._exchange(request), self._do)

    def _do(self, step: Step) -> Outcome:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            with self._client(step.url).stream(**_content(step)) as response:
                body = _Body(step, response)
                for part in response.iter_bytes() if body.is_wanted else ():
                    body.add(part)
                return body.answer
        except (httpx.InvalidURL, httpx.TransportError) as error:
            return _unreachable(error, self._route.where)

    def close(self) -> None:
        """Close its connections."""
        for client in self._clients.values():
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncRestClient(_Edge[S, httpx.AsyncClient]):
    """The same for one event loop, at most `CONCURRENCY` calls at a time."""

    def __init__(
        self, endpoint: S, *, transport: httpx.AsyncBaseTransport | None = None, backoff: Backoff | None = None
    ) -> None:
        super().__init__(endpoint, backoff, partial(httpx.AsyncClient, transport=transport))
        self.clock = ServerClock()
        self._places = asyncio.Semaphore(CONCURRENCY)

    async def __call__(self, request: Request[T]) -> T:
        """As `RestClient`."""
        return await arun(self._exchange(request), self._do)

    async def all(self, requests: Iterable[Request[T]]) -> list[T]:
        """The results of several calls, in their order; the first failure ends the others."""
        return await together(self(request) for request in requests)

    async def _do(self, step: Step) -> Outcome:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        async with self._places:
            asked = time.monotonic()
            try:
                async with self._client(step.url).stream(**_content(step)) as response:
                    self.clock.hear(response.headers.get("Date"), asked)
                    body = _Body(step, response)
                    if body.is_wanted:
                        async for part in response.aiter_bytes():
                            body.add(part)
                    return body.answer
            except (httpx.InvalidURL, httpx.TransportError) as error:
                return _unreachable(error, self._route.where)

    async def close(self) -> None:
        """Close its connections."""
        for client in self._clients.values():
            await client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
