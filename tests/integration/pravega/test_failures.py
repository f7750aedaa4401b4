"""What goes wrong on a real server is an error that says so, in bounded time, and never a smaller table."""

from __future__ import annotations

import contextlib
import time

import pytest

from airflow_provider_streams.errors import (
    CutNotAtEventBoundary,
    EventsLost,
    InvalidRequest,
    ReadStalled,
    SourceNotFound,
    StartTrimmed,
    SystemUnavailable,
)
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.client.stream_client import AsyncClient
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from stream_servers import QUICK_START, PravegaServer

pytestmark = pytest.mark.pravega


def names(lab) -> set[str]:
    """Every scope, and every stream of the test's scope, internal ones included."""
    found: set[str] = set()
    for first in (stream_calls.list_scopes, lambda token="": stream_calls.list_streams(lab.scope, token)):
        page = lab.call(first())
        while page.names:
            found |= set(page.names)
            page = lab.call(first(page.token))
    return found


def test_a_typo_creates_nothing(lab, stream):
    before = names(lab)
    for wrong in (f"{stream}s", f"{lab.scope}x/s"):
        for ask in (lab.head, lab.tail, lab.plan):
            with pytest.raises(SourceNotFound, match="does not exist"):
                ask(wrong)
    assert names(lab) == before


def test_a_truncated_start_is_loss_before_the_read(lab, peer, stream):
    start = lab.tail(stream)
    peer.write(stream, 100)
    middle = lab.tail(stream)
    peer.write(stream, 100)
    assert lab.call(stream_calls.truncate_stream(stream, middle.offsets))
    with pytest.raises(StartTrimmed, match="10,800 bytes in 1 segment"):
        lab.plan(stream, start)
    plan = lab.plan(stream, start, on_loss="record")
    events, receipt = lab.read(plan, on_loss="record")
    assert len(events) == 100
    assert receipt.verdict == "loss recorded"


def test_segments_truncated_away_are_loss_before_the_read(lab, peer, stream):
    start = lab.tail(stream)
    peer.write(stream, 100)
    lab.split(stream)
    peer.write(stream, 100)
    tail = lab.tail(stream)
    lab.split(stream)
    assert lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))
    with pytest.raises(StartTrimmed):
        lab.plan(stream, start, tail)
    plan = lab.plan(stream, start, tail, on_loss="record")
    assert plan.is_empty
    assert len(plan.losses) == 3


@pytest.mark.parametrize("act", ["truncated", "deleted"])
def test_events_that_vanish_under_the_read_are_lost_and_counted(lab, peer, stream, act):
    # several times what a reader holds ahead
    peer.write(stream, 400, size=100_000)
    plan = lab.plan(stream)
    with contextlib.closing(lab.system.read(plan, plan.splits[0])) as reader:
        batches = iter(reader)
        rows = len(next(batches))
        if act == "truncated":
            assert lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))
        else:
            assert lab.call(stream_calls.seal_stream(stream))
            assert lab.call(stream_calls.delete_stream(stream))
        rows += sum(len(batch) for batch in batches)
        receipt = reader.receipt
    lost = plan.estimate.bytes - receipt.entries
    assert 0 < rows < 400
    assert lost == (400 - rows) * 100_008
    with pytest.raises(EventsLost, match=f"{lost} bytes"):
        lab.system.explain(plan, [receipt], on_loss="fail")
    recorded = compare(plan, lab.system.explain(plan, [receipt], on_loss="record"), seconds=0)
    assert recorded.totals["lost"] == lost


def test_a_stream_made_again_under_its_name_is_not_taken_for_the_old_one(lab, peer, stream):
    peer.write(stream, 100)
    plan = lab.plan(stream)
    assert lab.call(stream_calls.seal_stream(stream))
    assert lab.call(stream_calls.delete_stream(stream))
    assert lab.call(stream_calls.create_stream(stream))
    with pytest.raises(EventsLost, match="the segment is gone"):
        lab.read(plan)
    with pytest.raises(InvalidRequest, match="is no segment of this stream; was the stream deleted"):
        lab.plan(stream, None, StreamCut.from_model(stream, plan.end_cut))


