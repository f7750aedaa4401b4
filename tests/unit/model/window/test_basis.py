"""How a time becomes a cut, as users write it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams import Chained, Cuts, EventTime, PublishTime, RecordedCuts, Window
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.window.basis import basis_from_json, basis_to_json
from airflow_provider_streams.systems.registry import declaration_of

MINUTE = timedelta(minutes=1)
WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
EVERY = [
    PublishTime(2 * MINUTE),
    RecordedCuts(3 * MINUTE),
    EventTime(MINUTE),
    Chained(),
    Cuts("earliest", {"a": "1:2"}),
]
EVERY += [EventTime(2 * MINUTE, MINUTE, "created_at", "us"), EventTime(rows="superset")]


@pytest.mark.parametrize("basis", EVERY)
def test_it_is_the_same_after_json(basis):
    assert basis_from_json(basis_to_json(basis)) == basis


@pytest.mark.parametrize("kind", [PublishTime, RecordedCuts, EventTime])
@pytest.mark.parametrize("length", ["5m", 5, None, float("nan"), -MINUTE, timedelta.max])
def test_what_is_no_length_of_time_is_refused_where_it_is_written(kind, length):
    with pytest.raises(InvalidRequest, match=r"(slack|max_skew|allowed_lateness) (is a length|is between)"):
        kind(length)


def test_what_is_no_cut_is_refused_where_it_is_written():
    with pytest.raises(InvalidRequest, match="a cut is a text, or a position per shard, not 5"):
        Cuts("earliest", 5)


@pytest.mark.parametrize("given", [PublishTime, Chained, Cuts, "Publish", "cuts", 5, {"name": "publish"}])
def test_what_a_system_cannot_serve_is_refused_with_what_it_can(given):
    """A class is no basis: a chain's class would pass for a basis whose windows need no order."""
    with pytest.raises(
        InvalidRequest, match=r"one of 'publish' \(PublishTime\), 'append' .* or Cuts\(start, end\), got"
    ):
        declaration_of("pulsar").basis(given)


@pytest.mark.parametrize(
    "wrong",
    [
        {"event_time": ""},
        {"event_time": 5},
        {"unit": "ms"},
        {"event_time": "at", "unit": "h"},
        {"rows": "all"},
        {"rows": "superset", "event_time": "at"},
    ],
)
def test_what_is_no_event_time_is_refused_where_it_is_written(wrong):
    with pytest.raises(InvalidRequest, match=r"event_time is the name|unit is the unit of|rows is 'exact'"):
        EventTime(**wrong)


def test_each_system_says_what_it_needs_of_a_basis_by_event_time():
    pulsar, pravega = declaration_of("pulsar"), declaration_of("pravega")
    assert pulsar.basis("event") == EventTime()
    assert pravega.basis("event", {"event_time": "at", "unit": "ms"}) == EventTime(event_time="at", unit="ms")
    assert pravega.basis(EventTime(rows="superset")).rows == "superset"
    for basis in ("event", EventTime(5 * MINUTE)):
        with pytest.raises(
            InvalidRequest, match=r"needs the field that is its time: EventTime\(event_time='created_at'"
        ):
            pravega.basis(basis)
    with pytest.raises(InvalidRequest, match="holds only its own rows: leave out rows"):
        pulsar.basis("event", {"rows": "superset"})
    with pytest.raises(InvalidRequest, match="--event-time does not belong to basis 'publish'"):
        pulsar.basis("publish", {"event_time": "at"})


def test_a_word_means_the_defaults():
    pulsar = declaration_of("pulsar")
    assert pulsar.basis() == pulsar.basis("publish") == PublishTime(MINUTE)
    assert declaration_of("pravega").basis() == RecordedCuts(5 * MINUTE)


def test_a_window_is_certain_when_its_basis_says():
    assert PublishTime(MINUTE).not_before(WINDOW) == WINDOW.end + MINUTE
    assert RecordedCuts().not_before(WINDOW) == Chained().not_before(WINDOW) == WINDOW.end
    assert EventTime().not_before(WINDOW) == Cuts().not_before(WINDOW) < WINDOW.start
