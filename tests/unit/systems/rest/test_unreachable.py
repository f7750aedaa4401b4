"""Why a service cannot be reached: both edges say the same."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from airflow_provider_streams.errors import SystemUnavailable
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient, AsyncAdminClient
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint

ONCE = Backoff(attempts=1)


def end(connection: socket.socket) -> None:
    connection.recv(4096)


def reset(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def speak_plainly(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def refuse_the_handshake(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"\x15\x03\x01\x00\x02\x02\x28")


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with closing(connection):
                    answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


async def said(address: str) -> tuple[str, str]:
    endpoint = Endpoint("pulsar://127.0.0.1:1", admin_url=address)
    with AdminClient(endpoint, backoff=ONCE) as blocking, pytest.raises(SystemUnavailable) as first:
        blocking(requests.brokers_version())
    async with AsyncAdminClient(endpoint, backoff=ONCE) as client:
        with pytest.raises(SystemUnavailable) as second:
            await client(requests.brokers_version())
    return str(first.value), str(second.value)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (end, "UNEXPECTED_EOF_WHILE_READING"),
        (reset, "Connection reset by peer"),
        (speak_plainly, "WRONG_VERSION_NUMBER"),
        (refuse_the_handshake, "HANDSHAKE_FAILURE"),
    ],
)
async def test_an_event_loop_names_what_fails_in_tls_as_a_blocking_call_does(
    answer: Callable[[socket.socket], None], reason: str
) -> None:
    with server(answer) as port:
        blocking, in_loop = await said(f"https://127.0.0.1:{port}")
    assert reason in blocking
    assert in_loop == blocking


async def test_a_refused_connection_is_named_alike() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    blocking, in_loop = await said(f"http://127.0.0.1:{port}")
    assert "Connection refused" in blocking
    assert in_loop == blocking
