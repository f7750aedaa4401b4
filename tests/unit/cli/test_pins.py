from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.cli.pins import pins_table
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.hold_subscription import Mark, PinSubscription
from tests.unit.cli.test_commands import streams  # noqa: F401 - a fixture

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MARK = Mark("d.read", Position.of(7, 3, -1), NOW - timedelta(hours=5), NOW - timedelta(hours=6))
T = "persistent/public/default"


def test_a_table_shows_whom_a_pin_serves_and_its_age():
    pin = PinSubscription("persistent://public/default/orders", "nightly", MARK, 1_234_567)
    head, line = pins_table([pin], NOW).splitlines()
    assert head.split() == ["pin", "reader", "shard", "position", "age", "keeps", "from"]
    assert "nightly" in line
    assert "5:00:00" in line
    assert "1,234,567 B" in line


def test_other_subscriptions_are_no_pins(streams, pulsar_connection, capsys):  # noqa: F811 - the fixture
    mine = {"subscriptionProperties": MARK.to_properties(), "backlogSize": 10, "isDurable": True}
    alike = {"subscriptionProperties": {}, "backlogSize": 10}
    pulsar_connection.answers |= {
        f"{T}/orders/partitions": {"partitions": 0},
        f"{T}/orders/stats": {"subscriptions": {"streams-pin-a": mine, "streams-pin-b": alike, "a": mine}},
    }
    streams("pins", "pulsar", "orders", "--output", "json")
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["pin"], shown["reader"], shown["position"], shown["bytes"]) == ("a", "d.read", "7:3:-1", 10)
