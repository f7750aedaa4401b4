"""Our codecs against bytes that Pravega's own classes and servers made."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from dataclasses import fields
from pathlib import Path
from uuid import UUID

import pytest

from airflow_provider_streams.errors import InvalidName, InvalidRequest
from airflow_provider_streams.systems.pravega.client import varint, wire_protocol
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.metadata import segment_names
from airflow_provider_streams.systems.pravega.metadata.event_pointer import EventPointer
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import UNBOUNDED, StreamCut
from airflow_provider_streams.systems.pravega.reading.event_decoder import EventParser

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())["vectors"]


def of_kind(*kinds: str):
    chosen = [vector for vector in VECTORS if vector["kind"] in kinds]
    assert chosen
    return pytest.mark.parametrize("vector", chosen, ids=lambda vector: vector["name"])


def decoded(frame: bytes) -> tuple[wire_protocol.Message, bytes]:
    kind, length = wire_protocol.frame_size(frame[:8])
    message = wire_protocol.decode(kind, memoryview(frame)[8 : 8 + length])
    assert message is not None
    return message, frame[8 + length :]


def plain(message: wire_protocol.Message) -> dict[str, object]:
    values: dict[str, object] = {"type": message.TYPE}
    for field in fields(message):
        value = getattr(message, field.name)
        if isinstance(value, memoryview):
            values[f"{field.name}_hex"] = value.hex()
        else:
            values[field.name] = str(value) if isinstance(value, UUID) else value
    return values


@of_kind("wire-frame")
def test_frames_are_read_as_recorded_and_written_back_byte_for_byte(vector):
    frame = bytes.fromhex(vector["hex"])
    message, rest = decoded(frame)
    assert not rest
    assert plain(message) == vector["fields"]
    assert wire_protocol.encode(message) == frame


@of_kind("wire-frames")
def test_an_append_is_two_frames(vector):
    first, rest = decoded(bytes.fromhex(vector["hex"]))
    second, rest = decoded(rest)
    assert not rest
    assert plain(first) == vector["fields"]["block"]
    assert plain(second) == vector["fields"]["end"]
    assert wire_protocol.encode(first) + wire_protocol.encode(second) == bytes.fromhex(vector["hex"])


@of_kind("event")
def test_a_stored_event_is_a_header_and_its_payload(vector):
    data = bytes.fromhex(vector["hex"])
    events = EventParser("s/t/0.#epoch.0", 0, len(data)).feed(memoryview(data))
    assert events is not None
    assert events.payloads.to_pylist() == [vector["fields"]["payload_text"].encode()]


@of_kind("cut")
def test_cuts_are_read_from_text_and_bytes_alike(vector):
    if "stream" not in vector["fields"]:
        assert (vector["text"], vector["hex"]) == (UNBOUNDED, "")
        return
    cut = StreamCut(
        vector["fields"]["stream"], {one["segment_id"]: one["offset"] for one in vector["fields"]["positions"]}
    )
    assert StreamCut.from_text(vector["base64"]) == cut
    if vector.get("hex"):
        assert StreamCut.from_bytes(bytes.fromhex(vector["hex"]) + b"\0" * 7) == cut
        assert len(cut.to_bytes()) == len(bytes.fromhex(vector["hex"]))
        assert StreamCut.from_bytes(cut.to_bytes()) == cut
    if cut.offsets:
        assert StreamCut.from_text(cut.to_text()) == cut
        parts = [set(part.split(",")) for part in vector["fields"]["plain_text"].split(":")]
        assert [set(p.split(",")) for p in gzip.decompress(b64decode(cut.to_text())).decode().split(":")] == parts
    else:
        with pytest.raises(InvalidRequest, match="without segments"):
            cut.to_text()


@of_kind("cut-bad")
def test_texts_that_are_no_cuts_are_refused(vector):
    with pytest.raises(InvalidRequest, match="is not a stream cut"):
        StreamCut.from_text(vector.get("text", vector.get("base64")))


@of_kind("event-pointer")
def test_event_pointers_have_the_bytes_of_java(vector):
    pointer = EventPointer(*(vector["fields"][name] for name in ("segment", "offset", "length")))
    assert pointer.to_bytes().hex() == vector["hex"]
    assert EventPointer.from_bytes(bytes.fromhex(vector["hex"])) == pointer


@of_kind("compact-int", "compact-long", "compact-signed-long")
def test_compact_integers(vector):
    name = vector["kind"].replace("-", "_")
    assert getattr(varint, name)(vector["fields"]["value"]).hex() == vector["hex"]
    assert getattr(varint.Reader(bytes.fromhex(vector["hex"])), name)() == vector["fields"]["value"]


@of_kind("segment-name")
def test_segment_names(vector):
    wanted = vector["fields"]
    if "parent" in wanted:
        assert Segment.parse(wanted["parent"]).transaction(wanted["high"], wanted["low"]) == vector["text"]
        with pytest.raises(InvalidName, match="transaction"):
            Segment.parse(vector["text"])
        return
    segment = Segment.parse(vector["text"])
    assert segment == (f"{wanted['scope']}/{wanted['stream']}", wanted["segment_id"])
    assert (segment.number, segment.epoch, segment.name) == (wanted["number"], wanted["epoch"], vector["text"])


@of_kind("stream-name")
def test_streams_that_pravega_makes_for_itself_are_known(vector):
    assert segment_names.is_internal(vector["text"])
    if "stream" in vector["fields"]:
        assert segment_names.mark_stream(f"scope/{vector['fields']['stream']}") == f"scope/{vector['text']}"


@of_kind("protobuf")
def test_recorded_protobuf(vector):
    assert list(pb.Subscribers.FromString(bytes.fromhex(vector["hex"])).names) == vector["fields"]["subscribers"]
