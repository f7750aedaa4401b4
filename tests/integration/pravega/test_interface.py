"""Our messages have the field numbers of Pravega's own: a wrong one would read as the default, which is success."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from airflow_provider_streams.systems.pravega import calls
from airflow_provider_streams.systems.pravega.calls import Call, Group, Settings

pytestmark = pytest.mark.pravega

STREAM = "scope/stream"
GROUP = Group("scope", "hold")
CALLS = [
    calls.create_scope("s"),
    calls.delete_scope("s"),
    calls.scope_exists("s"),
    calls.list_scopes(),
    calls.list_streams("s"),
    calls.list_streams("s", tag="t"),
    calls.stream_exists(STREAM),
    calls.create_stream(STREAM),
    calls.update_stream(STREAM, Settings()),
    calls.stream_settings(STREAM),
    calls.truncate_stream(STREAM, {}),
    calls.seal_stream(STREAM),
    calls.delete_stream(STREAM),
    calls.scale(STREAM, [], [], 0),
    calls.scale_done(STREAM, 0),
    calls.head(STREAM),
    calls.current_segments(STREAM),
    calls.epoch_segments(STREAM, 0),
    calls.segments_between(STREAM, {}, {}),
    calls.successors(STREAM, 0),
    calls.owners_after(STREAM, 0),
    calls.segment_open(STREAM, 0),
    calls.cut_covers(STREAM, {}),
    calls.store_of(STREAM, 0),
    calls.delegation_token(STREAM),
    calls.begin_transaction(STREAM, 0),
    calls.ping_transaction(STREAM, 0, 0, 0),
    calls.commit_transaction(STREAM, 0, 0),
    calls.abort_transaction(STREAM, 0, 0),
    calls.transaction_state(STREAM, 0, 0),
    calls.create_hold(GROUP, {}, STREAM),
    calls.find_hold(GROUP),
    calls.move_hold(GROUP, STREAM, {}),
    calls.delete_hold(GROUP),
    calls.list_holds(STREAM),
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
    made = {name for name in calls.__all__ if callable(getattr(calls, name)) and name.islower()}
    assert len(CALLS) - 1 == len(made), "list_streams stands for two"


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.method)
def test_messages_and_answers_are_those_of_the_server(methods, call: Call[Any]):
    method = methods[call.method]
    pairs = ((call.message.DESCRIPTOR, method.input_type), (call.answer.DESCRIPTOR, method.output_type))
    assert [text for found in starmap(differences, pairs) for text in found] == []
