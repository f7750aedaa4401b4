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

from airflow_provider_streams.systems.pravega.client import controller_calls, hold_calls, transaction_calls
from airflow_provider_streams.systems.pravega.client.controller_call import Call
from airflow_provider_streams.systems.pravega.client.hold_calls import Group
from airflow_provider_streams.systems.pravega.client.stream_configuration import Settings

pytestmark = pytest.mark.pravega

STREAM = "scope/stream"
GROUP = Group("scope", "hold")
CALLS = [
    controller_calls.create_scope("s"),
    controller_calls.delete_scope("s"),
    controller_calls.scope_exists("s"),
    controller_calls.list_scopes(),
    controller_calls.list_streams("s"),
    controller_calls.list_streams("s", tag="t"),
    controller_calls.stream_exists(STREAM),
    controller_calls.create_stream(STREAM),
    controller_calls.update_stream(STREAM, Settings()),
    controller_calls.stream_settings(STREAM),
    controller_calls.truncate_stream(STREAM, {}),
    controller_calls.seal_stream(STREAM),
    controller_calls.delete_stream(STREAM),
    controller_calls.scale(STREAM, [], [], 0),
    controller_calls.scale_done(STREAM, 0),
    controller_calls.head(STREAM),
    controller_calls.current_segments(STREAM),
    controller_calls.epoch_segments(STREAM, 0),
    controller_calls.segments_between(STREAM, {}, {}),
    controller_calls.successors(STREAM, 0),
    controller_calls.segment_open(STREAM, 0),
    controller_calls.cut_covers(STREAM, {}),
    controller_calls.store_of(STREAM, 0),
    controller_calls.delegation_token(STREAM),
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
        for module in (controller_calls, hold_calls, transaction_calls)
        for name, function in vars(module).items()
        if isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    ]
    assert len(CALLS) - 1 == len(made), "list_streams stands for two"


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.method)
def test_messages_and_answers_are_those_of_the_server(methods, call: Call[Any]):
    method = methods[call.method]
    pairs = ((call.message.DESCRIPTOR, method.input_type), (call.answer.DESCRIPTOR, method.output_type))
    assert [text for found in starmap(differences, pairs) for text in found] == []
