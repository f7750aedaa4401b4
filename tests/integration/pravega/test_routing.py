"""Routing keys against Java's own client: its events of a key lie in the segments that are read, over scalings."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.systems.pravega.source import PravegaSource
from tests.integration.pravega.conftest import WINDOW

pytestmark = pytest.mark.pravega

KEYS, COUNT = 10, 50


def test_every_event_that_java_wrote_with_a_key_is_read_and_fewer_segments(lab, peer, stream):
    def write(tag):
        peer.write(stream, COUNT, size=40, keys=KEYS, tag=tag)

    cuts = [lab.tail(stream)]
    for number, scale in enumerate((lab.split, lab.split, lab.merge, lab.roll, lab.split)):
        write(f"{number}-")
        scale(stream)
        write(f"{number}+")
        cuts.append(lab.tail(stream))
    whole = [0, 0]
    for key in range(KEYS):
        found: list[bytes] = []
        for start, end in pairwise(cuts):
            asked = PlanRequest(
                PravegaSource(stream, routing_keys=f"k{key}"),
                WINDOW,
                "tests",
                basis="cuts",
                start_cut=start.to_model(),
                end_cut=end.to_model(),
            )
            plan = lab.system.plan(asked)
            events, receipt = lab.read(plan)
            assert receipt.rows == len(events)
            found += [event.partition(b":")[0] for event in events]
            everything = lab.system.plan(replace(asked, source=PravegaSource(stream)))
            assert plan.end_cut == everything.end_cut
            whole = [whole[0] + plan.estimate.bytes, whole[1] + everything.estimate.bytes]
        assert len(set(found)) == len(found)
        tags = [f"{number}{sign}" for number in range(5) for sign in "-+"]
        mine = {f"{tag}{n}".encode() for tag in tags for n in range(COUNT) if n % KEYS == key}
        assert mine <= set(found)
    assert whole[0] < whole[1] / 1.5, "of keys spread over the segments much is left out"
