"""Airflow's own `MessageQueueTrigger` finds both schemes, and stores our triggers, not itself."""

from __future__ import annotations

import pytest
from airflow.providers.common.messaging.triggers.msg_queue import MessageQueueTrigger

from airflow_provider_streams import PravegaSource, PulsarSource
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.triggers.pravega_unread import PravegaUnreadTrigger
from airflow_provider_streams.triggers.pulsar_messages import PulsarMessagesTrigger

SEVERAL = PulsarSource(["orders", "clicks"])
ASKED = [
    ("pulsar", {"topic": "orders", "subscription": "s", "max_entries": 7}, PulsarMessagesTrigger),
    ("pulsar", {"source": SEVERAL, "subscription": "s"}, PulsarMessagesTrigger),
    ("pravega", {"stream": "shop/orders", "reader": "orders"}, PravegaUnreadTrigger),
    ("pravega", {"source": PravegaSource("shop/orders", conn_id="c"), "reader": "orders"}, PravegaUnreadTrigger),
]


@pytest.mark.parametrize(("scheme", "arguments", "kind"), ASKED, ids=str)
def test_a_scheme_leads_to_its_trigger(scheme, arguments, kind):
    path, stored = MessageQueueTrigger(scheme=scheme, **arguments).serialize()
    assert path == f"{kind.__module__}.{kind.__qualname__}"
    assert kind(**stored).serialize() == (path, stored)


def test_only_the_same_subscription_and_bounds_share_a_stream():
    one = PulsarMessagesTrigger(topic="orders", subscription="s")
    assert (
        one.shared_stream_key()
        == PulsarMessagesTrigger(source=PulsarSource(["orders"]), subscription="s").shared_stream_key()
    )
    for other in ({"subscription": "t"}, {"topic": "clicks"}, {"max_entries": 5}, {"conn_id": "other"}):
        asked = {"topic": "orders", "subscription": "s", **other}
        assert PulsarMessagesTrigger(**asked).shared_stream_key() != one.shared_stream_key()


def test_an_event_holds_at_least_one_entry():
    with pytest.raises(InvalidRequest):
        PulsarMessagesTrigger(topic="orders", subscription="s", max_entries=0)
