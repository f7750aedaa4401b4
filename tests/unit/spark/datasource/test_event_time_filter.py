"""The rows of a decoded batch that are a window's, compared with the plain rule, value by value."""

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.plan.row_filter import FieldFilter, Stored
from airflow_provider_streams.spark.datasource.event_time_filter import keep, own_times, place_column, stored_times
from tests.seeds import examples

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000
UNITS = {"s": 1_000_000, "ms": 1000, "us": 1}
SHARD = "shop/orders/0.#epoch.0"
EDGES = st.integers(-5, 5) | st.integers(-3 * DAY, 3 * DAY) | st.integers(-(1 << 62), 1 << 62)


def spans():
    return st.tuples(EDGES, EDGES).filter(lambda span: span[0] != span[1]).map(sorted)


def structs(values, kind, name="at"):
    return pa.array([None if value is None else {name: value} for value in values], pa.struct([(name, kind)]))


def kept(value, row_filter, place=None):
    found = keep(value, row_filter, None if place is None else pa.array(place), SHARD)
    assert found.mask.null_count == 0
    assert found.filtered == len(value) - found.mask.true_count
    return found


@st.composite
def near(draw, span, step):
    """Whole numbers about the edges, in units of so many microseconds."""
    edge = draw(st.sampled_from(span)) // step + draw(st.integers(-2, 2))
    return max(min(edge, (1 << 63) - 1), -(1 << 63))


@settings(max_examples=examples(80))
@given(st.data())
def test_moments_are_compared_in_their_own_unit_to_the_last_digit(data):
    span, unit = data.draw(spans()), data.draw(st.sampled_from(["s", "ms", "us"]))
    is_number = data.draw(st.booleans())
    kind = pa.int64() if is_number else pa.timestamp(unit, data.draw(st.sampled_from(["UTC", None])))
    numbers = data.draw(st.lists(st.none() | near(span, UNITS[unit]), max_size=20))
    value = pa.StructArray.from_arrays([pa.array(numbers, pa.int64()).cast(kind)], ["at"])
    found = kept(value, FieldFilter("at", *span, unit if is_number else None))
    plain = [number is not None and span[0] <= number * UNITS[unit] < span[1] for number in numbers]
    assert found.mask.to_pylist() == plain
    assert found.untimed == 0


@settings(max_examples=examples(80))
@given(st.data())
def test_the_time_that_is_noted_of_a_row_is_in_the_window_if_and_only_if_the_row_is(data):
    span, kind = data.draw(spans()), data.draw(st.sampled_from([*UNITS, "ns", "day"]))
    step = DAY if kind == "day" else UNITS.get(kind, 1)
    fits = (1 << 31) if kind == "day" else (1 << 63)
    number = near(span, step).filter(lambda one: -fits <= one < fits)
    rows = data.draw(st.lists(st.tuples(st.none() | number, near(span, 1)), min_size=1, max_size=20))
    at = pa.array([own for own, _ in rows], pa.int32() if kind == "day" else pa.int64())
    value = pa.StructArray.from_arrays([at.cast(pa.date32()) if kind == "day" else at], ["at"])
    place = pa.array([stored for _, stored in rows], pa.timestamp("us", "UTC"))
    by_field = FieldFilter("at", *span, None if kind == "day" else kind, Stored("publish_time"))
    own, otherwise = own_times(value, by_field), stored_times(by_field, place)
    times = [
        otherwise.numbers[row].as_py() * otherwise.unit if one is None else one * own.unit
        for row, one in enumerate(own.numbers.to_pylist())
    ]
    assert keep(value, by_field, place, SHARD).mask.to_pylist() == [span[0] <= time < span[1] for time in times]


def test_a_row_that_a_place_decides_has_no_known_time():
    of_offsets = FieldFilter("at", 0, 1, "us", Stored("offset", {SHARD: (0, 5)}))
    assert stored_times(of_offsets, pa.array([1, 2])) is None
    assert stored_times(FieldFilter("at", 0, 1, "us"), None) is None
    published = FieldFilter("at", 0, 1, "us", Stored("publish_time"))
    assert stored_times(published, pa.array([1, None], pa.timestamp("us", "UTC"))) is None


@settings(max_examples=examples(40))
@given(spans(), st.data())
def test_nanoseconds_are_not_rounded_into_a_window(span, data):
    numbers = data.draw(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=9))
    edges = [edge * 1000 + more for edge in span for more in (-1, 0, 1, 999)]
    numbers += [edge for edge in edges if -(1 << 63) <= edge < 1 << 63]
    for kind, unit in ((pa.int64(), "ns"), (pa.timestamp("ns"), None)):
        value = pa.StructArray.from_arrays([pa.array(numbers, pa.int64()).cast(kind)], ["at"])
        plain = [span[0] * 1000 <= number < span[1] * 1000 for number in numbers]
        assert kept(value, FieldFilter("at", *span, unit)).mask.to_pylist() == plain


