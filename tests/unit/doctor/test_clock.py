"""How clocks are compared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.doctor import clock
from airflow_provider_streams.doctor.clock import Comparison, check_clock
from airflow_provider_streams.doctor.finding import Notes
from airflow_provider_streams.errors import SystemUnavailable
from airflow_provider_streams.systems.diagnosis import ServerTime
from airflow_provider_streams.systems.rest.server_date import parse_date

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def judged(server, after=NOW, slack=MINUTE):
    notes = Notes("clock")
    clock.judge(notes, Comparison(ServerTime("the broker", server, 1.0), NOW, after), slack)
    (one,) = notes.findings
    return one


@pytest.mark.parametrize("difference", [-1, -0.5, 0])
def test_what_the_resolution_of_the_header_hides_is_no_difference(difference):
    assert judged(NOW + difference * SECOND).says.startswith("none that can be seen")


def test_what_the_way_of_the_request_took_is_no_difference():
    assert judged(NOW + 8 * SECOND, after=NOW + 9 * SECOND).level == "ok"


@pytest.mark.parametrize(
    ("difference", "level", "order"),
    [
        (-5 * MINUTE, "error", "later than the broker"),
        (5 * MINUTE, "error", "earlier than the broker"),
        (40 * SECOND, "warning", "earlier"),
        (10 * SECOND, "ok", "earlier"),
    ],
)
def test_a_difference_is_compared_with_the_slack(difference, level, order):
    one = judged(NOW + difference)
    assert one.level == level
    assert order in one.says
    assert ("NTP" in one.next_step) == (level != "ok")


def test_more_slack_allows_more():
    assert judged(NOW + 5 * MINUTE, slack=15 * MINUTE).level == "ok"


class Server:
    def __init__(self, told):
        self.told = told

    def server_time(self, source):  # noqa: ARG002 - the interface has it
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


def test_a_server_that_does_not_say_the_time_is_not_called_ok():
    assert [one.level for one in check_clock(Server(None), None, MINUTE)] == ["skipped"]
    assert [one.level for one in check_clock(Server(SystemUnavailable("b", "gone")), None, MINUTE)] == ["warning"]


@pytest.mark.parametrize(
    ("text", "told"),
    [("Fri, 20 Nov 2026 10:00:00 GMT", NOW), ("", None), ("soon", None)],
)
def test_the_date_header_is_read(text, told):
    assert parse_date(text) == told
