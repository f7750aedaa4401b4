"""The two edges to a controller: blocking and asynchronous. They send the calls of this folder."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    CertificateNotTrusted,
    InvalidRequest,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
    UnknownServerError,
)
from airflow_provider_streams.model.optional_dependencies import importing
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.systems import io_free_rules
from airflow_provider_streams.systems.connection.tls import tls_refusal
from airflow_provider_streams.systems.io_free_rules import Rule
from airflow_provider_streams.systems.pravega.client.credentials import Credentials
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint

with importing("pravega"):
    import grpc
    from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pravega.client.controller.call import Call

T = TypeVar("T")
C = TypeVar("C")
_Metadata = tuple[tuple[str, str | bytes], ...]
_Tls = tuple[grpc.ChannelCredentials, list[tuple[str, str]]]
Address = tuple[str, int]

_SERVICE = "/io.pravega.controller.stream.api.grpc.v1.ControllerService/"
_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    # connections of its own: other channels of the process may hold other credentials
    ("grpc.use_local_subchannel_pool", 1),
    # a restarted controller is found within a second, not after minutes of backoff
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 10_000),  # how long one attempt may take
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
_PASSING = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
_MISSING_SCOPE = re.compile(r"get entry: key: \S+ table: _system/_tables/scopes\b")
_MISSING_EPOCH = re.compile(r"get entry: key: epochRecord-(\d{1,10}) table: ")


class _Edge(Generic[C]):
    """What both edges share. They open a channel at the first call, so they may be built before a fork."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._credentials = Credentials(endpoint)
        self._channels: dict[Address, C] = {}
        self._first = 0
        """The index of the last controller that answered: it is asked first."""

    def _attempts(self, call: Call[T]) -> Rule[Address, T]:
        controllers, first = self._endpoint.controllers, self._first
        failures: list[SystemUnavailable] = []
        for turn in range(len(controllers) if call.repeatable else 1):
            number = (first + turn) % len(controllers)
            try:
                answer = yield controllers[number]
            except grpc.RpcError as error:
                failure = _typed(error, controllers[number], call)
                if not isinstance(failure, SystemUnavailable):
                    raise failure from error
                failures.append(failure)
            else:
                self._first = number
                return value_of(call, answer)
        raise failures[-1]


class Controller(_Edge[grpc.Channel]):
    """The blocking edge."""

    def call(self, call: Call[T]) -> T:
        """Send a call; if it may be repeated, to each controller in turn until one answers.

        Raises:
            AccessError: the controller refuses us, or the call's subject does not exist.
            InvalidRequest: the call cannot be done.
            SystemUnavailable: no controller answered in `request_timeout_seconds`.
            ProtocolError: an answer without sense.
        """
        metadata = _metadata(self._credentials.header())
        return io_free_rules.run(self._attempts(call), lambda address: self._send(address, call, metadata))

    def _send(self, address: Address, call: Call[T], metadata: _Metadata) -> bytes:
        channel = self._channels.get(address)
        if channel is None:
            tls = _tls(self._endpoint, address) if self._endpoint.tls else None
            opened: grpc.Channel = _open(grpc, address, tls)
            channel = self._channels.setdefault(address, opened)
            if channel is not opened:  # another thread was first
                opened.close()
        answer: bytes = _sender(channel, call)(
            call.message, timeout=self._endpoint.request_timeout_seconds, metadata=metadata
        )
        return answer

    def close(self) -> None:
        """Close every channel; a later call opens them again."""
        while self._channels:
            self._channels.popitem()[1].close()


class AsyncController(_Edge[grpc.aio.Channel]):
    """The asynchronous edge: same calls, same errors. Belongs to one event loop."""

    async def call(self, call: Call[T]) -> T:
        """See `Controller.call`."""
        blocks = self._credentials.blocks
        header = await asyncio.to_thread(self._credentials.header) if blocks else self._credentials.header()
        metadata = _metadata(header)
        return await io_free_rules.arun(self._attempts(call), lambda address: self._send(address, call, metadata))

    async def _send(self, address: Address, call: Call[T], metadata: _Metadata) -> bytes:
        channel = self._channels.get(address)
        if channel is None:
            tls = await asyncio.to_thread(_tls, self._endpoint, address) if self._endpoint.tls else None
            opened: grpc.aio.Channel = _open(grpc.aio, address, tls)
            channel = self._channels.setdefault(address, opened)
            if channel is not opened:  # another task was first
                await opened.close()
        answer: bytes = await _sender(channel, call)(
            call.message, timeout=self._endpoint.request_timeout_seconds, metadata=metadata
        )
        return answer

    async def close(self) -> None:
        """Close every channel."""
        while self._channels:
            await self._channels.popitem()[1].close()


