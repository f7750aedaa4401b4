"""What each client sends first, for every documented spelling: listeners on loopback take the part of the servers."""

from __future__ import annotations

import base64
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from airflow_provider_streams.hooks.iceberg import IcebergHook
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.hooks.schema_registry import SchemaRegistryHook
from tests.unit.connections.spellings import CLEAR, SECRET, Spelling, spellings

HOOKS: dict[str, Any] = {
    "Pulsar": PulsarHook,
    "Pravega": PravegaHook,
    "Schema Registry": SchemaRegistryHook,
    "Iceberg": IcebergHook,
}
CANARY = "canary-7c1f"
TLS = b"\x16\x03"
"""How a handshake begins."""
HOST = re.compile(r'(?<=[/@,"F])(broker|one|two|other|controller|registry|catalog)(?="(?!:)|[:,/@%?]|$)')
FIRST_SECONDS, REST_SECONDS = 10.0, 0.3
"""How long a busy machine may need for the first bytes, and how soon the rest follows."""
ASKED = [one for one in spellings() if not one.address.startswith("thrift") and (one.is_refused or one.ports)]
"""A row without a port leads to the system's own, where no listener is."""


@dataclass
class Listener:
    """A port of both loopback addresses, and what arrives there."""

    heard: list[bytes] = field(default_factory=list)
    port: int = 0

    def __enter__(self) -> Self:
        self._sockets = [socket.create_server(("127.0.0.1", 0))]
        self.port = self._sockets[0].getsockname()[1]
        with suppress(OSError):  # another process may have this port there, or there is no IPv6
            self._sockets.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))
        self._threads = [threading.Thread(target=self._listen, args=(one,)) for one in self._sockets]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join()

    def _listen(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                with client:
                    self.heard.append(everything(client))


def everything(client: socket.socket) -> bytes:
    """What a client sends before it waits for an answer."""
    client.settimeout(FIRST_SECONDS)
    heard = b""
    with suppress(OSError):
        while part := client.recv(65536):
            heard += part
            client.settimeout(REST_SECONDS)
    return heard


@dataclass(frozen=True)
class Attempt:
    """What came of the test of one connection."""

    works: bool
    said: str
    heard: list[bytes]
    """Of each call; empty where the client hung up before it said anything."""

    @property
    def words(self) -> list[bytes]:
        return [heard for heard in self.heard if heard]


@pytest.fixture(scope="module")
def attempts() -> Iterator[dict[Spelling, Attempt]]:
    """All of them at once, as each waits for the network."""
    with pytest.MonkeyPatch.context() as patch:
        for system in HOOKS:
            name = f"STREAMS_{system.upper().replace(' ', '_')}_REQUEST_TIMEOUT_SECONDS"
            patch.setenv(name, "1")
        with ExitStack() as stack:  # no port is given to another spelling meanwhile
            listeners = [{str(port): stack.enter_context(Listener()) for port in one.ports} for one in ASKED]
            for number, one in enumerate(ASKED):
                patch.setenv(f"AIRFLOW_CONN_SPELT_{number}", on_loopback(one, listeners[number]))
            with ThreadPoolExecutor(len(ASKED)) as pool:
                answers = list(pool.map(asked, range(len(ASKED))))
        yield {
            one: Attempt(*answer, [heard for listener in mine.values() for heard in listener.heard])
            for one, answer, mine in zip(ASKED, answers, listeners, strict=True)
        }


def asked(number: int) -> tuple[bool, str]:
    """What the test of one connection says."""
    hook = HOOKS[ASKED[number].system](f"spelt_{number}")
    answer: tuple[bool, str] = hook.test_connection()
    if hasattr(hook, "close"):
        hook.close()
    return answer


def on_loopback(one: Spelling, listeners: dict[str, Listener]) -> str:
    text = HOST.sub("127.0.0.1", one.written).replace(SECRET, CANARY)
    return re.sub(
        r"(?<=[:A ])\d{4}\b", lambda found: str(listeners[found[0]].port) if found[0] in listeners else found[0], text
    )


def hidden(heard: bytes) -> bool:
    """Whether the secret is not in it, in any form in which clients send it."""
    texts = (CANARY, *(base64.b64encode(f"{user}:{CANARY}".encode()).decode() for user in ("user", "id", "")))
    return not any(text.encode() in heard for text in texts)


def ids(one: Spelling) -> str:
    return f"{one.system}: {one.written}"


@pytest.mark.parametrize("one", [one for one in ASKED if one.is_refused], ids=ids)
def test_a_refused_connection_calls_nothing(attempts: dict[Spelling, Attempt], one: Spelling) -> None:
    made = attempts[one]
    assert (made.works, made.heard) == (False, [])
    assert CANARY not in made.said
    assert all(reason in made.said for reason in one.reasons)


@pytest.mark.parametrize("one", [one for one in ASKED if not one.is_refused and one.is_tls], ids=ids)
def test_where_tls_is_written_a_handshake_comes_first(attempts: dict[Spelling, Attempt], one: Spelling) -> None:
    made = attempts[one]
    assert made.words
    assert [heard for heard in made.words if not heard.startswith(TLS) or not hidden(heard)] == []
    assert CANARY not in made.said


@pytest.mark.parametrize("one", [one for one in ASKED if not one.is_refused and not one.is_tls], ids=ids)
def test_where_none_is_written_the_listener_reads_everything(attempts: dict[Spelling, Attempt], one: Spelling) -> None:
    """This shows that the listeners would notice a secret."""
    made = attempts[one]
    assert made.words
    assert not any(heard.startswith(TLS) for heard in made.words)
    if one.system != "Pravega":  # gRPC sends its header after the server's greeting
        assert all(map(hidden, made.words)) != one.outcome.endswith(CLEAR)
    assert CANARY not in made.said
