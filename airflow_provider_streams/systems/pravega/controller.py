"""The two edges to a controller: blocking and asynchronous. What they send is data (`calls.py`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    CertificateNotTrusted,
    InvalidRequest,
    MissingDependency,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
    UnclearAnswer,
)
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.systems.pravega.credentials import Credentials
from airflow_provider_streams.systems.pravega.endpoint import Endpoint
from airflow_provider_streams.systems.tls import tls_refusal

try:
    import grpc
    from google.protobuf.message import DecodeError
except ImportError as missing:
    raise MissingDependency("grpc", "pravega") from missing

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pravega.calls import Call

T = TypeVar("T")
_Metadata = tuple[tuple[str, str | bytes], ...]

_SERVICE = "/io.pravega.controller.stream.api.grpc.v1.ControllerService/"
_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    # its own connections: a channel of another part of the process may hold other credentials
    ("grpc.use_local_subchannel_pool", 1),
    # a restarted controller is found within a second, not after minutes of backoff
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 10_000),  # how long one attempt may take
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
_PASSING = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
_MISSING_SCOPE = re.compile(r"get entry: key: \S+ table: _system/_tables/scopes\b")
_MISSING_EPOCH = re.compile(r"get entry: key: epochRecord-(\d{1,10}) table: ")


class Controller:
    """The blocking edge. Opens its channel at the first call, so it may be built before a fork."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials | None = None) -> None:
        self._endpoint = endpoint
        self._credentials = credentials or Credentials(endpoint)
        self._channels: dict[tuple[str, int], grpc.Channel] = {}
        self._first = 0

    def call(self, call: Call[T]) -> T:
        """Send a call; when it may be repeated, to each controller in turn until one answers.

        Raises:
            AccessError: the controller refuses us, or what we speak of does not exist.
            InvalidRequest: what was asked cannot be done.
            SystemUnavailable: no controller answered in `request_timeout_seconds`.
            ProtocolError: an answer that says nothing.
        """
        failures: list[SystemUnavailable] = []
        metadata = _metadata(self._credentials.header())
        for number, address in _turns(self._endpoint, self._first, call):
            try:
                answer = self._send(address, call, metadata)
            except grpc.RpcError as error:
                failures.append(_passing(_typed(error, address, call)))
            else:
                self._first = number
                return value_of(call, answer)
        raise failures[-1]

    def _send(self, address: tuple[str, int], call: Call[T], metadata: _Metadata) -> bytes:
        channel = self._channels.get(address)
        if channel is None:
            options = [*_OPTIONS]
            if self._endpoint.tls:
                credentials, name = _tls(self._endpoint, address)
                channel = grpc.secure_channel(_target(address), credentials, [*options, *name])
            else:
                channel = grpc.insecure_channel(_target(address), options)
            channel = self._keep(address, channel)
        send: Any = channel.unary_unary(_SERVICE + call.method, type(call.message).SerializeToString)
        answer: bytes = send(call.message, timeout=self._endpoint.request_timeout_seconds, metadata=metadata)
        return answer

    def _keep(self, address: tuple[str, int], channel: grpc.Channel) -> grpc.Channel:
        """The channel to an address: of two threads that opened one, the first has it."""
        kept = self._channels.setdefault(address, channel)
        if kept is not channel:
            channel.close()
        return kept

    def close(self) -> None:
        """Close every channel; a later call opens them again."""
        while self._channels:
            self._channels.popitem()[1].close()


