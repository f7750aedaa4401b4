"""proto3 is silent about a wrong field number, so every call's negative answers are tested."""

from __future__ import annotations

import pytest

from airflow_provider_streams.errors import InvalidName, InvalidRequest, ProtocolError, SourceNotFound
from airflow_provider_streams.systems.pravega import calls
from airflow_provider_streams.systems.pravega import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.calls import (
    Group,
    Retention,
    RetentionKind,
    Scaling,
    ScalingKind,
    Settings,
)

STREAM = "scope/stream"
GROUP = Group("scope", "hold", "5c1f0a0e-0000-0000-0000-000000000001", 0)

ANSWERS = [
    (calls.create_scope("s"), {0: True, 1: ProtocolError, 2: False, 3: InvalidName}),
    (calls.delete_scope("s"), {0: True, 1: ProtocolError, 2: False, 3: InvalidRequest}),
    (calls.create_stream(STREAM), {0: True, 1: ProtocolError, 2: False, 3: SourceNotFound, 4: InvalidName}),
    (
        calls.update_stream(STREAM, Settings()),
        {0: True, 1: ProtocolError, 2: SourceNotFound, 3: SourceNotFound, 4: InvalidRequest},
    ),
    (calls.truncate_stream(STREAM, {0: 1}), {0: True, 1: InvalidRequest, 2: SourceNotFound, 4: InvalidRequest}),
    (calls.seal_stream(STREAM), {0: True, 1: ProtocolError, 2: SourceNotFound}),
    (calls.delete_stream(STREAM), {0: True, 1: ProtocolError, 2: False, 3: InvalidRequest}),
    (calls.scale_done(STREAM, 3), {0: False, 1: True, 2: InvalidRequest, 3: ProtocolError}),
    (calls.ping_transaction(STREAM, 1, 2, 3), {0: True, 1: InvalidRequest, 2: False, 5: False, 6: False, 7: False}),
    (calls.commit_transaction(STREAM, 1, 2), {0: True, 1: InvalidRequest, 2: SourceNotFound, 3: InvalidRequest}),
    (calls.abort_transaction(STREAM, 1, 2), {0: True, 1: InvalidRequest, 2: SourceNotFound, 3: InvalidRequest}),
    (
        calls.move_hold(GROUP, STREAM, {0: 1}),
        {0: True, 1: ProtocolError, 2: SourceNotFound, 3: SourceNotFound, 4: False, 5: InvalidRequest},
    ),
    (calls.delete_hold(GROUP), {0: True, 1: ProtocolError, 2: False}),
    (calls.transaction_state(STREAM, 1, 2), {0: calls.TransactionState.UNKNOWN, 3: calls.TransactionState.COMMITTED}),
]


@pytest.mark.parametrize(
    ("call", "status", "meaning"),
    [(call, status, meaning) for call, answers in ANSWERS for status, meaning in answers.items()],
    ids=lambda value: getattr(value, "method", None),
)
def test_each_status_has_its_meaning(call, status, meaning):
    answer = call.answer(status=status)
    if isinstance(meaning, type) and issubclass(meaning, Exception):
        with pytest.raises(meaning, match="s"):
            call.parse(answer)
    else:
        assert call.parse(answer) is meaning or call.parse(answer) == meaning


def test_scaling_answers():
    call = calls.scale(STREAM, [1], [(0.0, 1.0)], 5)
    assert not call.repeatable
    assert call.parse(pb.ScaleAnswer(status=0, epoch=7)) == 7
    assert call.parse(pb.ScaleAnswer(status=2, epoch=7)) is None
    with pytest.raises(InvalidRequest, match="cannot be scaled"):
        call.parse(pb.ScaleAnswer(status=1))


def test_a_missing_scope_is_told_from_one_without_streams():
    call = calls.list_streams("s")
    assert call.parse(pb.StreamPage()).names == ()
    with pytest.raises(SourceNotFound, match="scope s"):
        call.parse(pb.StreamPage(status=2))


def test_a_missing_hold_is_not_found():
    with pytest.raises(SourceNotFound, match="hold scope/hold"):
        calls.find_hold(GROUP).parse(pb.GroupAnswer(status=2))
    found = pb.GroupAnswer(settings=pb.GroupSettings(group_id="x", generation=3))
    assert calls.find_hold(GROUP).parse(found) == Group("scope", "hold", "x", 3)


def test_settings_survive_the_wire():
    settings = Settings(
        Scaling(ScalingKind.EVENTS_RATE, 100, 2, 3), Retention(RetentionKind.SIZE, 10, 20), ("a", "b"), 7, 8
    )
    message = calls.create_stream(STREAM, settings).message
    again = type(message).FromString(message.SerializeToString())
    assert calls.stream_settings(STREAM).parse(again) == settings
    assert calls.stream_settings(STREAM).parse(calls.create_stream(STREAM).message) == Settings()


def test_places_are_asked_for_without_permission_to_write():
    assert calls.head(STREAM).message.stream.access == pb.ACCESS_NONE
    assert calls.current_segments(STREAM).message.access == pb.ACCESS_NONE
    assert calls.delegation_token(STREAM).message.access == pb.ACCESS_READ


def test_segments_between_are_in_reading_order():
    keys = [pb.SegmentKey(segment_id=key) for key in (8589934597, 0, 4294967298)]
    assert calls.segments_between(STREAM, {}, {}).parse(pb.SegmentKeys(segments=keys)) == (0, 4294967298, 8589934597)