def _open(api: Any, address: Address, tls: _Tls | None) -> Any:
    """A channel of `grpc` or `grpc.aio`."""
    if tls is None:
        return api.insecure_channel(_target(address), _OPTIONS)
    credentials, name = tls
    return api.secure_channel(_target(address), credentials, (*_OPTIONS, *name))


def _sender(channel: Any, call: Call[Any]) -> Any:
    return channel.unary_unary(_SERVICE + call.method, type(call.message).SerializeToString)


def value_of(call: Call[T], answer: bytes) -> T:
    """The value of an answer, or its error. gRPC's own parser would return nothing for bad bytes, and log a stack."""
    try:
        message = call.answer.FromString(answer)
    except DecodeError as error:
        raise ProtocolError(
            f"the controller answers {call.method} of {call.about} with bytes that mean nothing"
        ) from error
    return call.parse(message)


def _target(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _metadata(header: str | None) -> _Metadata:
    return (("authorization", header),) if header else ()


def _tls(endpoint: Endpoint, address: Address) -> _Tls:
    """Channel credentials; without the check of host names also the name in the certificate."""
    import socket  # noqa: PLC0415 - only with TLS
    from pathlib import Path  # noqa: PLC0415

    roots = Path(endpoint.tls_ca_file).read_bytes() if endpoint.tls_ca_file else None
    credentials = grpc.ssl_channel_credentials(root_certificates=roots)
    if endpoint.tls_verify_hostname:
        return credentials, []
    # gRPC cannot skip the check: read the (verified) certificate first, then expect its own name
    try:
        with (
            socket.create_connection(address, timeout=endpoint.request_timeout_seconds) as plain,
            endpoint.ssl_context().wrap_socket(plain) as secure,
        ):
            certificate: Mapping[str, Any] = secure.getpeercert() or {}
    except OSError as error:
        where = _target(address)
        raise tls_refusal(where, error) or SystemUnavailable(where, type(error).__name__) from error
    names = [str(value) for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    common = [str(value) for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return credentials, [("grpc.ssl_target_name_override", name) for name in [*names, *common][:1]]


def _typed(error: grpc.RpcError, address: Address, call: Call[Any]) -> StreamsError:
    """A failed call as one of our errors, without server texts that show internals."""
    code, details = error.code(), error.details() or ""
    where = f"Pravega's controller at {_target(address)}"
    if code is grpc.StatusCode.UNAVAILABLE and (why := _DISTRUST.search(details)):
        return CertificateNotTrusted(where, why[0])
    if code in _PASSING:
        waited = "no answer in time" if code is grpc.StatusCode.DEADLINE_EXCEEDED else _short(details)
        return SystemUnavailable(where, f"{call.method}: {waited}")
    refused: dict[grpc.StatusCode, StreamsError] = {
        grpc.StatusCode.NOT_FOUND: _not_found(call.about, details, where),
        grpc.StatusCode.UNAUTHENTICATED: AuthenticationFailed(where),
        grpc.StatusCode.PERMISSION_DENIED: NotAuthorized(where, f"{call.method} of {call.about}"),
        grpc.StatusCode.UNIMPLEMENTED: ProtocolError(f"{where} knows no {call.method}: is it a Pravega controller?"),
    }
    if code in refused:
        return refused[code]
    if code is grpc.StatusCode.INVALID_ARGUMENT or details.startswith(_REFUSALS):
        return InvalidRequest(f"{call.about}: the controller refuses {call.method}: {_short(details)}")
    return UnknownServerError(where, f"{call.method} of {call.about} failed: {code.name} {_short(details)}".rstrip())


_DISTRUST = re.compile(r"CERTIFICATE_VERIFY_FAILED[^.]*|Hostname Verification Check failed")
"""gRPC reports a server that it does not trust as unavailable, with one of these texts."""

_REFUSALS = ("lease ", "Stream: ")
"""Texts that begin like this are refusals, although servers send them as failures."""


def _not_found(about: str, details: str, where: str) -> StreamsError:
    """The table that the server searched tells what is missing: a scope, a stream, or an epoch."""
    if epoch := _MISSING_EPOCH.search(details):
        return InvalidRequest(
            f"{about} has no epoch {epoch[1]} at {where}: segments of it belong to another stream of this name, or to "
            "another cluster"
        )
    return SourceNotFound(f"scope {about.partition('/')[0]}" if _MISSING_SCOPE.search(details) else about, where)


def _short(details: str) -> str:
    return redact(details.splitlines()[0])[:200] if details else "no reason given"
