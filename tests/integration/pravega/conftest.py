"""Pravega's own Java client as an independent peer, and a scope of our own on a real server."""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_streams.model.plan.plan import OnLoss, Plan, PlanRequest
from airflow_provider_streams.model.plan.receipt import Receipt, compare
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import segment_calls, stream_calls
from airflow_provider_streams.systems.pravega.client.controller.call import KeyedSegment
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.operations.scaling import Choice, Order
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from stream_servers import QUICK_START, PravegaServer
from stream_servers.java import start_java
from stream_servers.waiting import wait_until

SOURCE = Path(__file__).parent / "java" / "Peer.java"
_QUIET = """<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%p %c{0}: %m%n</pattern></encoder></appender>
<root level="OFF"><appender-ref ref="out"/></root></configuration>"""


class PeerFailed(RuntimeError):
    """The Java client threw."""


class PeerHung(RuntimeError):
    """The Java client did not answer, or ended."""


class Peer:
    """A JVM with Pravega's client: one command, one answer. One that ended is followed by a new one."""

    def __init__(
        self, server: PravegaServer, logging: Path, user: str = "admin", jvm: Sequence[str] = QUICK_START
    ) -> None:
        logging.write_text(_QUIET)
        properties = {
            "controller": server.controller_uri,
            "logback.configurationFile": str(logging),
            **server.client_properties(user),
            **({"authority": str(server.certificates.authority)} if server.tls else {}),
        }
        arguments = [f"{name}={value}" for name, value in properties.items()]
        self._start = partial(start_java, SOURCE, arguments, server.classpath, jvm=jvm)
        self._process = self._start()

    def ask(self, *words: object) -> dict[str, Any]:
        self.tell(*words)
        return self.answer()

    def tell(self, *words: object) -> None:
        if self._process.poll() is not None:
            self.close()
            self._process = self._start()
        assert self._process.stdin
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def answer(self, patience: float = 600.0) -> dict[str, Any]:
        """The answer of the last command. A client that hangs says where, and ends: it would not answer any more.

        Args:
            patience: seconds to wait for it.

        Raises:
            PeerFailed: The client threw.
            PeerHung: It hung or ended.
        """
        assert self._process.stdout
        said = []
        watch = threading.Timer(patience, self._end)
        watch.start()
        try:
            for line in self._process.stdout:
                if line.startswith("> "):
                    answer: dict[str, Any] = json.loads(line[2:])
                    if "error" in answer:
                        raise PeerFailed(answer["error"])
                    return answer
                said.append(line)
        finally:
            watch.cancel()
        self._process.wait()
        raise PeerHung(f"the JVM ended without an answer: {''.join(said)}")

    def _end(self) -> None:
        """Let the JVM print what each of its threads does, and kill it."""
        self._process.send_signal(signal.SIGQUIT)
        time.sleep(2)
        self._process.kill()

    def digests(self, stream: str, start: StreamCut | None, end: StreamCut | None) -> dict[int, tuple[Any, ...]]:
        """Per segment that is not empty: start, end, events, SHA-256 of length-prefixed payloads."""
        texts = ["unbounded" if cut is None else cut.to_text() for cut in (start, end)]
        answer = self.ask("digest", *stream.split("/"), *texts)
        return {int(key): tuple(value) for key, value in answer.items() if value[0] != value[1]}

    def write(self, stream: str, count: int, size: int = 100, keys: int = 10, tag: str = "e") -> None:
        self.ask("write", *stream.split("/"), count, size, keys, tag)

    def write_large(self, stream: str, size: int) -> None:
        """Write one event of more than 8 MiB.

        The client sends it in parts, each with a number, and waits for an answer to each, for ever. A server that is
        busy acknowledges several parts by one answer, and the client hangs. Nothing is stored then: the parts become an
        event by a last command, after all answers.
        """
        for _ in range(10):
            self.tell("write", *stream.split("/"), 1, size, 1, "large")
            with contextlib.suppress(PeerHung):
                self.answer(patience=20)
                return
        pytest.fail("ten clients, and each hung")

    def close(self) -> None:
        with self._process as process:
            assert process.stdin
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(600)
            except subprocess.TimeoutExpired:
                process.kill()


_READ = {"prn::/scope:s": "READ", "prn::/scope:s/stream:t": "READ"}
_STREAM = {"prn::/scope:s": "READ", "prn::/scope:s/stream:t": "READ_UPDATE"}
_SCOPE = {"prn::/scope:s": "READ_UPDATE", "prn::/scope:s/stream:t": "READ_UPDATE"}
HOLDERS = {
    "writer": _STREAM,
    "scope": _SCOPE,
    "all": {**_SCOPE, "prn::/scope:s/*": "READ_UPDATE"},
    "groups": {**_STREAM, "prn::/scope:s/*": "READ_UPDATE"},
    "readall": {**_STREAM, "prn::/scope:s/*": "READ"},
}
"""Accounts that may update `s/t`, and see more or less of the scope."""


