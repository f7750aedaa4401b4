"""Ways to read a Pravega stream, each from its head to its tail, connecting included."""

from __future__ import annotations

import contextlib
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from airflow_provider_streams import PravegaSource, Window
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest, Split
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.client.controller import segment_calls
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.reading.reader import REQUEST_BYTES
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from stream_servers.pravega import PravegaServer
from tests.integration.pravega.conftest import Peer

_SOME_WINDOW = Window(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
_KEYS = 1000
_HELLO_BYTES = len(wire_protocol.encode(wire_protocol.Hello()))


@dataclass(frozen=True)
class Load:
    """One stream to read."""

    name: str
    events: int
    event_bytes: int
    segments: int = 1

    @property
    def stream(self) -> str:
        """Its full name."""
        return f"bench/{self.name}"


def options(server: PravegaServer) -> dict[str, str]:
    """How our readers reach the cluster."""
    return {"controller": server.controller_uri}


def publish(server: PravegaServer, peer: Peer, load: Load) -> None:
    """Create and fill the stream."""
    server.create_stream(*load.stream.split("/"), load.segments)
    peer.write(load.stream, load.events, load.event_bytes, _KEYS)


@contextlib.contextmanager
def started_peer(server: PravegaServer) -> Iterator[Peer]:
    """A new JVM with Pravega's own client."""
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(server, Path(folder, "logback.xml"), jvm=())
        try:
            yield peer
        finally:
            peer.close()


def plan_all(server: PravegaServer, load: Load) -> Plan:
    """The whole stream; one split for each segment."""
    source = PravegaSource(load.stream)
    with contextlib.closing(PravegaSystem.from_options(options(server))) as system:
        ends = {"start_cut": system.parse_cut(source, "earliest"), "end_cut": system.parse_cut(source, "latest")}
        return system.plan(PlanRequest(source, _SOME_WINDOW, reader="bench", basis="cuts", **ends))


def read_ours(server: PravegaServer, plan: Plan) -> int:
    """Our reader, all default columns, to Arrow batches."""
    rows = 0
    with contextlib.closing(PravegaSystem.from_options(options(server))) as system:
        for split in plan.splits:
            with contextlib.closing(system.read(plan, split)) as reader:
                rows += sum(batch.num_rows for batch in reader)
    return rows


def read_java(peer: Peer, load: Load, plan: Plan) -> int:
    """Pravega's own batch client between the same cuts: every event as a buffer, nothing done with it."""
    cuts = (StreamCut.from_model(load.stream, cut).to_text() for cut in (plan.start_cut, plan.end_cut))
    events: int = peer.ask("time", *load.stream.split("/"), *cuts)["events"]
    return events


def read_java_cold(server: PravegaServer, load: Load, plan: Plan) -> int:
    """The same in a new JVM, whose start and end count."""
    with started_peer(server) as peer:
        return read_java(peer, load, plan)


def read_raw(server: PravegaServer, load: Load, plan: Plan) -> int:
    """The stored bytes received from a socket to the same memory again, nothing looked at: the floor."""
    with contextlib.closing(PravegaSystem.from_options(options(server))) as system:
        for split in plan.splits:
            segment = Segment.parse(split.shard)
            with socket.create_connection(
                system.client.call(segment_calls.store_of(segment.stream, segment.id))
            ) as store:
                store.sendall(wire_protocol.encode(wire_protocol.Hello()))
                store.recv(_HELLO_BYTES, socket.MSG_WAITALL)
                _receive_all(store, segment, split)
    return load.events


def _receive_all(store: socket.socket, segment: Segment, split: Split) -> None:
    memory = memoryview(bytearray(REQUEST_BYTES + 4096))
    around = (
        len(wire_protocol.encode(wire_protocol.SegmentRead(segment.name, 0, False, False, b"")))
        - wire_protocol.HEADER.size
    )
    asked, end = split.start.parts[0], split.end.parts[0]
    waiting: list[tuple[int, int]] = []

    def ask(offset: int, length: int) -> None:
        store.sendall(wire_protocol.encode(wire_protocol.ReadSegment(segment.name, offset, length, "", 0)))
        waiting.append((offset, length))

    while asked < end or waiting:
        while asked < end and len(waiting) < 2:
            ask(asked, min(REQUEST_BYTES, end - asked))
            asked += waiting[-1][1]
        store.recv_into(memory, wire_protocol.HEADER.size, socket.MSG_WAITALL)
        _, size = wire_protocol.frame_size(memory[: wire_protocol.HEADER.size])
        store.recv_into(memory, size, socket.MSG_WAITALL)
        offset, length = waiting.pop(0)
        got = min(size - around, length)
        if got < length:
            ask(offset + got, length - got)
