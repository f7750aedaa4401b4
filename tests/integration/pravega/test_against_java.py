"""Our reader and Pravega's own batch client see the same events, whatever happens to the segments."""

from __future__ import annotations

import itertools
import os
import random
import time

import pytest

from airflow_provider_streams.systems.pravega.metadata.event_pointer import EventPointer
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from stream_servers.waiting import wait_until
from tests.seeds import chosen_seed

pytestmark = pytest.mark.pravega

WINDOWS = int(os.environ.get("PRAVEGA_WINDOWS", "6"))
"""Random ones."""


@pytest.fixture
def loaded(lab, peer, stream):
    """A stream that was split, merged and rolled while events and transactions were written, and 31 tail cuts."""
    lab.split(stream)
    peer.ask("load", *stream.split("/"), 2)
    cuts = [lab.tail(stream)]
    changes = {5: lab.split, 9: lab.merge, 13: lab.split, 15: lab.roll, 20: lab.merge, 25: lab.split}
    while len(cuts) < 31:
        changes.get(len(cuts), lambda _: None)(stream)
        due = time.monotonic() + 0.15
        wait_until(lambda due=due: time.monotonic() > due, "the next tick")
        cuts.append(lab.tail(stream))
    written = peer.ask("stop")
    return stream, cuts, written["events"] + written["committed"]


def test_random_windows_of_a_stream_that_scales_under_load_equal_the_java_batch_client(lab, peer, loaded):
    stream, cuts, written = loaded
    seed = chosen_seed()
    draw = random.Random(seed)  # noqa: S311 - repeatable by its seed
    for _ in range(WINDOWS):
        first, second = sorted(draw.sample(range(len(cuts)), 2))
        start, end = cuts[first], cuts[second]
        ours = lab.digests(lab.plan(stream, start, end))
        assert ours == peer.digests(stream, start, end), f"STREAMS_SEED={seed}: cuts {first} and {second}"
    whole = lab.digests(lab.plan(stream))
    assert whole == peer.digests(stream, None, None)
    assert sum(count for _, _, count, _ in whole.values()) == written


@pytest.mark.slow
def test_thirty_consecutive_tail_cuts_tile_exactly(lab, loaded):
    stream, cuts, _ = loaded
    whole = lab.plan(stream, cuts[0], cuts[-1])
    covered: dict[str, list[tuple[int, int]]] = {}
    rows = 0
    for start, end in itertools.pairwise(cuts):
        plan = lab.plan(stream, start, end)
        rows += lab.read(plan)[1].rows
        for one in plan.splits:
            covered.setdefault(one.shard, []).append((one.start.parts[0], one.end.parts[0]))
    for one in whole.splits:
        spans = covered.pop(one.shard)
        assert [stop for _, stop in spans[:-1]] == [start for start, _ in spans[1:]]
        assert (spans[0][0], spans[-1][1]) == (one.start.parts[0], one.end.parts[0])
    assert not covered
    assert rows == lab.read(whole)[1].rows > 0


def test_java_reads_our_cuts_and_we_read_its(lab, peer, stream):
    peer.write(stream, 300)
    lab.split(stream)
    peer.write(stream, 300)
    lab.roll(stream)
    theirs = peer.ask("cuts", *stream.split("/"))
    assert StreamCut.from_text(theirs["head"]) == lab.head(stream)
    tail = lab.tail(stream)
    assert StreamCut.from_text(theirs["tail"]) == tail
    decoded = peer.ask("decode", tail.to_text())
    assert decoded["stream"] == stream
    assert {int(key): offset for key, offset in decoded["offsets"].items()} == tail.offsets
    assert StreamCut.from_bytes(bytes.fromhex(decoded["hex"])) == tail
    assert bytes.fromhex(decoded["hex"]).rstrip(b"\0").startswith(tail.to_bytes()[:8])


def test_java_fetches_the_event_that_our_pointer_names(lab, peer, stream):
    peer.write(stream, 20, size=37)
    plan = lab.plan(stream)
    [batch] = lab.system.read(plan, plan.splits[0], ["event_pointer", "event", "offset", "next_offset", "segment"])
    row = batch.to_pylist()[7]
    fetched = peer.ask("fetch", *stream.split("/"), row["event_pointer"].hex())
    assert bytes.fromhex(fetched["event"]) == row["event"]
    assert EventPointer.from_bytes(row["event_pointer"]) == EventPointer(row["segment"], row["offset"], 45)
    assert row["next_offset"] == row["offset"] + 45


@pytest.mark.slow
def test_events_beyond_eight_mebibytes_are_whole(lab, peer, stream):
    for _ in range(2):
        peer.write_large(stream, 20 * 1024 * 1024)
    peer.write(stream, 3, size=100, keys=1)
    plan = lab.plan(stream)
    events, receipt = lab.read(plan)
    assert [len(event) for event in events] == [20 * 1024 * 1024] * 2 + [100] * 3
    assert lab.digests(plan) == peer.digests(stream, None, None)
    assert receipt.totals["entries"] == plan.estimate.bytes
