"""Which incarnation of a stream a plan is of.

Stable while it lives, another one afterwards, and free to ask for readers.
"""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from airflow_provider_streams.errors import EventsLost, SourceReplaced, StartTrimmed
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from stream_servers import QUICK_START, PravegaServer
from tests.integration.pravega.conftest import Lab

pytestmark = pytest.mark.pravega


def write(lab, stream, count=10):
    with PravegaWriter(lab.system.endpoint, stream) as writer:
        writer.write((f"k{number}", b"x" * 92) for number in range(count))


def recreate(lab, stream):
    assert lab.call(stream_calls.seal_stream(stream))
    assert lab.call(stream_calls.delete_stream(stream))
    assert lab.call(stream_calls.create_stream(stream))


def test_a_plan_is_of_the_same_life_whatever_becomes_of_its_segments(lab, stream):
    write(lab, stream)
    lab.split(stream)
    write(lab, stream)
    plan = lab.plan(stream)
    assert [Segment.parse(name).id for name, _ in plan.source.incarnation] == [
        Segment.parse(split.shard).id for split in plan.splits
    ]
    start, end = (StreamCut.from_model(stream, cut) for cut in (plan.start_cut, plan.end_cut))
    for act in (lab.split, lab.merge, lab.roll, lambda s: lab.call(stream_calls.seal_stream(s))):
        act(stream)
        lab.system.check_origin(plan)
        again = lab.plan(stream, start, end)
        assert again.source.incarnation == plan.source.incarnation
        assert again.fingerprint == plan.fingerprint
    assert len(lab.read(Plan.from_json(json.loads(json.dumps(plan.to_json()))))[0]) == 20


def test_truncation_is_no_other_life(lab, stream):
    write(lab, stream)
    plan = lab.plan(stream)
    lab.call(stream_calls.truncate_stream(stream, {0: 500}))
    lab.system.check_origin(plan)
    lab.roll(stream)
    lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))
    lab.system.check_origin(plan)
    with pytest.raises(EventsLost, match="the segment is gone"):
        lab.read(plan)


def test_a_stream_made_again_on_the_same_cluster_is_another_life(lab, stream):
    write(lab, stream)
    plan, empty = lab.plan(stream), lab.plan(stream, lab.tail(stream), lab.tail(stream))
    recreate(lab, stream)
    write(lab, stream)
    for one in (plan, empty):
        with pytest.raises(
            SourceReplaced, match=r"its segment 0\.#epoch\.0 made at .*a stream of this name that never had"
        ):
            lab.system.check_origin(one)


def test_a_stream_that_is_gone_is_told_by_the_read(lab, stream):
    write(lab, stream)
    plan = lab.plan(stream)
    lab.call(stream_calls.seal_stream(stream))
    lab.call(stream_calls.delete_stream(stream))
    lab.system.check_origin(plan)
    with pytest.raises(EventsLost):
        lab.read(plan)
    events, receipt = lab.read(plan, on_loss="record")
    assert (events, receipt.verdict) == ([], "loss recorded")


def test_a_check_is_a_few_small_requests(lab, stream, monkeypatch):
    for _ in range(6):
        write(lab, stream)
        lab.roll(stream)
    plan = lab.plan(stream)
    asked = []
    call = lab.system.client.call
    monkeypatch.setattr(lab.system.client, "call", lambda one: asked.append(one.method) or call(one))
    lab.system.check_origin(plan)
    assert set(asked) <= {"getDelegationToken", "getURI"}
    assert len(asked) <= 1 + 7


@pytest.fixture
def own_server():
    with PravegaServer(heap="1g", cache_bytes=256 << 20, jvm=QUICK_START) as server:
        yield server


@pytest.mark.slow
def test_a_server_that_was_wiped_is_another_cluster_also_in_the_middle_of_a_read(own_server):
    """It gives the same ids again: without the segments' times foreign data would be read with an agreeing receipt."""
    options = {"controller": own_server.controller_uri, "request_timeout_seconds": "20", "stall_seconds": "30"}

    def connected() -> Lab:
        own_server.create_scope("own")
        lab = Lab(PravegaSystem.from_options(options), "own")
        write(lab, lab.create(), 60)
        return lab

    lab = connected()
    plan = lab.plan("own/s")
    assert len(lab.read(plan)[0]) == 60
    seen, middle = lab.system.observe_tail(PravegaSource("own/s")), StreamCut("own/s", {0: 1000})
    lab.system.close()
    own_server.kill()
    own_server.start()
    lab = connected()
    again = lab.plan("own/s")
    assert (again.end_cut, again.source.names) == (plan.end_cut, plan.source.names)
    assert again.fingerprint != plan.fingerprint
    with pytest.raises(SourceReplaced, match=r"segment 0\.#epoch\.0 made at .* leads to one made at "):
        lab.system.check_origin(plan)
    with pytest.raises(SourceReplaced):
        lab.read(plan)
    with pytest.raises(SourceReplaced):
        lab.read(plan, on_loss="record")
    window = Window(seen.at, seen.at + timedelta(hours=1))
    assert lab.plan("own/s", middle, window=window).splits, "the place is there, of another stream: its time tells"
    with pytest.raises(StartTrimmed, match="deleted and made again"):
        lab.plan("own/s", middle, window=window, first_seen=seen)
    lab.system.close()
