"""Our messages have the field numbers of Pravega's own: a wrong one would read as the default, which is success."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import isfunction
from itertools import starmap
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from airflow_provider_streams.systems.pravega.client.controller import (
    hold_calls,
    segment_calls,
    stream_calls,
    transaction_calls,
)
from airflow_provider_streams.systems.pravega.client.controller.call import Call
from airflow_provider_streams.systems.pravega.client.controller.hold_calls import Group
from airflow_provider_streams.systems.pravega.client.stream_configuration import Settings

pytestmark = pytest.mark.pravega

STREAM = "scope/stream"
GROUP = Group("scope", "hold")
CALLS = [
    stream_calls.create_scope("s"),
    stream_calls.delete_scope("s"),
    stream_calls.scope_exists("s"),
    stream_calls.list_scopes(),
    stream_calls.list_streams("s"),
    stream_calls.list_streams("s", tag="t"),
    stream_calls.stream_exists(STREAM),
    stream_calls.create_stream(STREAM),
    stream_calls.update_stream(STREAM, Settings()),
    stream_calls.stream_settings(STREAM),
    stream_calls.truncate_stream(STREAM, {}),
    stream_calls.seal_stream(STREAM),
    stream_calls.delete_stream(STREAM),
    stream_calls.scale(STREAM, [], [], 0),
    stream_calls.scale_done(STREAM, 0),
    segment_calls.head(STREAM),
    segment_calls.current_segments(STREAM),
    segment_calls.epoch_segments(STREAM, 0),
    segment_calls.segments_between(STREAM, {}, {}),
    segment_calls.successors(STREAM, 0),
    segment_calls.segment_open(STREAM, 0),
    segment_calls.cut_covers(STREAM, {}),
    segment_calls.store_of(STREAM, 0),
    segment_calls.delegation_token(STREAM),
    transaction_calls.begin_transaction(STREAM, 0),
    transaction_calls.ping_transaction(STREAM, 0, 0, 0),
    transaction_calls.commit_transaction(STREAM, 0, 0),
    transaction_calls.abort_transaction(STREAM, 0, 0),
    transaction_calls.transaction_state(STREAM, 0, 0),
    hold_calls.create_hold(GROUP, {}, STREAM),
    hold_calls.find_hold(GROUP),
    hold_calls.move_hold(GROUP, STREAM, {}),
    hold_calls.delete_hold(GROUP),
    hold_calls.list_holds(STREAM),
]
_ALIKE = {FieldDescriptor.TYPE_ENUM: FieldDescriptor.TYPE_INT32}


@pytest.fixture(scope="module")
def methods(peer) -> dict[str, Any]:
    file = FileDescriptorProto.FromString(bytes.fromhex(peer.ask("interface")["file"]))
    found = DescriptorPool().AddSerializedFile(file.SerializeToString())
    (service,) = found.services_by_name.values()
    return dict(service.methods_by_name)


def differences(ours: Descriptor, theirs: Descriptor) -> Iterator[str]:
    for field in ours.fields:
        other = theirs.fields_by_number.get(field.number)
        if other is None:
            yield f"{theirs.name} has no field {field.number}, which we call {field.name}"
        elif _kind(field) != _kind(other):
            yield f"{theirs.name}.{other.name} is of another kind than our {ours.name}.{field.name}"
        elif field.message_type is not None:
            yield from differences(field.message_type, other.message_type)


def _kind(field: FieldDescriptor) -> tuple[int, bool]:
    return _ALIKE.get(field.type, field.type), field.is_repeated


def test_every_call_is_listed():
    made = [
        name
        for module in (stream_calls, segment_calls, hold_calls, transaction_calls)
        for name, function in vars(module).items()
        if isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    ]
    assert len(CALLS) - 1 == len(made), "list_streams stands for two"


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.method)
def test_messages_and_answers_are_those_of_the_server(methods, call: Call[Any]):
    method = methods[call.method]
    pairs = ((call.message.DESCRIPTOR, method.input_type), (call.answer.DESCRIPTOR, method.output_type))
    assert [text for found in starmap(differences, pairs) for text in found] == []
