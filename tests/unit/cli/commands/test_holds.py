from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.cli.commands.holds import row_of
from airflow_provider_streams.model.stream.hold import Hold
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.operations.hold import Mark

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MARK = Mark("d.read", Position.of(7, 3, -1), NOW - timedelta(hours=5), NOW - timedelta(hours=6))
T = "persistent/public/default"


def test_a_table_shows_whom_a_hold_serves_and_its_age():
    since, placed = NOW - timedelta(hours=6), NOW - timedelta(hours=5)
    known = Hold("nightly", "d.read", since, bytes=1_234_567, placed=placed, positions={"orders": "7:3:-1"})
    row = row_of(known, NOW)
    assert list(row) == ["hold", "reader", "shards", "age", "keeps", "from"]
    assert [str(cell) for cell in row.values()] == [
        "nightly",
        "d.read",
        "1",
        "5:00:00",
        "1,234,567 B",
        since.isoformat(),
    ]
    assert list(row_of(Hold("shop/someone", None), NOW).values()) == ["shop/someone", "?", "?", "?", "?", ""]


def test_other_subscriptions_are_no_holds(streams, pulsar_connection, capsys):
    mine = {"subscriptionProperties": MARK.to_properties(), "backlogSize": 10, "isDurable": True}
    alike = {"subscriptionProperties": {}, "backlogSize": 10}
    pulsar_connection.answers |= {
        f"{T}/orders/partitions": {"partitions": 0},
        f"{T}/orders/stats": {"subscriptions": {"streams-hold-a": mine, "streams-hold-b": alike, "a": mine}},
    }
    streams("holds", "pulsar", "orders", "--output", "json")
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["hold"], shown["reader"], shown["bytes"]) == ("a", "d.read", 10)
    assert shown["positions"] == {"persistent://public/default/orders": "7:3:-1"}
