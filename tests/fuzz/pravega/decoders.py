"""Everything that reads bytes or texts from outside: what is legal for it, and how it is asked."""

from __future__ import annotations

import base64
import gzip
import json
import random
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from airflow_provider_streams.errors import (
    CorruptFrame,
    CutNotAtEventBoundary,
    EventTooLarge,
    InvalidRequest,
    ProtocolError,
    StreamsError,
)
from airflow_provider_streams.model.plan.plan import Span, Split
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.connection import endpoint_fields
from airflow_provider_streams.systems.pravega.client import varint, wire_protocol
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.client.controller import (
    hold_calls,
    segment_calls,
    stream_calls,
    transaction_calls,
)
from airflow_provider_streams.systems.pravega.client.controller.call import Call
from airflow_provider_streams.systems.pravega.client.controller.channels import value_of
from airflow_provider_streams.systems.pravega.client.controller.hold_calls import Group
from airflow_provider_streams.systems.pravega.client.stored_bytes import BytesQuery, SmallRead, whole_events
from airflow_provider_streams.systems.pravega.client.varint import Reader, compact_int, record
from airflow_provider_streams.systems.pravega.metadata.event_pointer import EventPointer
from airflow_provider_streams.systems.pravega.metadata.scaling_events import events_of_json
from airflow_provider_streams.systems.pravega.metadata.segment_bounds import Answers, SegmentQuery
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment, segment_id
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut, offsets_from_json
from airflow_provider_streams.systems.pravega.planning.watermarks import Mark, Times, around
from airflow_provider_streams.systems.pravega.reading.event_decoder import EventParser
from airflow_provider_streams.systems.pravega.reading.reader import PravegaSplitReader
from tests.fuzz.pravega.store import HostileStore

Dice = random.Random
STREAM = "scope/stream"
SEGMENT = Segment(STREAM, segment_id(3, 2))
BASE = 1 << 33
"""Where the bytes of an event decoder are stored."""
VECTORS = json.loads(
    (Path(__file__).parents[2] / "unit" / "systems" / "pravega" / "vectors.json").read_text(encoding="utf-8")
)["vectors"]


class WrongError(AssertionError):
    """A decoder took what a plain one does not, or gave something else."""


@dataclass(frozen=True)
class Decoder:
    """One way in for bytes from outside."""

    name: str
    legal: Callable[[Dice], bytes]
    """Some bytes that it must take."""
    decode: Callable[[bytes, Dice], object]
    """Raises one of `refusals` where they are none."""
    refusals: tuple[type[StreamsError], ...] = (ProtocolError,)
    is_moody: bool = False
    """Whether legal bytes may be refused as well: their sender does as it likes."""


# The segment stores' protocol


def _text(dice: Dice) -> str:
    return dice.choice(["", "x", SEGMENT.name, "io.pravega.Exception: \u00fc", "n" * 300])


_MADE: dict[str, Callable[[Dice], Any]] = {
    "int": lambda dice: dice.choice([0, 1, -1, 16, (1 << 31) - 1]),
    "long": lambda dice: dice.choice([0, 1, -1, 1 << 40, (1 << 63) - 1]),
    "bool": lambda dice: dice.random() < 0.5,
    "text": _text,
    "uuid": lambda dice: UUID(int=dice.getrandbits(128)),
    "data": lambda dice: dice.randbytes(dice.choice([0, 1, 50])),
    "rest": lambda dice: dice.randbytes(dice.choice([0, 1, 50])),
}


def _frame(dice: Dice) -> bytes:
    message = dice.choice(list(wire_protocol.MESSAGES.values()))
    return wire_protocol.encode(message(*(_MADE[kind](dice) for kind in message.LAYOUT.split())))


def _messages(data: bytes) -> Iterator[wire_protocol.Message]:
    """The messages in some frames, as a connection reads them."""
    at = 0
    while len(data) - at >= wire_protocol.HEADER.size:
        kind, length = wire_protocol.frame_size(data[at : at + wire_protocol.HEADER.size])
        at += wire_protocol.HEADER.size
        if len(data) - at < length:
            return
        message = wire_protocol.decode(kind, memoryview(data)[at : at + length])
        at += length
        if message is not None:
            yield message


