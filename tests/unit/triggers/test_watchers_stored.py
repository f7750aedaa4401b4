"""Airflow knows a watcher again by its stored arguments; otherwise it makes another one at each parse of the DAG."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from airflow.models.trigger import Trigger
from airflow.sdk import DAG, Asset, AssetWatcher
from airflow.triggers.base import BaseEventTrigger

from airflow_provider_streams import PravegaSource, PulsarSource
from airflow_provider_streams.triggers.cuts import RecordCutsTrigger
from airflow_provider_streams.triggers.new_windows import NewWindowsTrigger
from airflow_provider_streams.triggers.pravega_unread import PravegaUnreadTrigger
from airflow_provider_streams.triggers.pulsar_messages import PulsarMessagesTrigger
from tests.airflow_versions import deserialized, serialized, stored_trigger, trigger_argument

ORDERS = PulsarSource(["shop/orders/a", "shop/orders/b"])
WATCHERS = [
    NewWindowsTrigger(ORDERS, timedelta(hours=1), reader="orders"),
    RecordCutsTrigger([ORDERS, PravegaSource("shop/orders")], 30.0, "clock"),
    PulsarMessagesTrigger(source=PulsarSource(["shop/orders/a", "shop/orders/b"]), subscription="airflow"),
    PravegaUnreadTrigger(stream="shop/orders", reader="orders"),
]


@pytest.mark.parametrize("trigger", WATCHERS, ids=lambda trigger: type(trigger).__name__)
def test_a_stored_watcher_is_known_again_and_rebuilt(trigger):
    watched = Asset("watched", watchers=[AssetWatcher("watcher", trigger)])
    parsed = deserialized(json.loads(json.dumps(serialized(DAG("watching", schedule=[watched])))))
    ((_, asset),) = parsed.timetable.asset_condition.iter_assets()
    (watcher,) = asset.watchers
    of_dag = stored_trigger(watcher.trigger)
    row = Trigger(classpath=of_dag["classpath"], kwargs=of_dag["kwargs"])
    assert BaseEventTrigger.hash(row.classpath, row.kwargs) == BaseEventTrigger.hash(**of_dag)

    arguments = {name: trigger_argument(value) for name, value in row.kwargs.items()}
    assert type(trigger)(**arguments).serialize() == trigger.serialize()
