from __future__ import annotations

import contextlib
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    InvalidName,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.systems.pulsar.wire import commands as c
from airflow_provider_streams.systems.pulsar.wire.failures import NAMES, TRANSIENT, server_error

UINT = st.integers(0, (1 << 64) - 1)
VALUES = {
    "int": UINT,
    "bool": st.booleans(),
    "str": st.text(),
    "bytes": st.binary(),
    "tuple[str, ...]": st.lists(st.text()).map(tuple),
}
SIGNED = {"ledger", "entry", "partition", "batch_index", "batch_size"}


def values(message):
    """Any value of a message's class, by its annotations."""
    fields = {}
    for item in dataclasses.fields(message):
        kind = str(item.type).removesuffix(" | None")
        if kind in VALUES:
            strategy = VALUES[kind]
            if item.name in SIGNED or (message is c.Error and item.name == "request_id"):
                strategy = st.integers(-(1 << 63), (1 << 63) - 1)
        else:
            strategy = values(getattr(c, kind))
        fields[item.name] = st.none() | strategy if str(item.type).endswith("| None") else strategy
    return st.builds(message, **fields)


@given(st.sampled_from(sorted(c.COMMANDS)).flatmap(lambda number: values(c.COMMANDS[number])))
def test_every_command_survives_its_bytes(command):
    assert c.decode_command(command.encode()) == command


@given(st.binary(max_size=200))
def test_any_bytes_are_a_command_or_a_protocol_error(data):
    with contextlib.suppress(ProtocolError):
        c.decode_command(data)


@given(st.sampled_from(sorted(c.COMMANDS)).flatmap(lambda number: values(c.COMMANDS[number])), st.data())
def test_a_changed_command_is_a_command_or_a_protocol_error(command, data):
    changed = bytearray(command.encode())
    at = data.draw(st.integers(0, len(changed) - 1))
    changed[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError):
        c.decode_command(bytes(changed[: data.draw(st.integers(0, len(changed)))]))


def test_bytes_are_those_of_the_public_protocol():
    # type CONNECT (field 1 = 2), body in field 2: client_version "x", protocol_version 19
    assert c.Connect("x", protocol_version=19).encode() == bytes.fromhex("08021205" + "0a0178" + "2013")
    # an id as the broker writes it: ledger 43, entry 0, batch index 1 of 5
    assert c.MessageIdData.from_bytes(bytes.fromhex("082b100020013005")) == c.MessageIdData(43, 0, -1, 1, 5)
    # earliest: two's complement in ten bytes
    assert c.EARLIEST.to_bytes()[:11] == bytes.fromhex("08ffffffffffffffffff01")


def test_ids_agree_with_the_official_client():
    pulsar = pytest.importorskip("pulsar")
    theirs = pulsar.MessageId(3, 123456789012, 77, 4)
    ours = c.MessageIdData.from_bytes(theirs.serialize())
    assert (ours.ledger, ours.entry, ours.partition, ours.batch_index) == (123456789012, 77, 3, 4)
    back = pulsar.MessageId.deserialize(c.MessageIdData(5, 6, 2, 1).to_bytes())
    assert (back.ledger_id(), back.entry_id(), back.partition(), back.batch_index()) == (5, 6, 2, 1)


def test_what_we_send_creates_nothing_and_leaves_nothing():
    subscribe = c.Subscribe("t", "s")
    assert (subscribe.durable, subscribe.force_topic_creation, subscribe.subscription_type) == (False, False, 0)
    assert b"\x78\x00" in subscribe.encode()  # field 15 is written although false: absent means true
    assert b"\x40\x00" in subscribe.encode()  # field 8, likewise
    assert b"\x30\x00" in c.Partitions("t", 1).encode()  # field 6, likewise


def test_unknown_commands_are_named_by_number():
    assert c.decode_command(bytes.fromhex("084f")) == c.Ignored(79)


@pytest.mark.parametrize("number", [*NAMES, 99])
def test_passing_failures_are_retryable_and_no_others(number):
    error = server_error(number, "why\n at java.lang", where="broker", topic="persistent://a/b/c", action="read")
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
    assert type(server_error(number, "why", where="broker", topic="t")) is kind