def _frames(data: bytes, _: Dice) -> object:
    return list(_messages(data))


def _info(dice: Dice) -> bytes:
    """Answers to questions about a segment, the request's id first."""
    start = dice.choice([0, 7, 1 << 40])
    info = wire_protocol.StreamSegmentInfo(1, SEGMENT.name, True, dice.random() < 0.5, False, 5, start + 9, start)
    made = wire_protocol.SegmentAttribute(2, dice.choice([wire_protocol.NO_ATTRIBUTE, 1_795_000_000_000]))
    return b"".join(map(wire_protocol.encode, (info, made)))


def _infos(data: bytes, _: Dice) -> object:
    answers = Answers(SegmentQuery(STREAM, (SEGMENT.id,)))
    first, second = (getattr(one, "request_id", 0) for one in answers.requests([SEGMENT.id], ""))
    ids = {1: first, 2: second}
    for message in _messages(data):
        number = getattr(message, "request_id", None)
        changed = message if number not in ids else _with_id(message, ids[number])
        answers.take(changed)
    for info in answers.found.values():
        if not 0 <= info.start_offset <= info.write_offset:
            raise WrongError(str(info))
    return answers.found


def _with_id(message: wire_protocol.Message, number: int) -> wire_protocol.Message:
    fields = {name: getattr(message, name) for name in message.__slots__}  # type: ignore[attr-defined]
    return type(message)(**{**fields, "request_id": number})


def _bytes_answer(dice: Dice) -> bytes:
    message = wire_protocol.SegmentRead(SEGMENT.name, BASE, False, False, dice.randbytes(dice.choice([1, 40, 100])), 0)
    return wire_protocol.encode(message)


def _bytes_read(data: bytes, _: Dice) -> object:
    reading = SmallRead(BytesQuery(SEGMENT, BASE, BASE + 60))
    for message in _messages(data):
        if not reading.left:
            break
        reading.take(message)
    if len(reading.data) > 60:
        raise WrongError("more than was asked for")
    return reading.data


# Stored bytes


