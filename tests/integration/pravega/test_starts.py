"""Where windows start: at places that two cuts name, and at the head of a stream that was truncated."""

from __future__ import annotations

import pytest

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, StartUnproven, UnknownServerError
from airflow_provider_streams.systems.pravega.client.controller import segment_calls, stream_calls
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.operations import scaling

pytestmark = pytest.mark.pravega


@pytest.mark.parametrize("head", ["ends", "cut"])
def test_a_rolled_boundary_stays_a_start_however_retention_names_it(lab, peer, stream, head):
    peer.write(stream, 20)
    lab.split(stream)
    peer.write(stream, 20)
    boundary = lab.run(scaling.roll(stream, lab.tail(stream).offsets))
    assert boundary.cut.offsets.keys().isdisjoint(boundary.ends.offsets)
    peer.write(stream, 10)
    before = lab.digests(lab.plan(stream, None, boundary.cut))
    assert before == lab.digests(lab.plan(stream, None, boundary.ends)) == peer.digests(stream, None, boundary.cut)
    after = lab.digests(lab.plan(stream, boundary.cut))
    assert after == lab.digests(lab.plan(stream, boundary.ends)) == peer.digests(stream, boundary.cut, None)
    assert lab.call(stream_calls.truncate_stream(stream, getattr(boundary, head).offsets))
    assert lab.digests(lab.plan(stream, boundary.cut, on_unproven="fail")) == after


def test_an_end_that_looks_like_a_place_before_it_is_refused_with_the_way_on(lab, peer, stream):
    peer.write(stream, 20)
    end = lab.tail(stream)
    lab.split(stream)
    peer.write(stream, 10)
    after = StreamCut(stream, dict.fromkeys(lab.tail(stream).offsets, 0))
    assert lab.call(stream_calls.truncate_stream(stream, after.offsets))
    with pytest.raises(StartTrimmed, match=rf"if it starts at their very end, nothing is: {after.to_model()} is that"):
        lab.plan(stream, end)
    assert len(lab.read(lab.plan(stream, after))[0]) == 10


def test_tails_sampled_while_a_stream_scales_name_open_segments(lab, peer, stream, monkeypatch):
    lab.split(stream)
    peer.ask("load", *stream.split("/"), 2)
    tails = []
    for _ in range(6):
        lab.roll(stream)
        tails.append(lab.tail(stream))
    peer.ask("stop")
    for number, tail in enumerate(tails, start=2):
        assert all(segment.epoch >= number for segment in tail.segments)


def test_the_head_of_a_truncated_stream_is_an_unproven_start(lab, peer, stream):
    peer.write(stream, 20)
    assert [one.verdict for one in lab.plan(stream).ranges] == ["ok"]
    middle = lab.tail(stream)
    peer.write(stream, 20)
    assert lab.call(stream_calls.truncate_stream(stream, middle.offsets))
    (only,) = lab.plan(stream).ranges
    assert only.verdict == "unproven: it begins at the first event still held, of a stream that was truncated before"
    assert len(lab.read(lab.plan(stream))[0]) == 20, "it lands"
    with pytest.raises(StartUnproven, match="truncated before"):
        lab.plan(stream, on_unproven="fail")
    for given in (middle, StreamCut(stream, {0: 30 * 108})):
        assert [one.verdict for one in lab.plan(stream, given, on_unproven="fail").ranges] == ["ok"]
    assert lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))
    assert lab.plan(stream).ranges[0].verdict.startswith("unproven"), "also when nothing is left"


def test_a_stream_that_scaled_and_was_never_truncated_is_proven_from_its_head(lab, peer, stream):
    lab.split(stream)
    peer.write(stream, 20)
    lab.roll(stream)
    assert {one.verdict for one in lab.plan(stream, on_unproven="fail").ranges} == {"ok", "empty"}


def test_what_the_controller_answers_to_cuts_in_no_order_is_told_from_a_failure(lab, peer, stream, monkeypatch):
    peer.write(stream, 20)
    lab.split(stream)
    first, second = lab.tail(stream).offsets
    lab.roll(stream)
    third, fourth = lab.tail(stream).offsets
    with pytest.raises(InvalidRequest, match=rf"in every segment: {stream}/2\.#epoch\.1"):
        lab.plan(stream, StreamCut(stream, {first: 0, fourth: 0}), StreamCut(stream, {third: 0, second: 0}))
    with pytest.raises(InvalidRequest, match="in every segment"):
        lab.plan(stream, StreamCut(stream, {third: 0, fourth: 0}), StreamCut(stream, {0: 5}))
    call = lab.system.client.call

    def failing(one):
        if one.method == "getSegmentsBetween" and one.message.end:
            raise UnknownServerError("the controller", "UNKNOWN")
        return call(one)

    monkeypatch.setattr(lab.system.client, "call", failing)
    with pytest.raises(UnknownServerError) as failed:
        lab.plan(stream, StreamCut(stream, {0: 5}), StreamCut(stream, {third: 0, fourth: 0}))
    assert failed.value.retryable


def test_segments_of_another_cluster_are_no_missing_stream(lab, stream):
    foreign = (1 << 32) * 99 + 99
    for call in (
        segment_calls.cut_covers(stream, {foreign: 0}),
        segment_calls.segments_between(stream, {0: 0}, {foreign: 0}),
        segment_calls.epoch_segments(stream, 99),
    ):
        with pytest.raises(InvalidRequest, match="has no epoch 99 at"):
            lab.call(call)
    with pytest.raises(InvalidRequest, match="is no segment of this stream"):
        lab.plan(stream, None, StreamCut(stream, {foreign: 0}))
