import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window import Window, tile
from tests.unit.model.values import moments, windows

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


@given(windows())
def test_json_and_text_round_trips_are_exact(window):
    assert Window.from_json(json.loads(json.dumps(window.to_json()))) == window
    assert Window.parse(str(window)) == window
    assert pickle.loads(pickle.dumps(window)) == window  # noqa: S301 - our own bytes


@given(moments, moments)
def test_only_ends_after_starts_are_windows(start, end):
    if start < end:
        window = Window(start, end)
        assert (window.start, window.end) == (start, end)
        assert window.start.tzinfo is window.end.tzinfo is UTC
    else:
        with pytest.raises(InvalidWindow, match="after it starts"):
            Window(start, end)


@pytest.mark.parametrize("naive", [TEN.replace(tzinfo=None)])
def test_times_without_a_zone_are_refused(naive):
    for bounds in ((naive, TEN + HOUR), (TEN - HOUR, naive)):
        with pytest.raises(InvalidWindow, match="time zone"):
            Window(*bounds)


def test_zones_are_kept_as_utc_and_equal_times_are_equal_windows():
    east = timezone(timedelta(hours=5, minutes=30))
    assert Window(TEN.astimezone(east), (TEN + HOUR).astimezone(east)) == Window(TEN, TEN + HOUR)


@pytest.mark.parametrize(
    "text",
    ["", "2026-11-20T10:00Z", "2026-11-20T10:00/2026-11-20T11:00", "a/b", "2026-11-20T11:00Z/2026-11-20T10:00Z", "/"],
)
def test_other_texts_are_no_windows(text):
    with pytest.raises(InvalidWindow):
        Window.parse(text)


@given(windows(), st.integers(-(2**52), 2**52))
def test_a_whole_millisecond_is_inside_exactly_when_its_time_is(window, ms):
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=min(max(ms, -(2 * 10**12)), 2 * 10**14))
    exact = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert (window.start <= moment < window.end) == (window.start_ms <= exact < window.end_ms)


@given(moments, st.lists(st.integers(1, 10**9), min_size=2, max_size=5))
def test_adjacent_windows_share_one_bound_in_milliseconds_too(start, steps):
    start = min(start, datetime(9990, 1, 1, tzinfo=UTC))
    edges = [start]
    for step in steps:
        edges.append(edges[-1] + timedelta(microseconds=step))
    parts = [Window(*pair) for pair in pairwise(edges)]
    assert all(left.end_ms == right.start_ms for left, right in pairwise(parts))


@given(st.integers(0, 100_000), st.integers(1, 10_000))
def test_tiles_are_adjacent_whole_and_inside(seconds, length):
    end, size = TEN + timedelta(seconds=seconds), timedelta(seconds=length)
    tiles = list(tile(TEN, end, size))
    assert len(tiles) == seconds // length
    assert all(left.end == right.start for left, right in pairwise(tiles))
    assert all(window.length == size for window in tiles)
    assert not tiles or (tiles[0].start == TEN and end - size < tiles[-1].end <= end)


def test_a_tile_has_a_length():
    with pytest.raises(InvalidWindow):
        list(tile(TEN, TEN + HOUR, timedelta(0)))


@given(st.lists(windows(), max_size=5))
def test_labels_sort_like_starts_and_tell_them_apart(drawn):
    starts = sorted({window.start for window in drawn if window.start.year >= 1000})
    labels = [Window(start, start + HOUR).label for start in starts]
    assert len(set(labels)) == len(starts)
    whole = [Window(start, start + HOUR).label for start in starts if not start.microsecond]
    assert whole == sorted(whole)


def test_a_label_is_a_folders_name():
    assert Window(TEN, TEN + HOUR).label == "20261120T100000Z"
    assert Window(TEN + timedelta(milliseconds=250), TEN + HOUR).label == "20261120T100000.250000Z"
