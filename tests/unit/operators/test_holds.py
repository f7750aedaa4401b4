"""How far before a window a hold begins."""

from datetime import timedelta

import pytest

from airflow_provider_streams import EventTime, PublishTime, PulsarSource
from airflow_provider_streams.operators.holds import HoldRetentionOperator

SLACK = timedelta(seconds=30)


@pytest.mark.parametrize(("basis", "slack"), [(PublishTime(SLACK), SLACK), (EventTime(slack=SLACK), 2 * SLACK)])
def test_a_hold_begins_where_the_first_event_of_its_window_may_have_been_stored(basis, slack):
    """An event time may be ahead of the clock by the slack, and publish times out of order by it."""
    hold = HoldRetentionOperator(task_id="hold", source=PulsarSource("t"), reader="r", basis=basis)
    assert hold.slack == slack
