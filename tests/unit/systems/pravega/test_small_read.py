"""A few stored bytes as a question, against a store that can misbehave."""

from __future__ import annotations

import asyncio
import struct

import pytest

from airflow_provider_streams.errors import NotAuthorized, ProtocolError, SystemUnavailable
from airflow_provider_streams.systems.pravega import wire
from airflow_provider_streams.systems.pravega.client import AsyncClient
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.small_read import BytesQuery, events
from tests.unit.systems.pravega.conftest import SEGMENT

DATA = bytes(range(200))
QUERY = BytesQuery(SEGMENT, 10, 150)


def asking(query):
    return (yield query)


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">ii", 0, len(payload)) + payload for payload in payloads)


def test_bytes_between_two_offsets_are_read(serve):
    assert serve(DATA).run(asking(QUERY)) == DATA[10:150]
    assert serve(DATA).run(asking(BytesQuery(SEGMENT, 5, 5))) == b""


def test_short_answers_lost_connections_and_expired_tokens_are_survived(serve):
    client = serve(DATA)
    store = client.store

    def short(message, connection) -> bool:
        connection.sendall(wire.encode(store.answer(message, 20)))
        return True

    def lost(_, connection) -> bool:
        connection.close()
        return True

    def expired(_, connection) -> bool:
        connection.sendall(wire.encode(wire.AuthTokenCheckFailed(0, "Java stack", wire.TOKEN_EXPIRED)))
        return True

    store.script = [short, lost, expired]
    assert client.run(asking(QUERY)) == DATA[10:150]
    assert client.asked.count("getDelegationToken") == 2


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (wire.SegmentIsTruncated(0, SEGMENT.name, 60, "", 10), SystemUnavailable),
        (wire.NoSuchSegment(0, SEGMENT.name, "Java stack", 10), SystemUnavailable),
        (wire.AppendSetup(0, SEGMENT.name, wire.UUID(int=0)), ProtocolError),
        (wire.AuthTokenCheckFailed(0, "Java stack", 0), NotAuthorized),
    ],
)
def test_refusals_are_typed(serve, refusal, error):
    client = serve(DATA)
    client.store.script = [lambda _, connection: connection.sendall(wire.encode(refusal)) or True] * 4
    with pytest.raises(error) as caught:
        client.run(asking(QUERY))
    assert "Java stack" not in str(caught.value)


async def test_an_event_loop_gets_the_same_bytes(serve, monkeypatch):
    client = serve(DATA)
    loop_client = AsyncClient(client.endpoint)

    async def call(call):
        return await asyncio.to_thread(client.call, call)

    monkeypatch.setattr(loop_client, "call", call)
    assert await loop_client.run(asking(QUERY)) == DATA[10:150]
    await loop_client.close()


def test_payloads_of_consecutive_events():
    assert list(events(framed(b"", b"one", b"x" * 300))) == [b"", b"one", b"x" * 300]
    assert list(events(b"")) == []


@pytest.mark.parametrize("data", [b"\x00", framed(b"one")[:-1], b"\x00\x00\x00\x01\x00\x00\x00\x00", b"\xff" * 8])
def test_bytes_that_are_no_events_are_refused(data):
    with pytest.raises(ProtocolError):
        list(events(data))


def test_a_segment_is_named_in_every_question(serve):
    client = serve(DATA)
    client.run(asking(QUERY))
    (request,) = client.store.requests
    assert (request.segment, request.offset, request.token) == (Segment(SEGMENT.stream, 0).name, 10, "first token")
