"""Every call of the table once, with its negative answers: a wrong field number would read as success."""

from __future__ import annotations

import uuid

import pytest

from airflow_provider_streams.errors import InvalidName, InvalidRequest, SourceNotFound, UnknownServerError
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
    Settings,
)
from stream_servers.waiting import wait_until

pytestmark = pytest.mark.pravega


def test_scopes_and_streams_come_and_go(lab):
    scope = f"{lab.scope}-own"
    assert lab.call(stream_calls.create_scope(scope))
    assert not lab.call(stream_calls.create_scope(scope))
    assert lab.call(stream_calls.scope_exists(scope))
    assert not lab.call(stream_calls.scope_exists(scope + "x"))
    with pytest.raises(InvalidName):
        lab.call(stream_calls.create_scope("a_b"))
    assert lab.call(stream_calls.list_streams(scope)).names == ()
    stream = f"{scope}/t"
    assert lab.call(stream_calls.create_stream(stream, Settings(tags=("red",))))
    assert not lab.call(stream_calls.create_stream(stream))
    assert lab.call(stream_calls.stream_exists(stream))
    assert not lab.call(stream_calls.stream_exists(stream + "x"))
    assert stream in lab.call(stream_calls.list_streams(scope)).names
    assert lab.call(stream_calls.list_streams(scope, tag="red")).names == (stream,)
    with pytest.raises(SourceNotFound):
        lab.call(stream_calls.list_streams(scope + "x"))
    with pytest.raises(SourceNotFound):
        lab.call(stream_calls.create_stream(f"{scope}x/t"))
    with pytest.raises(InvalidName):
        lab.call(stream_calls.create_stream(f"{scope}/a_b"))
    with pytest.raises(InvalidRequest, match="still has streams"):
        lab.call(stream_calls.delete_scope(scope))
    with pytest.raises(InvalidRequest, match="must be sealed"):
        lab.call(stream_calls.delete_stream(stream))
    assert lab.call(stream_calls.seal_stream(stream))
    assert lab.call(stream_calls.seal_stream(stream))
    with pytest.raises(InvalidRequest, match="is sealed"):
        lab.call(stream_calls.update_stream(stream, Settings()))
    with pytest.raises(InvalidRequest, match="is sealed"):
        lab.call(stream_calls.truncate_stream(stream, {0: 0}))
    assert lab.call(stream_calls.delete_stream(stream))
    assert not lab.call(stream_calls.delete_stream(stream))
    assert lab.call(stream_calls.delete_scope(scope))
    assert not lab.call(stream_calls.delete_scope(scope))


def test_settings_are_replaced_as_a_whole(lab, stream):
    changed = Settings(
        Scaling(min_segments=1), Retention(RetentionKind.SIZE, 1000, 2000), ("a",), timestamp_aggregation_ms=7
    )
    assert lab.call(stream_calls.update_stream(stream, changed))
    assert lab.call(stream_calls.stream_settings(stream)) == changed
    with pytest.raises(SourceNotFound):
        lab.call(stream_calls.update_stream(stream + "x", changed))


def test_segments_can_be_asked_about(lab, stream):
    (only,) = lab.call(segment_calls.current_segments(stream))
    assert (only.segment_id, only.low, only.high) == (0, 0.0, 1.0)
    assert lab.call(segment_calls.segment_open(stream, 0))
    lab.split(stream)
    assert not lab.call(segment_calls.segment_open(stream, 0))
    made = [segment.segment_id for segment in lab.call(segment_calls.current_segments(stream))]
    assert tuple(one.segment_id for one in lab.call(segment_calls.successors(stream, 0))) == tuple(made)
    assert lab.call(segment_calls.successors(stream, made[0])) == ()
    assert [segment.segment_id for segment in lab.call(segment_calls.epoch_segments(stream, 0))] == [0]
    assert lab.call(segment_calls.cut_covers(stream, dict.fromkeys(made, 0)))
    assert not lab.call(segment_calls.cut_covers(stream, {made[0]: 0}))
    assert lab.call(stream_calls.scale(stream, [0], [(0.0, 1.0)], 1)) is None, "sealed already"
    with pytest.raises(UnknownServerError, match="could not scale"):
        lab.call(stream_calls.scale(stream, [made[0]], [(0.0, 1.0)], 1))
    with pytest.raises(InvalidRequest, match="no epoch 99"):
        lab.call(stream_calls.scale_done(stream, 99))


def test_a_transaction_s_states(lab, stream):
    made = lab.call(transaction_calls.begin_transaction(stream, 20_000))
    key = (made.high, made.low)
    assert [segment.segment_id for segment in made.segments] == [0]
    assert lab.call(transaction_calls.transaction_state(stream, *key)) is transaction_calls.TransactionState.OPEN
    assert lab.call(transaction_calls.ping_transaction(stream, *key, 20_000))
    assert lab.call(transaction_calls.commit_transaction(stream, *key))
    wait_until(
        lambda: (
            lab.call(transaction_calls.transaction_state(stream, *key)) is transaction_calls.TransactionState.COMMITTED
        ),
        "the commit",
    )
    assert lab.call(transaction_calls.commit_transaction(stream, *key)), "again"
    assert not lab.call(transaction_calls.ping_transaction(stream, *key, 20_000))
    with pytest.raises(InvalidRequest, match="abort the transaction"):
        lab.call(transaction_calls.abort_transaction(stream, *key))
    assert lab.call(transaction_calls.transaction_state(stream, 1, 2)) is transaction_calls.TransactionState.UNKNOWN
    with pytest.raises(InvalidRequest, match="lease value too large"):
        lab.call(transaction_calls.begin_transaction(stream, 700_000))


def test_a_hold_is_made_moved_and_released(lab, peer, stream):
    group = Group(lab.scope, "hold", str(uuid.uuid4()), 0)
    with pytest.raises(SourceNotFound, match="hold"):
        lab.call(hold_calls.find_hold(group))
    made = lab.call(hold_calls.create_hold(group, lab.head(stream).offsets, stream))
    assert lab.call(hold_calls.find_hold(made)) == made
    wait_until(lambda: lab.call(hold_calls.list_holds(stream)) == (made.subscriber,), "the subscriber")
    peer.write(stream, 10)
    assert lab.call(hold_calls.move_hold(made, stream, lab.tail(stream).offsets))
    with pytest.raises((SourceNotFound, InvalidRequest)):
        lab.call(hold_calls.move_hold(group._replace(name="other"), stream, lab.tail(stream).offsets))
    assert lab.call(hold_calls.delete_hold(made))
    assert lab.call(hold_calls.list_holds(stream)) == ()
