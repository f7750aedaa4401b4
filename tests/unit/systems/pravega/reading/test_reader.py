"""The reader against a segment store that answers as real ones do, and as broken ones might."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import (
    CutNotAtEventBoundary,
    EventTooLarge,
    InvalidRequest,
    NotAuthorized,
    ProtocolError,
    ReadStalled,
    ReceiptMismatch,
    SourceReplaced,
)
from airflow_provider_streams.model.plan.plan import Span, Split
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.client.multi_step_queries import infos
from airflow_provider_streams.systems.pravega.client.stream_client import AsyncClient
from airflow_provider_streams.systems.pravega.declaration import Pravega
from airflow_provider_streams.systems.pravega.metadata.event_pointer import EventPointer
from airflow_provider_streams.systems.pravega.reading.columns import COLUMNS, MAX_ROWS, schema
from airflow_provider_streams.systems.pravega.reading.reader import _ROOM as ROOM
from airflow_provider_streams.systems.pravega.reading.reader import PravegaSplitReader

NAME = "scope/stream/0.#epoch.0"
EVENTS = [f"event {number}".encode() * (1 + number % 7) for number in range(500)]
DATA = b"".join(struct.pack(">ii", 0, len(event)) + event for event in EVENTS)


def split(start: int = 0, end: int = len(DATA)) -> Split:
    return Split(0, NAME, Position.of(start), Position.of(end), end - start, (Span(0, start, end),))


def events_of(client, one=None, columns=None):
    """Events and receipt of one split."""
    with contextlib.closing(PravegaSplitReader(client, one or split(), columns)) as reader:
        found = [event for batch in reader for event in batch.column(0).to_pylist()]
        return found, reader.receipt


def refusing(refusal):
    """A step that answers with this message, made from the request."""

    def step(message, connection):
        connection.sendall(wire_protocol.encode(refusal(message)))
        return True

    return step


def closing(message, connection):
    connection.shutdown(2)
    return True


def silent(message, connection):
    return True


def answered(message, connection):
    return False


def test_a_split_is_read_whole_and_its_receipt_counts_stored_bytes(serve):
    found, receipt = events_of(serve(DATA))
    assert found == EVENTS
    assert receipt.rows == 500
    assert receipt.entries == len(DATA)
    assert receipt.bytes == sum(map(len, EVENTS))
    assert receipt.first == Position.of(0)
    assert receipt.last == Position.of(len(DATA) - 8 - len(EVENTS[-1]))
    assert receipt.gaps == ()


def test_batches_stay_what_they_are_while_memory_is_used_again(serve, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 1000)
    with contextlib.closing(PravegaSplitReader(serve(DATA), split(), None)) as reader:
        batches = list(reader)
    assert len(batches) > 5
    assert [event for batch in batches for event in batch.column(0).to_pylist()] == EVENTS


def test_a_read_holds_a_few_blocks_at_a_time_and_leaves_no_thread(serve, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 100)
    before = pa.total_allocated_bytes()
    with contextlib.closing(PravegaSplitReader(serve(DATA), split(), ["event"])) as reader:
        held = [pa.total_allocated_bytes() - before for _ in reader]
    assert len(held) > 50
    assert max(held) < 10 * ROOM
    assert not [thread for thread in threading.enumerate() if thread.name == "pravega-read"]


@pytest.mark.parametrize("read_ahead", [1, 2, 5])
def test_short_answers_leave_no_hole(serve, monkeypatch, read_ahead):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 1000)
    client = serve(DATA, read_ahead=read_ahead)
    client.store.script = [
        lambda message, connection: connection.sendall(wire_protocol.encode(client.store.answer(message, 17))) is None
    ] * 9
    assert events_of(client)[0] == EVENTS


def test_answers_in_another_order_are_put_in_order(serve, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 1000)
    client = serve(DATA, read_ahead=2)
    held = []

    def hold(message, connection):
        held.append(message)
        return True

    def both(message, connection):
        for one in (message, held.pop()):
            connection.sendall(wire_protocol.encode(client.store.answer(one)))
        return True

    client.store.script = [hold, both] * 3
    assert events_of(client)[0] == EVENTS


def test_nothing_is_asked_at_or_beyond_the_end_and_nothing_beyond_it_is_given(serve):
    end = len(DATA) - 8 - len(EVENTS[-1])
    client = serve(DATA, sealed=False)
    assert events_of(client, split(0, end))[0] == EVENTS[:-1]
    assert all(r.offset + r.length <= end for r in client.store.requests if isinstance(r, wire_protocol.ReadSegment))


def test_eight_bytes_where_three_were_asked_for_are_clipped(serve, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 3)
    end = sum(8 + len(event) for event in EVENTS[:5])
    assert events_of(serve(DATA), split(0, end))[0] == EVENTS[:5]


@pytest.mark.parametrize(
    "fault",
    [
        closing,
        refusing(lambda r: wire_protocol.WrongHost(r.request_id, r.segment)),
        refusing(lambda _: wire_protocol.AuthTokenCheckFailed(0, "stack", wire_protocol.TOKEN_EXPIRED)),
        refusing(lambda r: wire_protocol.SegmentRead(r.segment, r.offset, False, False, b"", r.request_id)),
        lambda _, connection: connection.sendall(struct.pack(">ii", 10, -1)) is None,
    ],
    ids=["closed", "wrong host", "token expired", "empty answer", "corrupt frame"],
)
def test_passing_faults_are_survived_without_losing_or_doubling_an_event(serve, monkeypatch, fault):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 1000)
    client = serve(DATA)
    client.store.script = [answered, answered, answered, fault, answered, answered, fault]
    found, receipt = events_of(client)
    assert found == EVENTS
    assert receipt.entries == len(DATA)
    assert client.asked.count("getURI") >= 3, "the controller is asked again where the segment is"


def test_a_token_that_is_about_to_end_is_renewed_in_the_middle(serve, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 1000)
    client = serve(DATA)
    client.store.script = [answered] * 4 + [
        refusing(lambda _: wire_protocol.AuthTokenCheckFailed(0, "", wire_protocol.TOKEN_EXPIRED))
    ]
    assert events_of(client)[0] == EVENTS
    tokens = [r.token for r in client.store.requests if isinstance(r, wire_protocol.ReadSegment)]
    assert (tokens[0], tokens[-1]) == ("first token", "second token")


def test_a_refused_token_is_an_error_at_once(serve):
    client = serve(DATA, stall_seconds=60)
    client.store.script = [refusing(lambda _: wire_protocol.AuthTokenCheckFailed(0, "a long Java stack", 0))] * 9
    with pytest.raises(NotAuthorized) as raised:
        events_of(client)
    assert "Java" not in str(raised.value)


def test_a_refused_read_is_an_error_at_once(serve):
    client = serve(DATA, stall_seconds=60)
    client.store.script = [refusing(lambda r: wire_protocol.ErrorMessage(r.request_id, r.segment, "bad offset", 0))] * 9
    with pytest.raises(ProtocolError, match="refuses to read: bad offset"):
        events_of(client)


def test_a_silent_store_is_reported_in_bounded_time_with_the_place(serve):
    client = serve(DATA, request_timeout_seconds=0.2, stall_seconds=0.6)
    client.store.script = [silent] * 50
    with pytest.raises(ReadStalled, match=rf"at 0 on the way to {len(DATA)}") as raised:
        events_of(client)
    assert raised.value.retryable


def test_a_connection_that_waits_is_kept_alive(serve, monkeypatch):
    monkeypatch.setattr(
        "airflow_provider_streams.systems.pravega.client.segment_store_connection._KEEP_ALIVE_SECONDS", 0.05
    )
    client = serve(DATA)
    held = []

    def late(message, connection):
        held.append(message)
        return True

    client.store.script = [late]
    client.store.on_keep_alive = lambda: client.store.answer(held.pop()) if held else wire_protocol.KeepAlive()
    assert events_of(client)[0] == EVENTS
    assert any(isinstance(r, wire_protocol.KeepAlive) for r in client.store.requests)
    assert client.store.connections == 2, "one for the info, one for the read"


def test_bytes_truncated_under_the_read_become_a_gap_and_the_rest_is_read(serve, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 1000)
    client = serve(DATA, read_ahead=1)
    boundary = sum(8 + len(event) for event in EVENTS[:300])

    def truncate(message, connection):
        client.store.start = boundary
        return False

    client.store.script = [answered, answered, truncate]
    found, receipt = events_of(client)
    kept = receipt.gaps[0].first
    assert found[-200:] == EVENTS[300:]
    assert found[:-200] == EVENTS[: len(found) - 200]
    assert receipt.gaps == (Span(0, kept, boundary),)
    assert receipt.entries + boundary - kept == len(DATA)


@pytest.mark.parametrize("when", [0, 2])
def test_a_deleted_segment_becomes_a_gap_to_the_end(serve, monkeypatch, when):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 1000)
    client = serve(DATA, read_ahead=1)

    def delete(message, connection):
        client.store.exists = False
        return False

    client.store.script = [*[answered] * when, delete]
    found, receipt = events_of(client)
    assert found == EVENTS[: len(found)]
    (gap,) = receipt.gaps
    assert gap.end == len(DATA)
    assert receipt.entries == gap.first


def test_a_shorter_segment_of_the_same_name_is_not_read(serve):
    client = serve(DATA[:100])
    assert events_of(client)[0] == []
    assert not [r for r in client.store.requests if isinstance(r, wire_protocol.ReadSegment)]
    assert events_of(client)[1].gaps == (Span(0, 0, len(DATA)),)


def test_a_start_or_an_end_inside_an_event_is_named(serve):
    with pytest.raises(CutNotAtEventBoundary, match=f"{NAME}: the bytes at offset 3 "):
        events_of(serve(DATA), split(3))
    with pytest.raises(CutNotAtEventBoundary, match="ends at offset 20"):
        events_of(serve(DATA), split(0, 20))
    with pytest.raises(CutNotAtEventBoundary, match="byte stream"):
        events_of(serve(b"just bytes, no framing"), split(0, 22))


def test_dropping_one_event_in_the_reader_fails_the_run(serve, monkeypatch):
    from airflow_provider_streams.model.plan.receipt import _split_problems
    from airflow_provider_streams.systems.pravega.reading.event_decoder import Events

    whole = Events.slices

    def dropping(self, rows):
        for part in whole(self, rows):
            yield Events(part.payloads.slice(1), part.offsets[1:], part.end)

    monkeypatch.setattr(Events, "slices", dropping)
    _, receipt = events_of(serve(DATA))
    problems = list(_split_problems(split(), receipt))
    assert problems, ReceiptMismatch
    assert f"{len(DATA):,} stored units planned" in problems[0]


def test_batches_have_the_asked_columns_and_bounded_rows(serve):
    data = struct.pack(">ii", 0, 1) * 0 + (struct.pack(">ii", 0, 1) + b"x") * 45_000
    with contextlib.closing(PravegaSplitReader(serve(data), split(0, len(data)), tuple(COLUMNS))) as reader:
        batches = list(reader)
    assert [len(batch) for batch in batches] == [MAX_ROWS, MAX_ROWS, 5000]
    table = pa.Table.from_batches(batches)
    assert table.schema == schema(tuple(COLUMNS))
    assert table.column("offset").to_pylist() == list(range(0, 9 * 45_000, 9))
    assert table.column("next_offset").to_pylist() == list(range(9, 9 * 45_001, 9))
    row = table.slice(44_999).to_pylist()[0]
    assert EventPointer.from_bytes(row.pop("event_pointer")) == (NAME, 404_991, 9)
    assert row == {
        "event": b"x",
        "scope": "scope",
        "stream": "stream",
        "segment_id": 0,
        "offset": 404_991,
        "segment": NAME,
        "next_offset": 405_000,
    }


def test_default_columns_are_those_of_the_jvm_connector():
    wanted = [pa.field("event", pa.binary()), pa.field("scope", pa.string()), pa.field("stream", pa.string())]
    wanted += [pa.field("segment_id", pa.int64()), pa.field("offset", pa.int64())]
    assert schema(None) == pa.schema(wanted)
    assert schema(["offset", "event"]).names == ["offset", "event"]
    assert set(Pravega.default_columns) <= set(COLUMNS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["evnt"], "did you mean 'event'"),
        (["key"], "no column 'key'; known: event"),
        (["event", "event"], "once"),
        ([], "at least one"),
    ],
)
def test_unknown_and_repeated_columns_are_refused(columns, message):
    with pytest.raises(InvalidRequest, match=message):
        schema(columns)


def test_infos_survive_a_moved_segment_and_an_expired_token(serve):
    client = serve(DATA)
    client.store.info_script = [
        refusing(lambda r: wire_protocol.WrongHost(r.request_id, r.segment)),
        refusing(lambda _: wire_protocol.AuthTokenCheckFailed(0, "", wire_protocol.TOKEN_EXPIRED)),
        closing,
    ]
    assert client.run(infos("scope/stream", [0]))[0].write_offset == len(DATA)


def test_a_store_that_refuses_every_token_is_not_taken_for_an_empty_one(serve):
    client = serve(DATA)
    client.store.info_script = [refusing(lambda r: wire_protocol.AuthTokenCheckFailed(r.request_id, "", 0))] * 9
    with pytest.raises(NotAuthorized):
        client.run(infos("scope/stream", [0]))


def test_infos_tell_when_a_segment_was_made_also_after_a_lost_answer(serve):
    client = serve(DATA)
    info = client.run(infos("scope/stream", [0]))[0]
    assert info.created_ms == client.store.made_ms
    for lost in (0, 1):
        client.store.info_script = [*[answered] * lost, closing]
        assert client.run(infos("scope/stream", [0]))[0] == info
    client.store.made_ms = wire_protocol.NO_ATTRIBUTE
    assert client.run(infos("scope/stream", [0]))[0].created_ms is None


def test_answers_come_in_any_order(serve):
    client = serve(DATA)
    held = []

    def turned(message, connection):
        held.append(client.store.answer(message))
        if len(held) == 6:
            connection.sendall(b"".join(map(wire_protocol.encode, reversed(held))))
        return True

    client.store.info_script = [turned] * 6
    assert client.run(infos("scope/stream", [0, 1, 2])).keys() == {0, 1, 2}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda r: wire_protocol.StreamSegmentInfo(r.request_id + 7, r.segment, True, False, False, 0, 9, 0),
        lambda r: wire_protocol.StreamSegmentInfo(-1, r.segment, True, False, False, 0, 9, 0),
        lambda r: wire_protocol.StreamSegmentInfo(r.request_id, "scope/stream/1.#epoch.0", True, False, False, 0, 9, 0),
        lambda r: wire_protocol.StreamSegmentInfo(r.request_id, r.segment, True, False, False, 0, -9, 0),
        lambda r: wire_protocol.StreamSegmentInfo(r.request_id, r.segment, True, False, False, 0, 5, 9),
        lambda _: wire_protocol.DataAppended(wire_protocol.UUID(int=1), 1, 1),
    ],
)
def test_an_answer_that_cannot_be_is_refused(serve, wrong):
    client = serve(DATA)
    client.store.info_script = [refusing(wrong)]
    with pytest.raises(ProtocolError, match="scope/stream"):
        client.run(infos("scope/stream", [0]))
    assert client.run(infos("scope/stream", [0]))[0].write_offset == len(DATA), "on a new connection"


def test_an_answer_that_comes_after_a_timeout_is_dropped(serve):
    client = serve(DATA, request_timeout_seconds=0.3)
    late = []

    def slow(message, connection):
        late.append((message, connection))
        return True

    client.store.info_script = [slow, slow]
    assert client.run(infos("scope/stream", [0]))[0].write_offset == len(DATA)
    message, connection = late[0]
    with contextlib.suppress(OSError):
        wrong = wire_protocol.StreamSegmentInfo(message.request_id, NAME, True, False, False, 0, 1, 0)
        connection.sendall(wire_protocol.encode(wrong))
    assert client.run(infos("scope/stream", [0]))[0].write_offset == len(DATA)


def test_threads_ask_at_once_on_connections_of_their_own(serve):
    client = serve(DATA)
    client.given = ["token"] * 99
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda key: client.run(infos("scope/stream", [key]))[key], range(200)))
    assert {answer.write_offset for answer in answers} == {len(DATA)}
    assert len(client._idle) == 1


async def test_tasks_ask_at_once_and_a_cancelled_one_leaves_no_answer(serve):
    served = serve(DATA)
    served.given = ["token"] * 99
    client = AsyncClient(served.endpoint)

    async def call(call):
        await asyncio.sleep(0)
        return served.call(call)

    client.call = call  # type: ignore[method-assign]
    await client.run(infos("scope/stream", [0]))
    assert len(client._idle) == 1, "the one that all would share"
    stalled, loop = asyncio.Event(), asyncio.get_running_loop()

    def stall(_message, _connection):
        loop.call_soon_threadsafe(stalled.set)
        return True

    served.store.info_script = [stall]
    first = asyncio.create_task(client.run(infos("scope/stream", [0])))
    await asyncio.wait_for(stalled.wait(), 5)
    others = [asyncio.create_task(client.run(infos("scope/stream", [key]))) for key in range(1, 30)]
    first.cancel()
    found = await asyncio.gather(*others)
    assert [set(one) for one in found] == [{key} for key in range(1, 30)]
    assert (await client.run(infos("scope/stream", [5])))[5].write_offset == len(DATA)
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len(client._idle) == 1
    await client.close()


def test_a_segment_of_another_time_is_not_read(serve):
    client = serve(DATA)
    made = "2026-11-18T11:06:40.000+00:00"
    for known in (made, ""):
        with contextlib.closing(PravegaSplitReader(client, split(), None, made=known)) as reader:
            assert sum(len(batch) for batch in reader) == 500
    client.store.made_ms += 1
    with (
        contextlib.closing(PravegaSplitReader(client, split(), None, made=made)) as reader,
        pytest.raises(SourceReplaced, match=r"made at 2026-11-18T11:06:40.000.* made at 2026-11-18T11:06:40.001"),
    ):
        list(reader)


def test_a_store_that_came_back_with_other_data_is_noticed_in_the_middle(serve, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 1000)
    client = serve(DATA)

    def wiped(message, connection):
        client.store.made_ms += 1
        return closing(message, connection)

    client.store.script = [answered, answered, wiped]
    with (
        contextlib.closing(PravegaSplitReader(client, split(), None, made="2026-11-18T11:06:40.000+00:00")) as reader,
        pytest.raises(SourceReplaced),
    ):
        list(reader)


def test_an_event_larger_than_allowed_is_refused_with_its_place(serve, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 1000)
    data = DATA + struct.pack(">ii", 0, 5000) + bytes(5000)
    with pytest.raises(EventTooLarge, match=f"{NAME}: the event at offset {len(DATA)} says it has 5008 bytes"):
        events_of(serve(data, max_event_bytes=5007), split(0, len(data)))
    assert len(events_of(serve(data, max_event_bytes=5008), split(0, len(data)))[0]) == 501


def test_missing_segments_are_left_out(serve):
    client = serve(DATA)
    client.store.exists = False
    assert client.run(infos("scope/stream", [0, 1])) == {}


def test_a_server_that_is_no_segment_store_is_named(serve):
    client = serve(DATA)
    other = replace(client.endpoint)
    assert other == client.endpoint
    client.store.info_script = [refusing(lambda _: wire_protocol.Hello())] * 9
    with pytest.raises(ProtocolError, match="Hello"):
        client.run(infos("scope/stream", [0]))
