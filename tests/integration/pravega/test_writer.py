"""The writer of tests and demos: it follows a stream's keys to the segments that own them now."""

from __future__ import annotations

import pytest

from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.testing.pravega_writer import PravegaWriter

pytestmark = pytest.mark.pravega


@pytest.mark.parametrize("trimmed", [False, True], ids=["sealed", "deleted"])
def test_a_segment_sealed_before_its_first_event_is_left_for_its_successors(lab, stream, trimmed):
    keys = [f"k{number}" for number in range(20)]
    lab.split(stream)
    with PravegaWriter(lab.system.endpoint, stream) as writer:
        writer.write([(keys[0], b"0")])  # it knows both segments now, and has opened one
        lab.roll(stream)
        if trimmed:
            lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))
        writer.write([(key, key.encode()) for key in keys])
    events, _ = lab.read(lab.plan(stream, lab.head(stream)))
    assert sorted(events) == sorted([key.encode() for key in keys] + ([] if trimmed else [b"0"]))
