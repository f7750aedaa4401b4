"""Filters of several streams that are one plan."""

import pytest

from airflow_provider_streams.model.plan.row_filter import FieldFilter, RowFilter, Stored, filter_from_json, joined
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position


def field(**spans):
    """With the edges that its spans lie between."""
    starts, ends = (Cut({name: Position.of(span[side]) for name, span in spans.items()}) for side in (0, 1))
    return FieldFilter("at", 0, 9, None, Stored("offset", spans, (starts, ends)) if spans else None)


def test_each_stream_adds_its_own_shards():
    assert joined([field(a=(0, 5)), field(b=(3, 7)), field()]) == field(a=(0, 5), b=(3, 7))
    assert joined([field(), field()]) == field()
    by_time = FieldFilter("at", 0, 9, None, Stored("publish_time"))
    assert joined([by_time, by_time]) == by_time


def test_other_filters_are_the_same_for_all_of_them():
    rows = RowFilter("event_time", 0, 9)
    assert joined([rows, rows]) == rows
    assert joined([None, None]) is joined([]) is None
    for others in ([rows, None], [rows, field()], [field(), FieldFilter("other", 0, 9)]):
        with pytest.raises(ValueError, match="one filter"):
            joined(others)


def test_a_filter_is_the_same_after_json():
    of_earlier_release = FieldFilter("at", 0, 9, "ns", Stored("offset", {"a": (0, 5)}))
    for one in (RowFilter("event_time", 0, 9), field(), field(a=(0, 5)), of_earlier_release):
        assert filter_from_json(one.to_json()) == one
