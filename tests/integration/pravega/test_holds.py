"""Holds on a real server: we refuse cuts that it would accept and truncate by; nothing is left over."""

from __future__ import annotations

import secrets

import pytest

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound, StartTrimmed, SystemUnavailable
from airflow_provider_streams.systems.pravega.client.controller import hold_calls, stream_calls
from airflow_provider_streams.systems.pravega.metadata.segment_names import segment_id
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.operations import hold

pytestmark = pytest.mark.pravega


@pytest.fixture
def name(stream):
    return hold.name_for("my_dag.read_orders", stream)


def made_by_pravega(lab) -> set[str]:
    """The streams of the scope that a hold needs, and every hold."""
    found = set(lab.call(stream_calls.list_streams(lab.scope)).names)
    streams = {name for name in found if "_RG" in name}
    return streams | {
        one for name in found - streams for one in lab.call(hold_calls.list_holds(name)) if "_MARK" not in name
    }


def test_a_hold_is_made_once_moved_and_released(lab, peer, stream, name):
    subscriber = f"{lab.scope}/{name}"
    with pytest.raises(SourceNotFound, match="hold my-dag"):
        lab.run(hold.move(stream, name, lab.head(stream)))
    assert lab.run(hold.place(stream, name))
    assert not lab.run(hold.place(stream, name)), "it is there already"
    assert lab.call(hold_calls.list_holds(stream)) == (subscriber,)
    peer.write(stream, 10)
    assert lab.run(hold.move(stream, name, lab.tail(stream)))
    assert not lab.run(hold.move(stream, name, lab.head(stream))), "it does not move back"
    other = lab.create("other")
    assert not lab.run(hold.release(other, name)), "a hold of another stream is left alone"
    assert lab.run(hold.release(stream, name))
    assert not lab.run(hold.release(stream, name))
    assert lab.call(hold_calls.list_holds(stream)) == ()
    assert made_by_pravega(lab) == set()


def test_places_that_the_stream_does_not_have_are_refused_and_nothing_is_left_over(lab, peer, stream, name):
    peer.write(stream, 10)
    early = lab.tail(stream)
    lab.split(stream)
    peer.write(stream, 10)
    (low, high), tail = lab.tail(stream).offsets, lab.tail(stream)
    wrong = {
        "ahead of the stream": {low: tail.offsets[low] + 1, high: 0},
        "is ahead of": {low: (1 << 63) - 1, high: (1 << 63) - 1},
        "is no segment": {segment_id(9, 9): 5},
        "partial": {low: 0},
        "partial: its": {0: 5, low: 0, high: 0},
        "a reader group's position": {low: -1, high: 0},
        "names no segment": {},
    }
    for message, offsets in wrong.items():
        with pytest.raises(InvalidRequest, match=message):
            lab.run(hold.place(stream, name, StreamCut(stream, offsets)))
        assert made_by_pravega(lab) == set(), message
    assert lab.run(hold.place(stream, name, early))
    for message, offsets in wrong.items():
        with pytest.raises(InvalidRequest, match=message):
            lab.run(hold.move(stream, name, StreamCut(stream, offsets)))
    assert lab.run(hold.move(stream, name, tail)), "it stood where it was, and can still move"
    crossing = StreamCut(stream, {low: 0, high: tail.offsets[high]})
    assert not lab.run(hold.move(stream, name, crossing))
    assert lab.run(hold.release(stream, name))


def test_a_place_that_retention_has_passed_cannot_be_held_any_more(lab, peer, stream, name):
    peer.write(stream, 10)
    early = lab.tail(stream)
    peer.write(stream, 10)
    lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))
    with pytest.raises(StartTrimmed, match="1,080 bytes"):
        lab.run(hold.place(stream, name, early))
    assert made_by_pravega(lab) == set()
    assert lab.run(hold.place(stream, name))
    assert not lab.run(hold.move(stream, name, early)), "it is at the head, after that"
    lab.run(hold.release(stream, name))