def test_a_date_is_its_first_moment_in_utc():
    dates = structs([date(2026, 11, 19), date(2026, 11, 20), date(2026, 11, 21), None], pa.date32())
    start = (datetime(2026, 11, 19, 12, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    assert kept(dates, FieldFilter("at", start, start + DAY)).mask.to_pylist() == [False, True, False, False]


@settings(max_examples=examples(60))
@given(st.data())
def test_rows_without_a_time_are_each_in_the_one_window_in_which_they_were_stored(data):
    edges = sorted(data.draw(st.sets(st.integers(-20, 20), min_size=2, max_size=5)))
    cuts = sorted(data.draw(st.lists(st.integers(0, 50), min_size=len(edges), max_size=len(edges))))
    times = data.draw(st.lists(st.none() | st.integers(edges[0], edges[-1] - 1), min_size=1, max_size=30))
    offsets = sorted(data.draw(st.lists(st.integers(0, 50), min_size=len(times), max_size=len(times))))
    value = structs(times, pa.int64())
    landed = [0] * len(times)
    for start, end, first, last in zip(edges, edges[1:], cuts, cuts[1:], strict=False):
        stored = Stored("offset", {SHARD: (first, last)})
        found = kept(value, FieldFilter("at", start, end, "us", stored), offsets)
        landed = [count + is_kept for count, is_kept in zip(landed, found.mask.to_pylist(), strict=True)]
        assert found.untimed == sum(t is None and first <= o < last for t, o in zip(times, offsets, strict=True))
    expected = [
        moment is not None or cuts[0] <= offset < cuts[-1] for moment, offset in zip(times, offsets, strict=True)
    ]
    assert landed == [int(one) for one in expected]


def test_of_pulsar_rows_without_a_time_count_by_their_publish_time():
    value = structs([None, None, 10, 99], pa.int64())
    published = pa.array([9, 10, 0, 10], pa.int64()).cast(pa.timestamp("us", "UTC"))
    row_filter = FieldFilter("at", 10, 20, "us", Stored("publish_time"))
    found = keep(value, row_filter, published, "persistent://a/b/c")
    assert place_column(row_filter) == "publish_time"
    assert (found.mask.to_pylist(), found.filtered, found.untimed) == ([False, True, True, False], 2, 1)


def test_a_segment_that_follows_the_window_holds_nothing_of_it_without_a_time():
    row_filter = FieldFilter("at", 0, 10, "us", Stored("offset", {"another": (0, 100)}))
    assert kept(structs([None, 5], pa.int64()), row_filter, [1, 2]).mask.to_pylist() == [False, True]


def test_where_nothing_tells_rows_without_a_time_are_in_no_window():
    row_filter = FieldFilter("at", 0, 10, "us")
    assert place_column(row_filter) is None
    assert kept(structs([None, 5, 11], pa.int64()), row_filter).mask.to_pylist() == [False, True, False]


def test_a_field_may_be_in_structs_and_have_dots_in_its_name():
    inner = pa.array([{"meta": {"at": 5}}, {"meta": None}, None, {"meta": {"at": 15}}])
    assert kept(inner, FieldFilter("meta.at", 0, 10, "us")).mask.to_pylist() == [True, False, False, False]
    dotted = pa.array([{"meta.at": 5, "meta": {"at": 15}}])
    assert kept(dotted, FieldFilter("meta.at", 0, 10, "us")).mask.to_pylist() == [True]


def test_a_value_under_a_null_struct_does_not_count():
    """Arrow keeps what a null hides."""
    hidden = pa.StructArray.from_arrays([pa.array([5, 5])], ["at"], mask=pa.array([True, False]))
    assert kept(hidden, FieldFilter("at", 0, 10, "us")).mask.to_pylist() == [False, True]


def test_a_scalar_value_is_the_column_value():
    assert kept(pa.array([5, 15, None]), FieldFilter("value", 0, 10, "us")).mask.to_pylist() == [True, False, False]


@pytest.mark.parametrize("path", ["other", "at.more", "value"])
def test_a_field_that_is_not_there_is_refused(path):
    with pytest.raises(InvalidRequest, match=f"event_time='{path}': decoded values have no such field"):
        kept(structs([5], pa.int64()), FieldFilter(path, 0, 10, "us"))


@pytest.mark.parametrize(("kind", "value", "unit"), [(pa.int64(), 5, None), (pa.timestamp("us"), EPOCH, "ms")])
def test_a_number_needs_a_unit_and_a_time_has_one(kind, value, unit):
    with pytest.raises(InvalidRequest, match="is of type"):
        kept(structs([value], kind), FieldFilter("at", 0, 10, unit))
