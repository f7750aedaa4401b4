from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    InvalidName,
    InvalidRequest,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.broker_client import BrokerClient
from airflow_provider_streams.systems.pulsar.client.wire.commands import (
    TRANSIENT,
    decode_command,
    encode_command,
    server_error,
)
from airflow_provider_streams.systems.pulsar.client.wire.frames import FrameBuffer, encode_frame
from tests.fuzz.writer import usual

NUMBERS = {
    FieldDescriptor.TYPE_INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.TYPE_UINT64: st.integers(0, (1 << 64) - 1),
    FieldDescriptor.TYPE_INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_UINT32: st.integers(0, (1 << 32) - 1),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_STRING: st.text(),
    FieldDescriptor.TYPE_BYTES: st.binary(),
    FieldDescriptor.TYPE_ENUM: st.just(0),
}
BODIES = [field for field in pb.BaseCommand.DESCRIPTOR.fields if field.message_type]


def values(message):
    """Any value of a message's class, by its description."""
    fields = {}
    for item in message.DESCRIPTOR.fields:
        value = values(item.message_type._concrete_class) if item.message_type else NUMBERS[item.type]
        fields[item.name] = st.lists(value) if item.is_repeated else st.none() | value
    return st.builds(message, **fields)


COMMANDS = st.sampled_from([field.message_type._concrete_class for field in BODIES]).flatmap(values)


@given(COMMANDS)
def test_every_command_survives_its_bytes(command):
    assert decode_command(encode_command(command)) == command


@given(COMMANDS)
def test_a_command_is_found_by_the_type_that_its_frame_states(command):
    number = next(field.number for field in BODIES if field.message_type is command.DESCRIPTOR)
    data = encode_frame(command)
    buffer = FrameBuffer(block_bytes=len(data))
    buffer.space()[: len(data)] = data
    (frame,) = buffer.received(len(data))
    assert buffer.kind(frame) == number
    assert buffer.command(frame) == command


@given(st.binary(max_size=200))
def test_any_bytes_are_a_command_or_a_protocol_error(data):
    with contextlib.suppress(ProtocolError):
        decode_command(data)


@given(COMMANDS, st.data())
def test_a_changed_command_is_a_command_or_a_protocol_error(command, data):
    changed = bytearray(encode_command(command))
    at = data.draw(st.integers(0, len(changed) - 1))
    changed[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError):
        decode_command(bytes(changed[: data.draw(st.integers(0, len(changed)))]))


@given(COMMANDS)
def test_what_a_newer_broker_adds_is_skipped(command):
    number = next(field.number for field in BODIES if field.message_type is command.DESCRIPTOR)
    more = usual([(100, b"new"), (101, 7)])
    body = command.SerializeToString() + more
    found = decode_command(usual([(1, number), (number, body), (100, b"new")]))
    assert type(found) is type(command)
    found.DiscardUnknownFields()
    assert found == command


def test_bytes_are_those_of_the_public_protocol():
    # type CONNECT (field 1 = 2), body in field 2: client_version "x", protocol_version 19
    connect = pb.CommandConnect(client_version="x", protocol_version=19)
    assert encode_command(connect) == bytes.fromhex("08021205" + "0a0178" + "2013")
    # an id as the broker writes it: ledger 43, entry 0, batch index 1 of 5
    found = pb.MessageIdData.FromString(bytes.fromhex("082b100020013005"))
    assert found == pb.MessageIdData(ledgerId=43, entryId=0, batch_index=1, batch_size=5)
    # no ledger: two's complement in ten bytes
    assert pb.MessageIdData(ledgerId=-1).SerializeToString() == bytes.fromhex("08ffffffffffffffffff01")


def test_ids_agree_with_the_official_client():
    pulsar = pytest.importorskip("pulsar")
    theirs = pulsar.MessageId(3, 123456789012, 77, 4)
    ours = pb.MessageIdData.FromString(theirs.serialize())
    assert (ours.ledgerId, ours.entryId, ours.partition, ours.batch_index) == (123456789012, 77, 3, 4)
    data = pb.MessageIdData(ledgerId=5, entryId=6, partition=2, batch_index=1).SerializeToString()
    back = pulsar.MessageId.deserialize(data)
    assert (back.ledger_id(), back.entry_id(), back.partition(), back.batch_index()) == (5, 6, 2, 1)


def test_what_we_send_creates_nothing_and_leaves_nothing(fake_broker):
    with BrokerClient(Endpoint(fake_broker.url)) as client:
        client.subscribe("persistent://public/default/t", (1, 0))
    (subscribe,) = fake_broker.of(pb.CommandSubscribe)
    # false is written: absent means true
    assert (subscribe.durable, subscribe.force_topic_creation, subscribe.subType) == (False, False, 0)


def test_an_unknown_command_is_not_for_us_and_one_without_a_type_is_none():
    assert decode_command(bytes.fromhex("084f")) is None
    with pytest.raises(ProtocolError, match="without a type"):
        decode_command(b"")


def test_an_error_that_only_a_newer_broker_knows_is_an_error(fake_broker):
    answer = pb.CommandLookupTopicResponse
    fake_broker.answers[pb.CommandLookupTopic] = lambda asked: [
        answer(request_id=asked.request_id, response=answer.Failed, error=99, message=b"new \xff kind")
    ]
    with (
        pytest.raises(ProtocolError, match="error 99: new \ufffd kind"),
        BrokerClient(Endpoint(fake_broker.url)) as client,
    ):
        client.subscribe("persistent://public/default/t", (1, 0))


@pytest.mark.parametrize("place", [(1 << 63, 0), (0, -(1 << 63) - 1)])
def test_a_place_that_no_message_id_holds_is_refused(fake_broker, place):
    with pytest.raises(InvalidRequest, match="no message id"), BrokerClient(Endpoint(fake_broker.url)) as client:
        client.subscribe("persistent://public/default/t", place)


WITHOUT_PROTOBUF = """
import sys
sys.modules["google.protobuf"] = None
import airflow_provider_streams.systems.pulsar.metadata.message_id
import airflow_provider_streams.systems.pulsar.reading.entry_fetcher
"""


def test_without_protobuf_the_missing_extra_is_named():
    command = [sys.executable, "-c", WITHOUT_PROTOBUF]
    seen = subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()
    assert "MissingDependency" in seen[-1]
    assert "[pulsar]" in seen[-1]


def refusal(number: int, message: bytes = b"why") -> pb.CommandError:
    return pb.CommandError(error=number, message=message)


@pytest.mark.parametrize("number", [*pb.ServerError.values(), 99])
def test_passing_failures_are_retryable_and_no_others(number):
    refused = refusal(number, b"why\n at java.lang")
    error = server_error(refused, where="broker", topic="persistent://a/b/c", action="read")
    assert isinstance(error, StreamsError)
    assert error.retryable == (number in TRANSIENT)
    assert "java" not in str(error)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (3, AuthenticationFailed),
        (4, NotAuthorized),
        (6, SystemUnavailable),
        (11, SourceNotFound),
        (17, InvalidName),
        (22, ProtocolError),
    ],
)
def test_server_errors_are_ours(number, kind):
    assert type(server_error(refusal(number), where="broker", topic="t")) is kind
