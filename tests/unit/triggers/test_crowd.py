"""Hundreds of deferred sensors on one event loop, as a triggerer has them."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.conditions import condition_to_json
from airflow_provider_streams.systems.pulsar.operations.conditions import BacklogReached, Terminated
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.triggers.condition import ConditionTrigger
from airflow_provider_streams.triggers.window import WindowReadyTrigger
from airflow_provider_streams.windows.plan.readiness import WindowQuestion

TRIGGERS = int(os.environ.get("STREAMS_TRIGGERS", "300"))
POLLS = 3
POLL_SECONDS = 4.0
BLOCKED_SECONDS = 0.1
COMPUTING = 1_500_000
"""Steps of a loop that take about as long on a machine of 2025."""

STATS = {"subscriptions": {"s": {"msgBacklog": 0, "backlogSize": 0}}, "ongoingTxnCount": 1}
LEDGERS = {
    "ledgers": [{"ledgerId": 4, "entries": 0, "size": 0}],
    "currentLedgerEntries": 2,
    "currentLedgerSize": 20,
    "lastConfirmedEntry": "4:1",
    "state": "LedgerOpened",
    "cursors": {},
}


@dataclass
class Watchdog:
    """Times what runs on the loop, without the garbage collector's pauses, which belong to the process."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    _collected: tuple[float, float] = (0.0, 0.0)
    _began: tuple[float, float] = (0.0, 0.0)

    @contextmanager
    def watch(self):
        run = asyncio.Handle._run

        def timed(handle):
            clocks, collected = self._clocks(), self._collected
            run(handle)
            wall, cpu = (
                now - before - (gone - gone_before)
                for now, before, gone, gone_before in zip(
                    self._clocks(), clocks, self._collected, collected, strict=True
                )
            )
            self.wall.append(wall)
            self.cpu.append(cpu)

        asyncio.Handle._run = timed
        gc.callbacks.append(self._note)
        try:
            yield
        finally:
            asyncio.Handle._run = run
            gc.callbacks.remove(self._note)

    @staticmethod
    def _clocks():
        return time.perf_counter(), time.thread_time()

    def _note(self, phase, _):
        if phase == "start":
            self._began = self._clocks()
        else:
            pairs = zip(self._collected, self._clocks(), self._began, strict=True)
            self._collected = tuple(sum_ + now - began for sum_, now, began in pairs)


def computing_seconds() -> float:
    """What a callback may compute at most: processor time of a fixed computation on this machine, now."""

    def one() -> float:
        began = time.thread_time()
        sum(number * number for number in range(COMPUTING))
        return time.thread_time() - began

    return max(one() for _ in range(3))


class Broker:
    """A broker's REST side in the same loop: answers keep-alive requests, counts them, never meets a condition."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode().partition("?")[0]
                writer.write(self._answer(path.rpartition("/")[2], path))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _answer(self, call: str, path: str) -> bytes:
        call = "transactionBufferStats" if "/transactionBufferStats/" in path else call
        self.requests["peek" if "/entry/" in path else call] += 1
        header = b""
        bodies: dict[str, object] = {
            "partitions": {"partitions": 0},
            "stats": STATS,
            "internalStats": LEDGERS,
            "internal-info": {"version": 1, "creationDate": "2026-11-01T10:00:00Z", "ledgers": [], "cursors": {}},
            "transactionBufferStats": {"state": "Ready", "maxReadPosition": "4:0", "ongoingTxnSize": 1},
        }
        body = bodies.get(call, {})
        if "/entry/" in path:
            header = b"X-Pulsar-Message-ID: 4:1\r\nX-Pulsar-publish-time: 2026-11-01T10:00:00Z\r\n"
        content = json.dumps(body).encode()
        return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (header, len(content), content)


@asynccontextmanager
async def broker(monkeypatch):
    made = Broker()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    extra = {"service_url": "pulsar://127.0.0.1:1", "admin_url": f"http://127.0.0.1:{port}"}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    async with server:
        yield made


def crowd():
    """A third of each kind, each on a topic of its own."""
    end = datetime.now(UTC) - timedelta(hours=1)
    for number in range(TRIGGERS // 3):
        source = PulsarSource(f"orders-{number}")
        data = source_to_json(source)
        question = WindowQuestion(source, Window(end - timedelta(hours=1), end)).to_json()
        for condition in (BacklogReached("s", entries=1), Terminated()):
            yield ConditionTrigger(data, condition_to_json(condition), POLL_SECONDS)
        yield WindowReadyTrigger(data, question, POLL_SECONDS)


@pytest.mark.slow
@pytest.mark.timeout(900)  # 30 s of one core
async def test_hundreds_of_waiting_triggers_never_hold_the_loop(monkeypatch, capsys):
    triggers = list(crowd())
    polls: Counter[int] = Counter()
    enough = asyncio.Event()

    def counted(trigger):
        ask = trigger.ask

        async def asking():
            answer = await ask()
            assert not answer.ready
            polls[id(trigger)] += 1
            if len(polls) == TRIGGERS and min(polls.values()) >= POLLS:
                enough.set()
            return answer

        trigger.ask = asking
        return trigger

    async def run(trigger):
        async for event in counted(trigger).run():
            raise AssertionError(f"nothing was to be found: {event}")

    async with broker(monkeypatch) as served:
        # the first of them loads what all of them use
        await triggers[0].ask(), await triggers[2].ask()
        first = sum(served.requests.values())
        watchdog, limit = Watchdog(), computing_seconds()
        with watchdog.watch():
            running = [asyncio.ensure_future(run(trigger)) for trigger in triggers]
            ended = asyncio.ensure_future(enough.wait())
            await asyncio.wait([ended, *running], return_when=asyncio.FIRST_COMPLETED)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for trigger in triggers:
            await trigger.cleanup()
    assert ended.done(), [task.exception() for task in running if task.done() and not task.cancelled()]
    slow = sum(seconds > BLOCKED_SECONDS for seconds in watchdog.wall)
    asked = sum(served.requests.values()) - first
    made = sum(polls.values())
    with capsys.disabled():
        print(
            f"\n{TRIGGERS} triggers, {made} polls, {asked} requests ({asked / made:.2f} per poll: "
            f"{dict(served.requests)}), {served.connections} connections; of {len(watchdog.wall)} callbacks {slow} "
            f"took over 100 ms, the longest {max(watchdog.wall):.3f} s, {max(watchdog.cpu):.3f} s of its own"
        )
    # computing never holds the loop; waiting would do so in each poll of a kind, a third of all, while a busy machine
    # does it now and then
    assert max(watchdog.cpu) < max(limit, computing_seconds())
    assert slow < made / 6
    # backlog and condition: one request each poll; a window that a transaction holds back: four; the topic, once; and
    # where it ends, once, by each that waits for a window
    assert asked <= made / 3 * (1 + 1 + 4) + 2 * TRIGGERS + 2 * TRIGGERS / 3
    assert served.connections < TRIGGERS / 10, "triggers of one cluster share their connections"
