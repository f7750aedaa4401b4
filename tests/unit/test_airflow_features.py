"""What older versions of Airflow are asked in another way."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import msgspec
import pytest
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import CommsDecoder
from asgiref.sync import async_to_sync

from airflow_provider_streams.airflow_features import aextra_dejson
from airflow_provider_streams.hooks.pulsar import PulsarHook


async def test_an_older_triggerer_is_asked_from_its_own_loop():
    """Another loop that reads the supervisor's answers would take those of others."""
    loops = []

    async def ask():
        loops.append(asyncio.get_running_loop())
        return {"admin_url": "http://pulsar:8080"}

    class Connection:
        @property
        def extra_dejson(self):
            return async_to_sync(ask)()

    assert await aextra_dejson(Connection()) == {"admin_url": "http://pulsar:8080"}
    assert loops == [asyncio.get_running_loop()]


@pytest.fixture
def supervisor(monkeypatch) -> Iterator[None]:
    """A task's supervisor: of the requests that come together, it answers the last one first."""
    task, ours = socket.socketpair()
    answering = threading.Thread(target=_answer, args=(ours,), daemon=True)
    answering.start()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", CommsDecoder(socket=task), raising=False)
    with closing(ours):
        yield
        task.shutdown(socket.SHUT_WR)
        answering.join(600)
        task.close()


def _answer(end: socket.socket) -> None:
    while requests := _requests(end):
        for number, body, *_ in reversed(requests):
            found = None
            if body["type"] == "GetConnection":
                name, empty = body["conn_id"], dict.fromkeys(("schema", "login", "password", "port", "extra"))
                found = {"type": "ConnectionResult", "conn_id": name, "conn_type": "pulsar", **empty}
                found["host"] = f"{name}.example"
            frame = msgspec.msgpack.encode((number, found, None))
            end.sendall(len(frame).to_bytes(4, "big"))
            end.sendall(frame)


def _requests(end: socket.socket) -> list[list]:
    """Those that are there once no other has come for a while; none: the task's end is closed."""
    found = []
    while not found or select.select([end], [], [], 0.05)[0]:
        size = end.recv(4, socket.MSG_WAITALL)
        if not size:
            break
        found.append(msgspec.msgpack.decode(end.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)))
    return found


@pytest.mark.usefixtures("supervisor")
def test_each_of_many_threads_gets_its_own_connection():
    """Airflow 3.1 gives a thread whichever answer comes first, or parts of two."""
    hosts = {}

    def ask(name: str) -> None:
        hosts[name] = PulsarHook(name).options()["service_url"]

    threads = [threading.Thread(target=ask, args=(f"pulsar{n}",), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert hosts == {f"pulsar{n}": f"pulsar://pulsar{n}.example" for n in range(6)}
