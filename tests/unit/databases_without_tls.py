"""Servers on loopback that take the part of databases without TLS, and record what they hear."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

ASKS_FOR_TLS = b"\x04\xd2\x16\x2f"
_ASKS_FOR_PASSWORD = b"R\0\0\0\x08\0\0\0\x03"
_GREETING = b"".join(
    (
        b"\x0a8.0.0\0\1\0\0\0abcdefgh\0",
        (0xF7FF).to_bytes(2, "little"),  # what it can do; TLS would be 0x0800
        b"\x21\2\0",
        (0x000C).to_bytes(2, "little"),
        b"\x15" + bytes(10) + b"ijklmnopqrst\0mysql_native_password\0",
    )
)


@dataclass
class Database:
    """What it heard, and where it is."""

    port: int
    heard: list[bytes] = field(default_factory=list)


def postgres(client: socket.socket, heard: list[bytes]) -> None:
    """Says no to TLS, and asks for the password in clear."""
    while (said := client.recv(4096)).endswith(ASKS_FOR_TLS):
        client.sendall(b"N")
    heard.append(said)
    if said:
        client.sendall(_ASKS_FOR_PASSWORD)
        heard.append(client.recv(4096))


def repeating(client: socket.socket, heard: list[bytes]) -> None:
    """As `postgres`, and repeats the password."""
    postgres(client, heard)
    said = b"SFATAL\0C28P01\0Myou said " + heard[-1][5:].rstrip(b"\0") + b"\0\0"
    client.sendall(b"E" + (len(said) + 4).to_bytes(4, "big") + said)


def mysql(client: socket.socket, heard: list[bytes]) -> None:
    """Greets without a word of TLS."""
    client.sendall(len(_GREETING).to_bytes(3, "little") + b"\0" + _GREETING)
    heard.append(client.recv(4096))


@contextmanager
def serving(answer: Callable[[socket.socket, list[bytes]], None]) -> Iterator[Database]:
    """A database on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        database = Database(server.getsockname()[1])
        running = threading.Thread(target=_serve, args=(server, answer, database.heard))
        running.start()
        try:
            yield database
        finally:
            server.shutdown(socket.SHUT_RDWR)
            running.join()


def _serve(server: socket.socket, answer: Callable[[socket.socket, list[bytes]], None], heard: list[bytes]) -> None:
    with suppress(OSError):
        while True:
            client, _ = server.accept()
            with client, suppress(ConnectionError):
                answer(client, heard)