def _stored(dice: Dice) -> bytes:
    sizes = dice.choice([[0], [1], [100], [0, 1, 2], [5, 5, 5, 6], [8] * 20 + [9], list(range(50)), [70_000]])

    def payload() -> bytes:
        size = dice.choice(sizes)
        kind = dice.randrange(3)
        looks = b"\0\0\0\0\0\0\0\x08" * (size // 8 + 1)
        return dice.randbytes(size) if kind == 0 else bytes(size) if kind == 1 else looks[:size]

    count = dice.choice([0, 1, 2, 15, 16, 17, 18, 40, 300] if max(sizes) < 1000 else [1, 3])
    return b"".join(struct.pack(">ii", 0, len(one)) + one for one in (payload() for _ in range(count)))


def _plain_events(data: bytes) -> list[tuple[int, bytes]] | None:
    """Offset and payload of each event; None: these are not all events."""
    at, found = 0, []
    while at < len(data):
        if at + 8 > len(data):
            return None
        kind, length = struct.unpack_from(">ii", data, at)
        if kind or length < 0 or at + 8 + length > len(data):
            return None
        found.append((BASE + at, data[at + 8 : at + 8 + length]))
        at += 8 + length
    return found


def _events(data: bytes, dice: Dice) -> object:
    """In blocks of any size, with any room in front of them."""
    wanted = _plain_events(data)
    parser = EventParser(SEGMENT.name, BASE, BASE + len(data), dice.choice([1 << 17, (1 << 31) - 1]))
    found: list[tuple[int, bytes]] = []
    at = 0
    try:
        while at < len(data):
            size = min(dice.choice([1, 3, 7, 8, 9, 100, 5000, 100_000]), len(data) - at)
            room = dice.choice([0, 4, 64, 70_000])
            events = parser.feed(memoryview(bytearray(b"\xee" * room + data[at : at + size])), room)
            at += size
            if events is not None:
                for part in events.slices(dice.choice([1, 7, 10_000])):
                    found += zip(map(int, part.offsets), part.payloads.to_pylist(), strict=True)
        parser.finish()
    except (CutNotAtEventBoundary, EventTooLarge) as refusal:
        _check_place(refusal, data)
        before = _plain_events(data[: refusal.offset - BASE])
        may_be_right = isinstance(refusal, EventTooLarge) and refusal.size > refusal.limit
        if (wanted is not None and not may_be_right) or before is None or found != before[: len(found)]:
            raise WrongError(f"refused {refusal} where a plain decoder says {wanted!r:.200}") from refusal
        raise
    if found != wanted:
        raise WrongError(f"{found!r:.200} instead of {wanted!r:.200}")
    return found


def _check_place(refusal: CutNotAtEventBoundary | EventTooLarge, data: bytes) -> None:
    text = str(refusal)
    if SEGMENT.name not in text or str(refusal.offset) not in text or not BASE <= refusal.offset <= BASE + len(data):
        raise WrongError(f"its place is not named: {text}")


def _own_events(data: bytes, _: Dice) -> object:
    found, taken = whole_events(SEGMENT.name, BASE, data)
    plain = _plain_events(data[:taken])
    if plain is None or [payload for _, payload in plain] != found:
        raise WrongError("other events")
    return found


def _mark_bytes(dice: Dice) -> bytes:
    offsets = {
        segment_id(dice.randrange(9), dice.randrange(9)): dice.randrange(1 << 50) for _ in range(dice.randrange(4))
    }
    pairs = (
        record(_MARK_PREFIX, struct.pack(">qdd", key, 0.0, 1.0)) + struct.pack(">q", offset)
        for key, offset in offsets.items()
    )
    lower = dice.randrange(1 << 45)
    return record(_MARK_PREFIX, struct.pack(">qq", lower, lower + 5) + compact_int(len(offsets)) + b"".join(pairs))


_MARK_PREFIX = bytes.fromhex("00000100")


def _marks(data: bytes, _: Dice) -> object:
    around([data], Times(0, 0, 0, 1 << 40, 1 << 40))
    return Mark.parse(STREAM, data)


def _read(data: bytes, dice: Dice) -> object:
    """A whole read from a store that answers as it likes: true events, once and in order, and every gap is reported."""
    wanted = _plain_events(data)
    if wanted is None:
        raise ProtocolError("not for this one")
    store = HostileStore(SEGMENT, data, dice)
    split = Split(0, SEGMENT.name, Position.of(0), Position.of(len(data)), len(data), (Span(SEGMENT.id, 0, len(data)),))
    found: list[tuple[int, bytes]] = []
    with closing(PravegaSplitReader(cast("Any", store), split, ["offset", "event"])) as reader:
        for batch in reader:
            offsets, payloads = (column.to_pylist() for column in batch.columns)
            found += [(BASE + at, payload) for at, payload in zip(offsets, payloads, strict=True)]
        receipt = reader.receipt
    if receipt.entries + sum(gap.entries for gap in receipt.gaps) != len(data):
        raise WrongError(f"{receipt} does not account for {len(data)} bytes")
    if not set(found) <= set(wanted) or found != sorted(found) or len(set(found)) != len(found):
        raise WrongError("events that are not there, or twice")
    return found


def _small_stored(dice: Dice) -> bytes:
    data = _stored(dice)
    return data if len(data) < 1 << 14 else b""


# Notations


def _cut(dice: Dice) -> StreamCut:
    keys = {
        segment_id(dice.randrange(1 << 31), dice.choice([0, 1, (1 << 29) - 1])) for _ in range(dice.choice([1, 2, 40]))
    }
    return StreamCut(STREAM, {key: dice.choice([0, 1, 1 << 40, (1 << 61) - 1]) for key in keys})


def _cut_text(data: bytes, _: Dice) -> object:
    """The text inside of base64 and gzip, so that faults reach it."""
    cut = StreamCut.from_text(base64.b64encode(gzip.compress(data)).decode())
    if cut.offsets and StreamCut.from_text(cut.to_text()) != cut:
        raise WrongError("it does not come back")
    return cut


def _plain_cut_text(dice: Dice) -> bytes:
    return gzip.decompress(base64.b64decode(_cut(dice).to_text()))


def _cut_whole_text(data: bytes, _: Dice) -> object:
    return StreamCut.from_text(data.decode(errors="replace"))


def _cut_bytes(data: bytes, _: Dice) -> object:
    return StreamCut.from_bytes(data)


def _cut_json(data: bytes, _: Dice) -> object:
    cut = StreamCut.from_mapping(STREAM, offsets_from_json(STREAM, data.decode(errors="replace")))
    named = json.loads(data.decode(errors="replace"))
    if len(cut.offsets) != len(named):
        raise WrongError("a segment was dropped")
    return cut


def _pointer(data: bytes, _: Dice) -> object:
    return EventPointer.from_bytes(data)


def _segment_name(data: bytes, _: Dice) -> object:
    text = data.decode(errors="replace")
    segment = Segment.parse(text)
    if segment.name not in {text, f"{text}.#epoch.0"}:
        raise WrongError(f"{text!r} is taken for {segment.name}")
    return segment


_COMPACT = ("compact_int", "compact_long", "compact_signed_long", "text")


def _compact_legal(dice: Dice) -> bytes:
    """Which kind, and some numbers of it."""
    kind = dice.randrange(3)
    bits = (30, 62, 61)[kind]
    values = (dice.getrandbits(dice.randint(1, bits)) for _ in range(dice.randint(1, 5)))
    return bytes([kind]) + b"".join(getattr(varint, _COMPACT[kind])(value) for value in values)


def _compact(data: bytes, _: Dice) -> object:
    reader = Reader(data[1:])
    found = []
    while reader.left:
        found.append(getattr(reader, _COMPACT[data[0] % len(_COMPACT)])())
    return found


# The controllers' answers


_GROUP = Group("scope", "hold", "id", 1)
_CALLS: tuple[Call[Any], ...] = (
    segment_calls.head(STREAM),
    segment_calls.current_segments(STREAM),
    segment_calls.segments_between(STREAM, {}, {}),
    segment_calls.successors(STREAM, 0),
    segment_calls.segment_open(STREAM, 0),
    segment_calls.cut_covers(STREAM, {}),
    segment_calls.store_of(STREAM, 0),
    segment_calls.delegation_token(STREAM),
    stream_calls.stream_settings(STREAM),
    stream_calls.list_scopes(),
    stream_calls.list_streams("scope"),
    hold_calls.list_holds(STREAM),
    hold_calls.find_hold(_GROUP),
    hold_calls.create_hold(_GROUP, {}, STREAM),
    hold_calls.move_hold(_GROUP, STREAM, {}),
    stream_calls.scale(STREAM, [0], [(0.0, 1.0)], 5),
    stream_calls.scale_done(STREAM, 1),
    transaction_calls.begin_transaction(STREAM, 5),
    transaction_calls.transaction_state(STREAM, 1, 2),
    stream_calls.truncate_stream(STREAM, {}),
    stream_calls.create_stream(STREAM),
)


def _answer(dice: Dice) -> bytes:
    """Which call, and an answer to it."""
    number = dice.randrange(len(_CALLS))
    return (
        bytes([number])
        + _ANSWERS.get(_CALLS[number].method, lambda call: call.answer())(_CALLS[number]).SerializeToString()
    )


def _owned(key: int) -> pb.OwnedRange:
    return pb.OwnedRange(segment=pb.SegmentKey(segment_id=key), low=0.0, high=1.0)


_ANSWERS: dict[str, Callable[[Call[Any]], Any]] = {
    "getSegments": lambda _: pb.HeadAnswer(positions=[pb.SegmentOffset(segment=pb.SegmentKey(segment_id=7), offset=5)]),
    "getCurrentSegments": lambda _: pb.OwnedRanges(ranges=[_owned(1), _owned((1 << 32) + 2)]),
    "getSegmentsBetween": lambda _: pb.SegmentKeys(segments=[pb.SegmentKey(segment_id=key) for key in range(9)]),
    "getSegmentsImmediatelyFollowing": lambda _: pb.Successors(entries=[pb.Successor(segment=_owned(3))]),
    "getURI": lambda _: pb.Node(host="127.0.0.1", port=12345),
    "getDelegationToken": lambda _: pb.TokenAnswer(token="a.b.c"),
    "getStreamConfiguration": lambda _: stream_calls.create_stream(STREAM).message,
    "listScopes": lambda _: pb.ScopePage(scopes=["a", "b"], page=pb.PageToken(token="t")),
    "listSubscribers": lambda _: pb.Subscribers(names=["a/b"]),
}


def _answers(data: bytes, _: Dice) -> object:
    call = _CALLS[data[0] % len(_CALLS)] if data else _CALLS[0]
    return value_of(call, data[1:])


def _scalings(dice: Dice) -> bytes:
    event = {"timestamp": dice.randrange(1 << 41), "segments": [{"number": 1, "epoch": 2}], "splits": 1, "merges": 0}
    return json.dumps(dice.choice([[event], {"scalingEvents": [event, event]}, []])).encode()


def _scaling_events(data: bytes, _: Dice) -> object:
    return events_of_json("the REST API", data)


def _token(dice: Dice) -> bytes:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": dice.randrange(1 << 33)}).encode()).decode().rstrip("=")
    return f"h.{claims}.s".encode()


def _token_end(data: bytes, _: Dice) -> object:
    return endpoint_fields.token_end(data.decode(errors="replace"))


def _vector(*kinds: str) -> Callable[[Dice], bytes]:
    found = [bytes.fromhex(one["hex"]) for one in VECTORS if one["kind"] in kinds and one.get("hex")]
    return lambda dice: dice.choice(found)


def _either(*ways: Callable[[Dice], bytes]) -> Callable[[Dice], bytes]:
    return lambda dice: dice.choice(ways)(dice)


DECODERS: tuple[Decoder, ...] = (
    Decoder("frames", _either(_frame, _vector("wire-frame")), _frames, (CorruptFrame,)),
    Decoder("infos", _info, _infos),
    Decoder("bytes", _bytes_answer, _bytes_read, (StreamsError,)),
    Decoder("events", _either(_stored, _vector("event")), _events, (CutNotAtEventBoundary, EventTooLarge)),
    Decoder("own events", _stored, _own_events),
    Decoder("reader", _small_stored, _read, (StreamsError,), is_moody=True),
    Decoder("marks", _mark_bytes, _marks),
    Decoder("cut text", _plain_cut_text, _cut_text, (InvalidRequest,)),
    Decoder("cut base64", lambda dice: _cut(dice).to_text().encode(), _cut_whole_text, (InvalidRequest,)),
    Decoder("cut bytes", _either(lambda dice: _cut(dice).to_bytes(), _vector("cut")), _cut_bytes),
    Decoder(
        "cut json", lambda dice: json.dumps(_cut(dice).to_model().to_json()).encode(), _cut_json, (InvalidRequest,)
    ),
    Decoder("pointer", _vector("event-pointer"), _pointer),
    Decoder("segment name", lambda _: SEGMENT.name.encode(), _segment_name, (InvalidRequest,)),
    Decoder("compact", _compact_legal, _compact),
    Decoder("answers", _answer, _answers, (StreamsError,)),
    Decoder("scaling events", _scalings, _scaling_events),
    Decoder("token", _token, _token_end),
)

assert all(one.name != other.name for one, other in pairwise(sorted(DECODERS, key=lambda d: d.name)))