def test_readers_that_look_alike_have_holds_of_their_own_and_one_reader_has_one_on_each_stream(lab, stream):
    other = lab.create("other")
    readers = ["dag_a.b", "dag-a.b", "dag.a.b"]
    names = {hold.name_for(reader, one) for reader in readers for one in (stream, other)}
    assert len(names) == 6
    for reader in readers:
        for one in (stream, other):
            assert lab.run(hold.place(one, hold.name_for(reader, one)))
    assert len(lab.call(hold_calls.list_holds(stream))) == len(lab.call(hold_calls.list_holds(other))) == 3
    assert lab.run(hold.release(stream, hold.name_for("dag_a.b", stream)))
    assert len(lab.call(hold_calls.list_holds(stream))) == 2
    assert len(lab.call(hold_calls.list_holds(other))) == 3
    for reader in readers:
        for one in (stream, other):
            lab.run(hold.release(one, hold.name_for(reader, one)))
    assert made_by_pravega(lab) == set()


def test_a_name_that_a_group_of_another_stream_has_is_refused_and_the_group_stays(lab, stream):
    other = lab.create("other")
    assert lab.run(hold.place(other, "taken"))
    before = made_by_pravega(lab)
    with pytest.raises(InvalidRequest, match="'taken' was not made: a reader group of this name is there already"):
        lab.run(hold.place(stream, "taken"))
    assert made_by_pravega(lab) == before
    assert lab.run(hold.release(other, "taken"))


@pytest.mark.parametrize("lost", ["updateSubscriberStreamCut", "createReaderGroup"])
def test_a_hold_that_fails_half_way_is_taken_back(lab, stream, name, monkeypatch, lost):
    call = lab.system.client.call

    def failing(one):
        if one.method == "createReaderGroup" and lost == one.method:
            call(one)  # it is done, but its answer is lost
        if one.method == lost:
            raise SystemUnavailable("the controller", "it died")
        return call(one)

    monkeypatch.setattr(lab.system.client, "call", failing)
    with pytest.raises(SystemUnavailable, match="it died"):
        lab.run(hold.place(stream, name))
    monkeypatch.undo()
    assert made_by_pravega(lab) == set()


def test_a_hold_can_be_made_on_a_stream_made_again_although_the_old_one_was_never_released(lab, stream, name):
    """Pravega cannot remove a hold whose stream is gone, and answers nothing to who tries."""
    for _ in range(2):
        assert lab.run(hold.place(stream, name))
        lab.call(stream_calls.seal_stream(stream))
        lab.call(stream_calls.delete_stream(stream))
        with pytest.raises(SourceNotFound):
            lab.run(hold.move(stream, name, StreamCut(stream, {0: 0})))
        assert not lab.run(hold.release(stream, name))
        lab.create()
    assert lab.run(hold.place(stream, name))
    assert lab.call(hold_calls.list_holds(stream)) == (f"{lab.scope}/{name}.3",)
    assert hold.is_held(lab.call(hold_calls.list_holds(stream)), stream, "my_dag.read_orders")
    assert not lab.run(hold.place(stream, name))
    assert lab.run(hold.move(stream, name, lab.tail(stream)))
    assert lab.run(hold.release(stream, name))
    assert lab.call(hold_calls.list_holds(stream)) == ()


def test_a_scope_made_for_a_stream_that_cannot_be_is_removed_again(lab):
    from airflow_provider_streams.systems.pravega.operations import administration
    from airflow_provider_streams.systems.pravega.operations.stream_settings import StreamSettings

    scope = f"test-{secrets.token_hex(4)}"
    for stream in (f"{scope}/a_b", f"{scope}/{'x' * 300}"):
        with pytest.raises(InvalidRequest):
            lab.run(administration.create(stream, StreamSettings(), make_scope=True))
        assert not lab.call(stream_calls.scope_exists(scope))
