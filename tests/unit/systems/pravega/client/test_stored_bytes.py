"""A few stored bytes as a question, against a store that can misbehave."""

from __future__ import annotations

import asyncio
import struct

import pytest

from airflow_provider_streams.errors import NotAuthorized, ProtocolError, SystemUnavailable
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.client.stored_bytes import BytesQuery, newest_event, whole_events
from airflow_provider_streams.systems.pravega.client.stream_client import AsyncClient
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
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
        connection.sendall(wire_protocol.encode(store.answer(message, 20)))
        return True

    def lost(_, connection) -> bool:
        connection.close()
        return True

    def expired(_, connection) -> bool:
        connection.sendall(
            wire_protocol.encode(wire_protocol.AuthTokenCheckFailed(0, "Java stack", wire_protocol.TOKEN_EXPIRED))
        )
        return True

    store.script = [short, lost, expired]
    assert client.run(asking(QUERY)) == DATA[10:150]
    assert client.asked.count("getDelegationToken") == 2


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (wire_protocol.SegmentIsTruncated(0, SEGMENT.name, 60, "", 10), SystemUnavailable),
        (wire_protocol.NoSuchSegment(0, SEGMENT.name, "Java stack", 10), SystemUnavailable),
        (wire_protocol.AppendSetup(0, SEGMENT.name, wire_protocol.UUID(int=0)), ProtocolError),
        (wire_protocol.AuthTokenCheckFailed(0, "Java stack", 0), NotAuthorized),
    ],
)
def test_refusals_are_typed(serve, refusal, error):
    client = serve(DATA)
    client.store.script = [lambda _, connection: connection.sendall(wire_protocol.encode(refusal)) or True] * 4
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


def test_an_answer_of_another_place_is_refused(serve):
    client = serve(DATA)
    other = wire_protocol.SegmentRead(SEGMENT.name, 11, False, False, DATA[11:], 0)
    client.store.script = [lambda _, connection: connection.sendall(wire_protocol.encode(other)) or True]
    with pytest.raises(ProtocolError, match=f"{SEGMENT.name}: .* offset 11 when asked for 10"):
        client.run(asking(QUERY))


def test_a_store_that_gives_a_byte_at_a_time_is_given_up(serve):
    client = serve(DATA)
    one = lambda message, connection: connection.sendall(wire_protocol.encode(client.store.answer(message)))  # noqa: E731
    client.store.answer = lambda message: wire_protocol.SegmentRead(
        message.segment, message.offset, False, False, DATA[message.offset : message.offset + 1], 0
    )
    client.store.script = [lambda message, connection: one(message, connection) or True] * 200
    with pytest.raises(ProtocolError, match="a few bytes at a time"):
        client.run(asking(QUERY))
    assert len(client.store.requests) < 10


def test_payloads_of_whole_events_at_the_front():
    data = framed(b"", b"one", b"x" * 300)
    assert whole_events("s", 0, data) == ([b"", b"one", b"x" * 300], len(data))
    assert whole_events("s", 0, data[:-1]) == ([b"", b"one"], 19)
    assert whole_events("s", 0, b"\0\0") == ([], 0)


@pytest.mark.parametrize("header", [b"\x00\x00\x00\x01\x00\x00\x00\x00", b"\xff" * 8, b"\0\0\0\0\x7f\xff\xff\xff"])
def test_bytes_that_are_no_events_are_refused_with_their_place(header):
    with pytest.raises(ProtocolError, match="s: no event of ours starts at offset 111"):
        whole_events("s", 100, framed(b"one") + header)


@pytest.mark.parametrize("chunk", [1, 9, 50, 10_000])
def test_the_newest_event_is_found_whatever_is_before_it(serve, monkeypatch, chunk):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.client.stored_bytes._CHUNK", chunk)
    data = framed(*(b"mark %d" % number for number in range(30)))
    client = serve(data)
    client.given *= 500
    assert client.run(newest_event(SEGMENT, 0, len(data))) == b"mark 29"
    assert client.run(newest_event(SEGMENT, 28, len(data))) == b"mark 29"
    assert client.run(newest_event(SEGMENT, 5, 5)) is None
    with pytest.raises(ProtocolError, match=f"before offset {len(data) - 1} are no whole event"):
        client.run(newest_event(SEGMENT, 0, len(data) - 1))


def test_a_segment_is_named_in_every_question(serve):
    client = serve(DATA)
    client.run(asking(QUERY))
    (request,) = client.store.requests
    assert (request.segment, request.offset, request.token) == (Segment(SEGMENT.stream, 0).name, 10, "first token")
