"""Connections to a segment store, blocking and asynchronous, over the codec of `wire_protocol.py`."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Callable
from typing import Self

from airflow_provider_streams.errors import ConnectionLost, ProtocolError, StreamsError
from airflow_provider_streams.systems.connection.tls import tls_refusal
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint

Address = tuple[str, int]

_CONNECT_SECONDS = 5.0
_KEEP_ALIVE_SECONDS = 10.0
_HEADER = wire_protocol.HEADER.size


class Connection:
    """One socket. Not for several threads."""

    def __init__(self, endpoint: Endpoint, address: Address) -> None:
        self.address = address
        self._header = memoryview(bytearray(_HEADER))
        self._socket = _connected(endpoint, address)
        try:
            self.send(wire_protocol.Hello())
            check_hello(self.receive(endpoint.request_timeout_seconds), address)
        except BaseException:
            self.close()
            raise

    def send(self, *messages: wire_protocol.Message) -> None:
        """Send messages as one write; `ConnectionLost` if the connection broke."""
        try:
            self._socket.sendall(b"".join(map(wire_protocol.encode, messages)))
        except OSError as error:
            raise ConnectionLost(_name(self.address), _reason(error)) from error

    def receive(self, seconds: float, allocate: Callable[[int], memoryview] | None = None) -> wire_protocol.Message:
        """The next known message; keeps an idle connection alive meanwhile.

        Args:
            seconds: how long to wait at most.
            allocate: gives the memory for so many bytes of payload; data stays in it, uncopied.

        Raises:
            ConnectionLost: the connection broke, or nothing came for `seconds`.
            CorruptFrame: bytes that are no frame.
        """
        deadline = time.monotonic() + seconds
        while True:
            self._fill(self._header, deadline)
            kind, length = wire_protocol.frame_size(self._header)
            payload = allocate(length) if allocate else memoryview(bytearray(length))
            self._fill(payload, deadline)
            message = wire_protocol.decode(kind, payload)
            if message is not None and not isinstance(message, wire_protocol.KeepAlive):
                return message

    def _fill(self, target: memoryview, deadline: float) -> None:
        filled, size = 0, len(target)
        while filled < size:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ConnectionLost(_name(self.address), "nothing came in time")
            try:
                got = self._receive_into(target[filled:], min(left, _KEEP_ALIVE_SECONDS))
            except (TimeoutError, BlockingIOError):
                if time.monotonic() < deadline:
                    self.send(wire_protocol.KeepAlive())
                continue
            except OSError as error:
                raise ConnectionLost(_name(self.address), _reason(error)) from error
            if not got:
                raise ConnectionLost(_name(self.address), "it closed the connection")
            filled += got

    def _receive_into(self, target: memoryview, seconds: float) -> int:
        if isinstance(self._socket, ssl.SSLSocket):
            self._socket.settimeout(seconds)
            return self._socket.recv_into(target)
        # the kernel fills the whole target before it returns: a busy interpreter would delay each piece
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(seconds))
        return self._socket.recv_into(target, 0, socket.MSG_WAITALL)

    def abort(self) -> None:
        """Make another thread's `receive` fail now."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):
            self._socket.close()


_CONTROLLER = "Pravega's controller"


def _connected(endpoint: Endpoint, address: Address) -> socket.socket:
    endpoint.reach.check(_CONTROLLER, address[0], shown=f"{address[0]}:{address[1]}")
    try:
        plain = socket.create_connection(address, timeout=min(_CONNECT_SECONDS, endpoint.request_timeout_seconds))
    except OSError as error:
        raise ConnectionLost(_name(address), _reason(error)) from error
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if endpoint.tls:
            return endpoint.ssl_context().wrap_socket(plain, server_hostname=address[0])
    except OSError as error:
        plain.close()
        raise _lost(address, error) from error
    plain.settimeout(None)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(endpoint.request_timeout_seconds))
    return plain


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return struct.pack("@ll", whole, max(int((seconds - whole) * 1_000_000), 0 if whole else 1))


class AsyncConnection:
    """A connection for an event loop."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, endpoint: Endpoint, address: Address) -> Self:
        """Connect and greet; `ConnectionLost` if the store cannot be reached."""
        endpoint.reach.check(_CONTROLLER, address[0], shown=f"{address[0]}:{address[1]}")
        context = endpoint.ssl_context() if endpoint.tls else None
        try:
            async with asyncio.timeout(min(_CONNECT_SECONDS, endpoint.request_timeout_seconds)):
                reader, writer = await asyncio.open_connection(*address, ssl=context)
        except OSError as error:  # TimeoutError is one
            raise _lost(address, error) from error
        connection = cls(address, reader, writer)
        try:
            await connection.send(wire_protocol.Hello())
            check_hello(await connection.receive(endpoint.request_timeout_seconds), address)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def send(self, *messages: wire_protocol.Message) -> None:
        """See `Connection.send`."""
        try:
            self._writer.write(b"".join(map(wire_protocol.encode, messages)))
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost(_name(self.address), _reason(error)) from error

    async def receive(self, seconds: float) -> wire_protocol.Message:
        """See `Connection.receive`."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    kind, length = wire_protocol.frame_size(await self._reader.readexactly(_HEADER))
                    message = wire_protocol.decode(kind, memoryview(await self._reader.readexactly(length)))
                    if message is not None and not isinstance(message, wire_protocol.KeepAlive):
                        return message
        except TimeoutError as error:
            raise ConnectionLost(_name(self.address), "nothing came in time") from error
        except (OSError, asyncio.IncompleteReadError) as error:
            raise ConnectionLost(_name(self.address), "it closed the connection") from error

    def abort(self) -> None:
        """Close the socket at once, without a wait that could be cancelled or hang."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close the socket."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def check_hello(message: wire_protocol.Message, address: Address) -> None:
    """Refuse a store that does not speak our versions, with `ProtocolError`."""
    if not isinstance(message, wire_protocol.Hello):
        raise ProtocolError(f"{address[0]}:{address[1]} is no Pravega segment store: it greets with {message!r:.80}")
    if message.low > wire_protocol.VERSION_HIGH or message.high < wire_protocol.VERSION_LOW:
        raise ProtocolError(
            f"the segment store at {address[0]}:{address[1]} speaks versions {message.low} to {message.high}, "
            f"this package {wire_protocol.VERSION_LOW} to {wire_protocol.VERSION_HIGH}"
        )


def _lost(address: Address, error: OSError) -> StreamsError:
    refusal = tls_refusal(f"the segment store at {address[0]}:{address[1]}", error)
    return refusal or ConnectionLost(_name(address), _reason(error))


def _name(address: Address) -> str:
    return f"Pravega's segment store at {address[0]}:{address[1]}"


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
