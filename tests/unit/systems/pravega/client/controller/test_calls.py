"""proto3 is silent about a wrong field number, so every call's negative answers are tested."""

from __future__ import annotations

import pytest

from airflow_provider_streams.errors import (
    InvalidName,
    InvalidRequest,
    ProtocolError,
    SourceNotFound,
    UnknownServerError,
)
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.client.controller import (
    hold_calls,
    segment_calls,
    stream_calls,
    transaction_calls,
)
from airflow_provider_streams.systems.pravega.client.controller.hold_calls import Group
from airflow_provider_streams.systems.pravega.client.stream_configuration import (
    Retention,
    RetentionKind,
    Scaling,
    ScalingKind,
    Settings,
)

STREAM = "scope/stream"
GROUP = Group("scope", "hold", "5c1f0a0e-0000-0000-0000-000000000001", 0)

ANSWERS = [
    (stream_calls.create_scope("s"), {0: True, 1: UnknownServerError, 2: False, 3: InvalidName}),
    (stream_calls.delete_scope("s"), {0: True, 1: UnknownServerError, 2: False, 3: InvalidRequest}),
    (
        stream_calls.create_stream(STREAM),
        {0: True, 1: UnknownServerError, 2: False, 3: SourceNotFound, 4: InvalidName},
    ),
    (
        stream_calls.update_stream(STREAM, Settings()),
        {0: True, 1: UnknownServerError, 2: SourceNotFound, 3: SourceNotFound, 4: InvalidRequest},
    ),
    (
        stream_calls.truncate_stream(STREAM, {0: 1}),
        {0: True, 1: UnknownServerError, 2: SourceNotFound, 4: InvalidRequest},
    ),
    (stream_calls.seal_stream(STREAM), {0: True, 1: UnknownServerError, 2: SourceNotFound}),
    (stream_calls.delete_stream(STREAM), {0: True, 1: UnknownServerError, 2: False, 3: InvalidRequest}),
    (stream_calls.scale_done(STREAM, 3), {0: False, 1: True, 2: InvalidRequest, 3: UnknownServerError}),
    (
        transaction_calls.ping_transaction(STREAM, 1, 2, 3),
        {0: True, 1: InvalidRequest, 2: False, 5: False, 6: False, 7: False},
    ),
    (
        transaction_calls.commit_transaction(STREAM, 1, 2),
        {0: True, 1: InvalidRequest, 2: SourceNotFound, 3: InvalidRequest},
    ),
    (
        transaction_calls.abort_transaction(STREAM, 1, 2),
        {0: True, 1: InvalidRequest, 2: SourceNotFound, 3: InvalidRequest},
    ),
    (
        hold_calls.move_hold(GROUP, STREAM, {0: 1}),
        {0: True, 1: UnknownServerError, 2: SourceNotFound, 3: SourceNotFound, 4: False, 5: InvalidRequest},
    ),
    (hold_calls.delete_hold(GROUP), {0: True, 1: UnknownServerError, 2: False}),
    (
        transaction_calls.transaction_state(STREAM, 1, 2),
        {0: transaction_calls.TransactionState.UNKNOWN, 3: transaction_calls.TransactionState.COMMITTED},
    ),
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
    call = stream_calls.scale(STREAM, [1], [(0.0, 1.0)], 5)
    assert not call.repeatable
    assert call.parse(pb.ScaleAnswer(status=0, epoch=7)) == 7
    assert call.parse(pb.ScaleAnswer(status=2, epoch=7)) is None
    with pytest.raises(UnknownServerError, match="could not scale the stream"):
        call.parse(pb.ScaleAnswer(status=1))


def test_a_missing_scope_is_told_from_one_without_streams():
    call = stream_calls.list_streams("s")
    assert call.parse(pb.StreamPage()).names == ()
    with pytest.raises(SourceNotFound, match="scope s"):
        call.parse(pb.StreamPage(status=2))


def test_a_missing_hold_is_not_found():
    with pytest.raises(SourceNotFound, match="hold scope/hold"):
        hold_calls.find_hold(GROUP).parse(pb.GroupAnswer(status=2))
    cut = pb.CutMessage(stream=pb.StreamName(scope="scope", stream="stream"))
    found = pb.GroupAnswer(settings=pb.GroupSettings(group_id="x", generation=3, start=[cut]))
    assert hold_calls.find_hold(GROUP).parse(found) == Group("scope", "hold", "x", 3, (STREAM,))


def test_a_creation_that_was_refused_is_no_hold():
    call = hold_calls.create_hold(GROUP, {0: 1}, STREAM)
    for status, error in ((1, UnknownServerError), (2, SourceNotFound), (3, InvalidName), (9, ProtocolError)):
        with pytest.raises(error):
            call.parse(call.answer(status=status))
    other = pb.GroupSettings(group_id="another", generation=0)
    assert call.parse(call.answer(settings=other)).group_id == "another", "of a group that was there"


def test_the_subscribers_of_a_missing_stream_are_not_none():
    call = hold_calls.list_holds(STREAM)
    assert call.parse(pb.Subscribers(names=["a/b"])) == ("a/b",)
    with pytest.raises(SourceNotFound):
        call.parse(pb.Subscribers(status=2))
    with pytest.raises(UnknownServerError):
        call.parse(pb.Subscribers(status=1))


def test_numbers_that_cannot_be_sent_and_kinds_that_are_not_known_are_typed():
    for settings in (
        Settings(Scaling(min_segments=1 << 31)),
        Settings(retention=Retention(RetentionKind.SIZE, 1 << 63)),
    ):
        with pytest.raises(InvalidRequest, match="cannot be sent"):
            stream_calls.create_stream(STREAM, settings)
    for answer in (pb.StreamSettings(scaling=pb.Scaling(kind=9)), pb.StreamSettings(retention=pb.Retention(kind=9))):
        with pytest.raises(ProtocolError, match="not known"):
            stream_calls.stream_settings(STREAM).parse(answer)
    with pytest.raises(ProtocolError, match="not known"):
        transaction_calls.transaction_state(STREAM, 1, 2).parse(pb.StatusAnswer(status=9))


@pytest.mark.parametrize("key", [-1, 1 << 31, -(1 << 63)])
def test_ids_that_no_segment_can_have_are_refused_in_every_answer(key):
    segment = pb.SegmentKey(segment_id=key)
    owned = pb.OwnedRange(segment=segment)
    for call, answer in (
        (segment_calls.head(STREAM), pb.HeadAnswer(positions=[pb.SegmentOffset(segment=segment)])),
        (segment_calls.current_segments(STREAM), pb.OwnedRanges(ranges=[owned])),
        (segment_calls.segments_between(STREAM, {}, {}), pb.SegmentKeys(segments=[segment])),
        (segment_calls.successors(STREAM, 0), pb.Successors(entries=[pb.Successor(segment=owned)])),
    ):
        with pytest.raises(ProtocolError, match="with the id"):
            call.parse(answer)
    with pytest.raises(ProtocolError, match="before the first byte"):
        segment_calls.head(STREAM).parse(pb.HeadAnswer(positions=[pb.SegmentOffset(offset=-1)]))


@pytest.mark.parametrize("node", [pb.Node(), pb.Node(host="a"), pb.Node(port=5), pb.Node(host="a", port=70_000)])
def test_an_address_that_is_none_is_refused(node):
    with pytest.raises(ProtocolError, match="no segment store's address"):
        segment_calls.store_of(STREAM, 0).parse(node)


def test_settings_survive_the_wire():
    settings = Settings(
        Scaling(ScalingKind.EVENTS_RATE, 100, 2, 3), Retention(RetentionKind.SIZE, 10, 20), ("a", "b"), 7, 8
    )
    message = stream_calls.create_stream(STREAM, settings).message
    again = type(message).FromString(message.SerializeToString())
    assert stream_calls.stream_settings(STREAM).parse(again) == settings
    assert stream_calls.stream_settings(STREAM).parse(stream_calls.create_stream(STREAM).message) == Settings()


def test_places_are_asked_for_without_permission_to_write():
    assert segment_calls.head(STREAM).message.stream.access == pb.ACCESS_NONE
    assert segment_calls.current_segments(STREAM).message.access == pb.ACCESS_NONE
    assert segment_calls.delegation_token(STREAM).message.access == pb.ACCESS_READ


def test_segments_between_are_in_reading_order():
    keys = [pb.SegmentKey(segment_id=key) for key in (8589934597, 0, 4294967298)]
    assert segment_calls.segments_between(STREAM, {}, {}).parse(pb.SegmentKeys(segments=keys)) == (
        0,
        4294967298,
        8589934597,
    )
