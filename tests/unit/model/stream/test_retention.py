from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.stream.retention import Holding, Quota, Rules, Schedule, judge, soonest

HOUR = timedelta(hours=1)
NOW = datetime(2026, 11, 21, tzinfo=UTC)
# a window's first event is three hours old when it is read at the latest
HOURLY = Schedule.of(HOUR, 2 * HOUR)


def test_of_several_shards_the_one_that_loses_events_first_counts():
    held = Holding(Rules(), 0.0, None)
    day, hour = (Holding(Rules(retention=span), 0.0, None) for span in (24 * HOUR, HOUR))
    small = Holding(Rules(retention_bytes=100), 1.0, None)
    unknown = Holding(Rules(retention_bytes=100), None, None)
    unseen = Holding(None)
    assert soonest([held, day, hour]) is hour
    assert soonest([held, day, hour, small]) is small
    assert soonest([held]) is held
    assert soonest([small, unknown]) is unknown
    assert soonest([small, unseen]) is unseen


def verdict(rules, *, rate=0.0, unread=0, waiting_since=None):
    return judge(Holding(rules, rate, None, unread), HOURLY, NOW, waiting_since=waiting_since)


@pytest.mark.parametrize(
    ("keep", "risk", "room"),
    [
        (5 * HOUR, "safe", 2 * HOUR),
        (4 * HOUR, "safe", HOUR),
        (4 * HOUR - timedelta(seconds=1), "low", HOUR - timedelta(seconds=1)),
        (3 * HOUR, "loss", timedelta(0)),
        (HOUR, "loss", -2 * HOUR),
        (timedelta(0), "loss", -3 * HOUR),
        (None, "safe", None),
    ],
)
def test_retention_by_time_must_exceed_the_need_by_the_margin(keep, risk, room):
    found = verdict(Rules(retention=keep))
    assert (found.risk, found.room) == (risk, room)
    assert found.is_risk == (risk != "safe")


def test_retention_by_size_lasts_as_long_as_it_takes_to_fill():
    assert verdict(Rules(retention_bytes=3600 * 100), rate=100).held == HOUR
    assert verdict(Rules(retention_bytes=3600 * 100), rate=0).held is None
    unknown = verdict(Rules(retention_bytes=3600 * 100), rate=None)
    assert (unknown.risk, unknown.held) == ("unknown", None), "it is not known how long that lasts"
    assert "3" in unknown.causes[0]
    assert verdict(Rules(retention=5 * HOUR), rate=None).risk == "safe"
    assert verdict(Rules(retention_bytes=0), rate=None).risk == "loss"
    assert verdict(Rules(retention_bytes=0), rate=0).risk == "loss"


def test_the_stricter_of_two_limits_counts():
    found = verdict(Rules(retention=9 * HOUR, retention_bytes=3600 * 100), rate=100)
    assert found.held == HOUR
    assert "360,000 bytes" in str(found)


def test_a_hold_keeps_what_retention_would_not():
    assert verdict(Rules(retention=timedelta(0))).risk == "loss"
    assert verdict(Rules(retention=timedelta(0), is_held=True)).risk == "safe"


@pytest.mark.parametrize(
    "rules",
    [
        Rules(retention=timedelta(0), is_held=True, expiry=2 * HOUR),
        Rules(retention=timedelta(0), is_held=True, quotas=(Quota(None, 2 * HOUR, evicts=True),)),
        Rules(retention=timedelta(0), is_held=True, quotas=(Quota(7200 * 10, None, evicts=True),)),
    ],
)
def test_what_ends_a_holds_protection_limits_it(rules):
    found = verdict(rules, rate=10)
    assert (found.risk, found.held) == ("loss", 2 * HOUR)


def test_a_hold_never_shortens_what_retention_keeps():
    assert verdict(Rules(retention=9 * HOUR, is_held=True, expiry=HOUR)).held == 9 * HOUR
    assert verdict(Rules(is_held=True, expiry=HOUR)).held is None


def test_a_quota_that_stops_producers_is_a_risk_before_it_does():
    quota = (Quota(1_000_000, None, evicts=False),)
    assert verdict(Rules(is_held=True, quotas=quota), rate=10, unread=1000).risk == "safe"
    near = verdict(Rules(is_held=True, quotas=quota), rate=10, unread=950_000)
    assert near.risk == "low"
    assert "stops producers" in str(near)
    assert verdict(Rules(quotas=quota), rate=10, unread=0).risk == "safe", "nothing waits: nothing grows"


def test_a_window_that_is_still_unread_uses_up_the_room():
    rules = Rules(retention=10 * HOUR)
    assert verdict(rules, waiting_since=NOW - 2 * HOUR).room == 7 * HOUR
    late = verdict(rules, waiting_since=NOW - 9.5 * HOUR)
    assert (late.risk, late.room) == ("low", 0.5 * HOUR)
    assert verdict(rules, waiting_since=NOW - 11 * HOUR).risk == "loss"


def test_what_we_may_not_know_is_unknown_and_no_alarm():
    found = verdict(None)
    assert (found.risk, found.is_risk) == ("unknown", False)


def test_a_schedule_must_make_sense():
    for length, delay in ((timedelta(0), HOUR), (HOUR, -HOUR)):
        with pytest.raises(InvalidRequest):
            Schedule.of(length, delay)