@pytest.fixture(scope="session")
def pravega_auth_server() -> Iterator[PravegaServer]:
    """A server with accounts, of which `reader` may read `s/t` and `access/t`, and `stranger` neither."""
    reader = {**_READ, "prn::/scope:access": "READ", "prn::/scope:access/stream:t": "READ"}
    accounts = {**HOLDERS, "reader": reader, "stranger": {"prn::/scope:other": "READ"}}
    with PravegaServer(accounts=accounts, heap="1g", jvm=QUICK_START) as server:
        yield server


@pytest.fixture(scope="session")
def peer(pravega_server: PravegaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    peer = Peer(pravega_server, tmp_path_factory.mktemp("peer") / "logback.xml")
    yield peer
    peer.close()


WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))


class Lab:
    """What tests do with one server: write nothing themselves, but plan, read, compare and rescale."""

    def __init__(self, system: PravegaSystem, scope: str) -> None:
        self.system, self.scope = system, scope
        self.call, self.run = system.client.call, system.client.run

    def create(self, name: str = "s") -> str:
        """A fresh stream of one segment."""
        stream = f"{self.scope}/{name}"
        assert self.call(stream_calls.create_stream(stream))
        return stream

    def head(self, stream: str) -> StreamCut:
        return self.run(cuts.head(stream))

    def tail(self, stream: str) -> StreamCut:
        return self.run(cuts.tail(stream))

    def plan(self, stream: str, start: StreamCut | None = None, end: StreamCut | None = None, **more: Any) -> Plan:
        given = PlanRequest(
            PravegaSource(stream),
            WINDOW,
            "tests",
            basis="cuts",
            start_cut=None if start is None else start.to_model(),
            end_cut=None if end is None else end.to_model(),
        )
        return self.system.plan(replace(given, **more))

    def read(self, plan: Plan, on_loss: OnLoss = "fail") -> tuple[list[bytes], Receipt]:
        """All events in plan order, and the receipt."""
        events: list[bytes] = []
        receipts = []
        for split in plan.splits:
            with contextlib.closing(self.system.read(plan, split)) as reader:
                for batch in reader:
                    events += batch.column("event").to_pylist()
                receipts.append(reader.receipt)
        return events, compare(plan, self.system.explain(plan, receipts, on_loss=on_loss), seconds=0)

    def digests(self, plan: Plan) -> dict[int, tuple[Any, ...]]:
        """As `Peer.digests`, by our reader; every split's receipt is compared."""
        found: dict[int, tuple[Any, ...]] = {}
        receipts = []
        for split in plan.splits:
            digest, count = hashlib.sha256(), 0
            with contextlib.closing(self.system.read(plan, split, ["event"])) as reader:
                for batch in reader:
                    for event in batch.column("event").to_pylist():
                        digest.update(struct.pack(">i", len(event)) + event)
                        count += 1
                receipts.append(reader.receipt)
            found[Segment.parse(split.shard).id] = (
                split.start.parts[0],
                split.end.parts[0],
                count,
                digest.hexdigest(),
            )
        compare(plan, receipts, seconds=0)
        return found

    def rescale(self, stream: str, choose: Choice) -> None:
        """Replace some of the open segments and wait until it is done; the choice is repeated until it starts."""
        epochs: list[int] = []

        def started() -> bool:
            order = choose(self.call(segment_calls.current_segments(stream)))
            epoch = self.call(stream_calls.scale(stream, *order, int(datetime.now(UTC).timestamp() * 1000)))
            epochs.extend([] if epoch is None else [epoch])
            return bool(epochs)

        wait_until(started, "the scaling to start")
        wait_until(lambda: self.call(stream_calls.scale_done(stream, epochs[0])), "the scaling to end")

    def split(self, stream: str) -> None:
        """Split the open segment that owns most keys."""

        def choose(current: Sequence[KeyedSegment]) -> Order:
            one = max(current, key=lambda s: s.high - s.low)
            middle = (one.low + one.high) / 2
            return Order((one.segment_id,), ((one.low, middle), (middle, one.high)))

        self.rescale(stream, choose)

    def merge(self, stream: str) -> None:
        """Merge the two open segments that own the lowest keys."""

        def choose(current: Sequence[KeyedSegment]) -> Order:
            first, second = sorted(current, key=lambda s: s.low)[:2]
            return Order((first.segment_id, second.segment_id), ((first.low, second.high),))

        self.rescale(stream, choose)

    def roll(self, stream: str) -> None:
        """Replace every open segment by one with the same keys."""
        self.rescale(
            stream, lambda current: Order(tuple(s.segment_id for s in current), tuple((s.low, s.high) for s in current))
        )


@pytest.fixture
def system(pravega_server: PravegaServer) -> Iterator[PravegaSystem]:
    options = {"controller": pravega_server.controller_uri, "request_timeout_seconds": "20", "stall_seconds": "20"}
    system = PravegaSystem.from_options(options)
    yield system
    system.close()


@pytest.fixture
def lab(system: PravegaSystem, pravega_scope: str) -> Lab:
    return Lab(system, pravega_scope)


@pytest.fixture
def stream(lab: Lab) -> str:
    """A fresh stream of one segment."""
    return lab.create()
