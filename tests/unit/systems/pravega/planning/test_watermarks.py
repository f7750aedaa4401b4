from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import ProtocolError
from airflow_provider_streams.systems.pravega.client.varint import compact_int, record
from airflow_provider_streams.systems.pravega.metadata.segment_names import segment_id
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning.watermarks import Around, Mark, Times, around, noted

STREAM = "a/b"
PREFIX = bytes.fromhex("00000100")


def stored(mark: Mark) -> bytes:
    """As Pravega stores it."""
    entries = b"".join(
        record(PREFIX, struct.pack(">qdd", key, 0.0, 1.0)) + struct.pack(">q", offset)
        for key, offset in mark.cut.offsets.items()
    )
    return record(PREFIX, struct.pack(">qq", mark.lower, mark.upper) + compact_int(len(mark.cut.offsets)) + entries)


def times_of(since, until, lateness=0):
    """The times of a window that is read from its start up to `lateness` after its end."""
    return Times(since, since, since + lateness, until, until + lateness)


def marks_at(*times: int) -> list[Mark]:
    return [Mark(time, time, StreamCut(STREAM, {0: 10 * number})) for number, time in enumerate(times)]


keys = st.builds(segment_id, st.integers(0, 99), st.integers(0, 99))
offsets = st.dictionaries(keys, st.integers(0, 2**50), max_size=5)


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


def times(data: bytes | None) -> int | None:
    return None if data is None else Mark.parse(STREAM, data).lower


@pytest.mark.parametrize(("until", "end"), [(20, 20), (21, 30), (31, None), (10, 10)])
def test_a_window_ends_at_the_first_mark_whose_lower_bound_reached_its_end(until, end):
    found = around(map(stored, marks_at(10, 20, 30)), times_of(0, until))
    assert (times(found.end), found.newest_lower) == (end, 30)


@pytest.mark.parametrize(("since", "start"), [(30, 20), (29, 10), (19, None), (9, None)])
def test_a_window_starts_one_mark_before_the_last_that_is_not_later(since, start):
    assert times(around(map(stored, marks_at(10, 20, 30)), times_of(since, 100)).start) == start


@pytest.mark.parametrize("lateness", [0, 15])
def test_windows_side_by_side_share_the_marks_between_them(lateness):
    seen = list(map(stored, marks_at(10, 20, 30, 40, 50)))
    first, second = (around(seen, times_of(since, since + 10, lateness)) for since in (5, 15))
    assert second.settled == first.end
    assert times(second.first) == times(first.last) == 20, "however late their events may be stored"


def test_a_window_starts_before_a_mark_of_a_writer_far_ahead_that_left():
    seen = [*marks_at(10, 11, 12), Mark(13, 100, StreamCut(STREAM, {0: 99})), *marks_at(14, 15, 16)]
    starts = [times(around(map(stored, seen), times_of(since, since + 10)).start) for since in (50, 100)]
    assert starts == [11, 15], "its events of 50 to 60 lie before the mark of 13"


def test_without_marks_there_is_nothing_around_a_window():
    assert around([], times_of(0, 1)) == Around()


@pytest.mark.parametrize("data", [b"", b"\0" * 40, b"\0\0\1\0" + bytes(19), b"\xff" * 40])
def test_what_is_no_mark_is_refused_where_marks_are_looked_for(data):
    with pytest.raises(ProtocolError, match="no watermark"):
        around([data], times_of(0, 1))


@pytest.mark.parametrize("offsets", [{-1: 0}, {0: -2}, {1 << 31: 0}])
def test_a_mark_of_places_that_cannot_be_is_refused(offsets):
    pairs = (record(PREFIX, struct.pack(">qdd", key, 0.0, 1.0)) + struct.pack(">q", at) for key, at in offsets.items())
    with pytest.raises(ProtocolError, match="holds no place"):
        Mark.parse(STREAM, record(PREFIX, struct.pack(">qq", 1, 2) + compact_int(len(offsets)) + b"".join(pairs)))


def test_times_are_noted_in_the_writers_unit():
    moment = datetime(1970, 1, 1, 0, 0, 1, 500_001, tzinfo=UTC)
    units = [timedelta(seconds=1), timedelta(milliseconds=1), timedelta(microseconds=1)]
    assert [noted(moment, unit) for unit in units] == [2, 1501, 1_500_001]
    for last in (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)):
        assert all(abs(noted(last, unit)) < 1 << 63 for unit in units)
