"""Every call of the table once, with its negative answers: a wrong field number would read as success."""

from __future__ import annotations

import uuid

import pytest

from airflow_provider_streams.errors import InvalidName, InvalidRequest, SourceNotFound, UnclearAnswer
from airflow_provider_streams.systems.pravega import calls
from airflow_provider_streams.systems.pravega.calls import Group, Retention, RetentionKind, Scaling, Settings
from airflow_provider_streams.testing.servers.waiting import wait_until

pytestmark = pytest.mark.pravega


def test_scopes_and_streams_come_and_go(lab):
    scope = f"{lab.scope}-own"
    assert lab.call(calls.create_scope(scope))
    assert not lab.call(calls.create_scope(scope))
    assert lab.call(calls.scope_exists(scope))
    assert not lab.call(calls.scope_exists(scope + "x"))
    with pytest.raises(InvalidName):
        lab.call(calls.create_scope("a_b"))
    assert lab.call(calls.list_streams(scope)).names == ()
    stream = f"{scope}/t"
    assert lab.call(calls.create_stream(stream, Settings(tags=("red",))))
    assert not lab.call(calls.create_stream(stream))
    assert lab.call(calls.stream_exists(stream))
    assert not lab.call(calls.stream_exists(stream + "x"))
    assert stream in lab.call(calls.list_streams(scope)).names
    assert lab.call(calls.list_streams(scope, tag="red")).names == (stream,)
    with pytest.raises(SourceNotFound):
        lab.call(calls.list_streams(scope + "x"))
    with pytest.raises(SourceNotFound):
        lab.call(calls.create_stream(f"{scope}x/t"))
    with pytest.raises(InvalidName):
        lab.call(calls.create_stream(f"{scope}/a_b"))
    with pytest.raises(InvalidRequest, match="still has streams"):
        lab.call(calls.delete_scope(scope))
    with pytest.raises(InvalidRequest, match="must be sealed"):
        lab.call(calls.delete_stream(stream))
    assert lab.call(calls.seal_stream(stream))
    assert lab.call(calls.seal_stream(stream))
    with pytest.raises(InvalidRequest, match="is sealed"):
        lab.call(calls.update_stream(stream, Settings()))
    with pytest.raises(InvalidRequest, match="is sealed"):
        lab.call(calls.truncate_stream(stream, {0: 0}))
    assert lab.call(calls.delete_stream(stream))
    assert not lab.call(calls.delete_stream(stream))
    assert lab.call(calls.delete_scope(scope))
    assert not lab.call(calls.delete_scope(scope))


def test_settings_are_replaced_as_a_whole(lab, stream):
    changed = Settings(
        Scaling(min_segments=1), Retention(RetentionKind.SIZE, 1000, 2000), ("a",), timestamp_aggregation_ms=7
    )
    assert lab.call(calls.update_stream(stream, changed))
    assert lab.call(calls.stream_settings(stream)) == changed
    with pytest.raises(SourceNotFound):
        lab.call(calls.update_stream(stream + "x", changed))


def test_segments_can_be_asked_about(lab, stream):
    (only,) = lab.call(calls.current_segments(stream))
    assert (only.segment_id, only.low, only.high) == (0, 0.0, 1.0)
    assert lab.call(calls.segment_open(stream, 0))
    lab.split(stream)
    assert not lab.call(calls.segment_open(stream, 0))
    made = [segment.segment_id for segment in lab.call(calls.current_segments(stream))]
    assert lab.call(calls.successors(stream, 0)) == tuple(made)
    assert lab.call(calls.successors(stream, made[0])) == ()
    assert [segment.segment_id for segment in lab.call(calls.epoch_segments(stream, 0))] == [0]
    assert lab.call(calls.cut_covers(stream, dict.fromkeys(made, 0)))
    assert not lab.call(calls.cut_covers(stream, {made[0]: 0}))
    assert lab.call(calls.scale(stream, [0], [(0.0, 1.0)], 1)) is None, "sealed already"
    with pytest.raises(UnclearAnswer, match="could not scale"):
        lab.call(calls.scale(stream, [made[0]], [(0.0, 1.0)], 1))
    with pytest.raises(InvalidRequest, match="no epoch 99"):
        lab.call(calls.scale_done(stream, 99))


def test_a_transaction_s_states(lab, stream):
    made = lab.call(calls.begin_transaction(stream, 20_000))
    key = (made.high, made.low)
    assert [segment.segment_id for segment in made.segments] == [0]
    assert lab.call(calls.transaction_state(stream, *key)) is calls.TransactionState.OPEN
    assert lab.call(calls.ping_transaction(stream, *key, 20_000))
    assert lab.call(calls.commit_transaction(stream, *key))
    wait_until(
        lambda: lab.call(calls.transaction_state(stream, *key)) is calls.TransactionState.COMMITTED, "the commit"
    )
    assert lab.call(calls.commit_transaction(stream, *key)), "again"
    assert not lab.call(calls.ping_transaction(stream, *key, 20_000))
    with pytest.raises(InvalidRequest, match="abort the transaction"):
        lab.call(calls.abort_transaction(stream, *key))
    assert lab.call(calls.transaction_state(stream, 1, 2)) is calls.TransactionState.UNKNOWN
    with pytest.raises(InvalidRequest, match="lease value too large"):
        lab.call(calls.begin_transaction(stream, 700_000))


def test_a_hold_is_made_moved_and_released(lab, peer, stream):
    group = Group(lab.scope, "hold", str(uuid.uuid4()), 0)
    with pytest.raises(SourceNotFound, match="hold"):
        lab.call(calls.find_hold(group))
    made = lab.call(calls.create_hold(group, lab.head(stream).offsets, stream))
    assert lab.call(calls.find_hold(made)) == made
    wait_until(lambda: lab.call(calls.list_holds(stream)) == (made.subscriber,), "the subscriber")
    peer.write(stream, 10)
    assert lab.call(calls.move_hold(made, stream, lab.tail(stream).offsets))
    with pytest.raises((SourceNotFound, InvalidRequest)):
        lab.call(calls.move_hold(group._replace(name="other"), stream, lab.tail(stream).offsets))
    assert lab.call(calls.delete_hold(made))
    assert lab.call(calls.list_holds(stream)) == ()