class AsyncController:
    """The asynchronous edge: same calls, same errors. Belongs to one event loop."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials | None = None) -> None:
        self._endpoint = endpoint
        self._credentials = credentials or Credentials(endpoint)
        self._channels: dict[tuple[str, int], grpc.aio.Channel] = {}
        self._first = 0

    async def call(self, call: Call[T]) -> T:
        """See `Controller.call`."""
        failures: list[SystemUnavailable] = []
        blocks = self._credentials.blocks
        header = await asyncio.to_thread(self._credentials.header) if blocks else self._credentials.header()
        metadata = _metadata(header)
        for number, address in _turns(self._endpoint, self._first, call):
            try:
                answer = await self._send(address, call, metadata)
            except grpc.RpcError as error:
                failures.append(_passing(_typed(error, address, call)))
            else:
                self._first = number
                return value_of(call, answer)
        raise failures[-1]

    async def _send(self, address: tuple[str, int], call: Call[T], metadata: _Metadata) -> bytes:
        channel = self._channels.get(address)
        if channel is None:
            options = [*_OPTIONS]
            if self._endpoint.tls:
                credentials, name = await asyncio.to_thread(_tls, self._endpoint, address)
                channel = grpc.aio.secure_channel(_target(address), credentials, [*options, *name])
            else:
                channel = grpc.aio.insecure_channel(_target(address), options)
            channel = await self._keep(address, channel)
        send: Any = channel.unary_unary(_SERVICE + call.method, type(call.message).SerializeToString)
        answer: bytes = await send(call.message, timeout=self._endpoint.request_timeout_seconds, metadata=metadata)
        return answer

    async def _keep(self, address: tuple[str, int], channel: grpc.aio.Channel) -> grpc.aio.Channel:
        kept = self._channels.setdefault(address, channel)
        if kept is not channel:
            await channel.close()
        return kept

    async def close(self) -> None:
        """Close every channel."""
        while self._channels:
            await self._channels.popitem()[1].close()


def value_of(call: Call[T], answer: bytes) -> T:
    """What an answer says; gRPC's own way to read it would give nothing where it cannot, and log a stack.

    Raises:
        ProtocolError: bytes or values without sense.
        StreamsError: what the answer's status means.
    """
    try:
        message = call.answer.FromString(answer)
    except DecodeError as error:
        raise ProtocolError(
            f"the controller answers {call.method} of {call.about} with bytes that mean nothing"
        ) from error
    return call.parse(message)


def _turns(endpoint: Endpoint, first: int, call: Call[Any]) -> Iterator[tuple[int, tuple[str, int]]]:
    """The controllers to try, the last one that answered first."""
    count = len(endpoint.controllers)
    for turn in range(count if call.repeatable else 1):
        number = (first + turn) % count
        yield number, endpoint.controllers[number]


def _target(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _metadata(header: str | None) -> _Metadata:
    return (("authorization", header),) if header else ()


def _tls(endpoint: Endpoint, address: tuple[str, int]) -> tuple[grpc.ChannelCredentials, list[tuple[str, str]]]:
    """Channel credentials; without the check of host names also the name that the certificate has."""
    import socket  # noqa: PLC0415 - only with TLS
    from pathlib import Path  # noqa: PLC0415

    roots = Path(endpoint.tls_ca_file).read_bytes() if endpoint.tls_ca_file else None
    credentials = grpc.ssl_channel_credentials(root_certificates=roots)
    if endpoint.tls_verify_hostname:
        return credentials, []
    # gRPC cannot leave the check out: we look at the (verified) certificate first, and expect its own name
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


def _passing(error: StreamsError) -> SystemUnavailable:
    """The error if another controller may answer; else it is raised."""
    if isinstance(error, SystemUnavailable):
        return error
    raise error


def _typed(error: grpc.RpcError, address: tuple[str, int], call: Call[Any]) -> StreamsError:
    """A failed call as one of our errors; server texts that show internals stay out."""
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
    return UnclearAnswer(where, f"{call.method} of {call.about} failed: {code.name} {_short(details)}".rstrip())


_DISTRUST = re.compile(r"CERTIFICATE_VERIFY_FAILED[^.]*|Hostname Verification Check failed")
"""What gRPC says when it does not trust a server, among its reasons for being unavailable."""

_REFUSALS = ("lease ", "Stream: ")
"""How texts begin of refusals that servers send as if they were failures."""


def _not_found(about: str, details: str, where: str) -> StreamsError:
    """What is missing, by the table that was searched: a scope, a stream, or an epoch that a stream never had."""
    if epoch := _MISSING_EPOCH.search(details):
        return InvalidRequest(
            f"{about} has no epoch {epoch[1]} at {where}: segments of it belong to another stream of this name, or to "
            "another cluster"
        )
    return SourceNotFound(f"scope {about.partition('/')[0]}" if _MISSING_SCOPE.search(details) else about, where)


def _short(details: str) -> str:
    return redact(details.splitlines()[0])[:200] if details else "no reason given"
