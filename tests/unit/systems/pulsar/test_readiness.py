from datetime import timedelta

import pytest

from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pulsar.admin.peek import PeekedEntry
from airflow_provider_streams.systems.pulsar.readiness import (
    NotReady,
    Ready,
    entries_before_end,
    window_ready,
)
from tests.unit.systems.pulsar.cluster import EPOCH_MS, Cluster, Stored, Topic, at_ms

WINDOW = Window(at_ms(EPOCH_MS), at_ms(EPOCH_MS + 1000))
SLACK = timedelta(milliseconds=100)
NAME = "persistent://public/default/t"


def test_a_window_is_ready_from_the_millisecond_its_slack_has_passed():
    assert window_ready(at_ms(EPOCH_MS + 1100), WINDOW, SLACK) == Ready()
    assert isinstance(window_ready(at_ms(EPOCH_MS + 1099), WINDOW, SLACK), NotReady)


def test_an_open_transaction_is_named_by_its_shard():
    held = {"b": PeekedEntry(None, uncommitted=True), "a": PeekedEntry(None), "c": None}
    answer = window_ready(at_ms(EPOCH_MS + 1100), WINDOW, SLACK, held)
    assert isinstance(answer, NotReady)
    assert answer.reason.endswith("back b")


@pytest.mark.parametrize(
    ("kinds", "ready"),
    [
        (["event"] * 4, True),
        (["event", "open", "event", "event"], False),
        (["event", "aborted", "marker", "marker"], True),
        (["event", "event", "event", "open"], False),
        ([], True),
    ],
)
@pytest.mark.parametrize("per_ledger", [2, 4])
@pytest.mark.parametrize("rolled", [True, False])
def test_the_entry_before_the_end_decides_for_all(kinds, ready, per_ledger, rolled):
    cluster = Cluster()
    topic = cluster.add("t", Topic.of([Stored(EPOCH_MS + 100 * i, kind) for i, kind in enumerate(kinds)], per_ledger))
    if rolled:
        topic.ledgers[1000] = []

    async def ask(planner):
        return await entries_before_end(planner._admin, PulsarSource("t"), WINDOW, SLACK)

    seen = cluster.ask(ask)
    assert (window_ready(at_ms(EPOCH_MS + 1100), WINDOW, SLACK, seen) == Ready()) is ready


def test_an_open_transaction_after_the_window_does_not_matter():
    cluster = Cluster()
    cluster.add("t", Topic.of([Stored(EPOCH_MS), Stored(EPOCH_MS + 5000, "open")]))

    async def ask(planner):
        return await entries_before_end(planner._admin, PulsarSource("t"), WINDOW, SLACK)

    assert window_ready(at_ms(EPOCH_MS + 9000), WINDOW, SLACK, cluster.ask(ask)) == Ready()