def test_a_sealed_stream_is_read_to_its_end(lab, peer, stream):
    peer.write(stream, 100)
    lab.split(stream)
    peer.write(stream, 100)
    before = lab.tail(stream)
    assert not lab.run(cuts.is_sealed(stream))
    assert lab.call(stream_calls.seal_stream(stream))
    assert lab.run(cuts.is_sealed(stream))
    assert lab.tail(stream) == before, "no empty cut leaves us"
    assert len(lab.read(lab.plan(stream))[0]) == 200
    assert lab.digests(lab.plan(stream)) == peer.digests(stream, lab.head(stream), before)


def test_an_empty_window_reads_nothing_and_ends_at_once(lab, peer, stream):
    assert lab.plan(stream).is_empty
    peer.write(stream, 10)
    tail = lab.tail(stream)
    assert lab.plan(stream, tail, tail).is_empty


def test_cuts_that_java_would_read_over_are_refused(lab, peer, stream):
    early = lab.tail(stream)
    peer.write(stream, 100)
    late = lab.tail(stream)
    lab.split(stream)
    (a, b) = lab.tail(stream).offsets
    for start, end, message in (
        (late, early, "before the start cut"),
        (StreamCut(stream, {a: 0, b: 0}), late, "not at or after the start cut"),
        (early, StreamCut(stream, {a: 0}), "partial"),
        (early, StreamCut(stream, {a: 0, b: 77}), "ahead of the stream"),
        (early, StreamCut(stream, {123: 0}), "is no segment of this stream"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            lab.plan(stream, start, end)


def test_a_start_or_an_end_inside_an_event_is_named(lab, peer, stream):
    peer.write(stream, 10)
    with pytest.raises(CutNotAtEventBoundary, match="offset 5 "):
        lab.read(lab.plan(stream, StreamCut(stream, {0: 5}), lab.tail(stream)))
    with pytest.raises(CutNotAtEventBoundary, match="inside the event at 108"):
        lab.read(lab.plan(stream, lab.head(stream), StreamCut(stream, {0: 150})))


async def test_the_asynchronous_edge_gives_the_same_cuts(lab, peer, stream):
    peer.write(stream, 10)
    lab.split(stream)
    client = AsyncClient(lab.system.endpoint)
    try:
        assert await client.run(cuts.tail(stream)) == lab.tail(stream)
        assert await client.run(cuts.head(stream)) == lab.head(stream)
        with pytest.raises(SourceNotFound):
            await client.run(cuts.tail(f"{stream}s"))
    finally:
        await client.close()


@pytest.fixture
def own_server():
    with PravegaServer(heap="1g", cache_bytes=256 << 20, jvm=QUICK_START) as server:
        yield server


@pytest.mark.slow
def test_a_server_that_hangs_dies_or_forgets_is_noticed_in_bounded_time(own_server, tmp_path):
    from tests.integration.pravega.conftest import Lab, Peer

    stall = 4
    options = {"controller": own_server.controller_uri, "request_timeout_seconds": "10", "stall_seconds": str(stall)}
    system = PravegaSystem.from_options(options)
    own_server.create_scope("own")
    lab = Lab(system, "own")
    stream = lab.create()
    peer = Peer(own_server, tmp_path / "logback.xml")
    peer.write(stream, 120, size=100_000)
    peer.close()
    plan = lab.plan(stream)

    def begun():
        reader = system.read(plan, plan.splits[0])
        batches = iter(reader)
        return reader, batches, len(next(batches))

    def timed(batches):
        began = time.monotonic()
        with pytest.raises((ReadStalled, SystemUnavailable)) as raised:
            list(batches)
        assert raised.value.retryable
        assert time.monotonic() - began < 10 * (stall + 12)

    reader, batches, rows = begun()
    own_server.pause()
    timed(batches)
    own_server.resume()
    reader.close()

    reader, batches, rows = begun()
    rows += sum(len(batch) for batch in batches)
    assert rows == 120, "after a pause everything is read"
    reader.close()

    reader, batches, rows = begun()
    own_server.kill()
    timed(batches)
    reader.close()
    with pytest.raises(SystemUnavailable):
        lab.plan(stream)
    own_server.start()
    with pytest.raises(EventsLost, match="the segment is gone"):
        lab.read(plan)
    with pytest.raises(SourceNotFound, match="scope own"):
        lab.plan(stream)
    system.close()
