from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import ProtocolError
from airflow_provider_streams.systems.pravega.compact import compact_int, record
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.watermarks import Mark, end_mark, noted, start_mark

STREAM = "a/b"
PREFIX = bytes.fromhex("00000100")


def stored(mark: Mark) -> bytes:
    """As Pravega stores it."""
    entries = b"".join(
        record(PREFIX, struct.pack(">qdd", key, 0.0, 1.0)) + struct.pack(">q", offset)
        for key, offset in mark.cut.offsets.items()
    )
    return record(PREFIX, struct.pack(">qq", mark.lower, mark.upper) + compact_int(len(mark.cut.offsets)) + entries)


def marks_at(*times: int) -> list[Mark]:
    return [Mark(time, time, StreamCut(STREAM, {0: 10 * number})) for number, time in enumerate(times)]


offsets = st.dictionaries(st.integers(0, 2**40), st.integers(0, 2**50), max_size=5)


@given(st.integers(-(2**60), 2**60), st.integers(0, 2**20), offsets)
def test_a_mark_is_read_as_it_is_stored(lower, spread, cut):
    mark = Mark(lower, lower + spread, StreamCut(STREAM, cut))
    assert Mark.parse(STREAM, stored(mark)) == mark


def test_a_mark_of_two_segments_is_as_long_as_recorded_ones():
    assert len(stored(Mark(1, 2, StreamCut(STREAM, {0: 5, 1: 6})))) == 105


@pytest.mark.parametrize("data", [b"", b"\x00" * 40, stored(marks_at(1)[0])[:-3]])
def test_other_bytes_are_no_mark(data):
    with pytest.raises(ProtocolError):
        Mark.parse(STREAM, data)


def test_a_window_ends_at_the_first_mark_whose_lower_bound_reached_its_end():
    found = marks_at(10, 20, 30)
    assert end_mark(found, 20) is found[1]
    assert end_mark(found, 21) is found[2]
    assert end_mark(found, 31) is None
    assert end_mark([], 1) is None


def test_a_window_starts_one_mark_before_the_last_that_is_not_later():
    found = marks_at(10, 20, 30)
    assert start_mark(found, 30) is found[1]
    assert start_mark(found, 29) is found[0]
    assert start_mark(found, 19) is None, "the first mark has none before it"
    assert start_mark(found, 9) is None


def test_times_are_noted_in_the_writers_unit():
    moment = datetime(1970, 1, 1, 0, 0, 1, 500_001, tzinfo=UTC)
    units = [timedelta(seconds=1), timedelta(milliseconds=1), timedelta(microseconds=1)]
    assert [noted(moment, unit) for unit in units] == [2, 1501, 1_500_001]
