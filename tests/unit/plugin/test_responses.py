from __future__ import annotations

import pytest

from airflow_provider_streams import PravegaSource, PulsarSource
from airflow_provider_streams.journal.reader_overview import ReaderOverview
from airflow_provider_streams.plugin.responses import source_json
from airflow_provider_streams.systems.source_json import source_to_json


@pytest.mark.parametrize(
    ("source", "title"),
    [
        (PulsarSource("shop/orders/events-partition-3", conn_id="team:prod"), "shop/orders/events-partition-3"),
        (PulsarSource(pattern="persistent://shop/orders/.*", conn_id="team:prod"), "shop/orders/.*"),
        (PravegaSource("shop/orders", "team:prod"), "shop/orders"),
    ],
)
def test_a_source_is_shown_as_it_was_written_down(source, title):
    shown = source_json(ReaderOverview(7, source.key, "r", source=source_to_json(source)))
    assert (shown["system"], shown["conn_id"], shown["title"]) == (source.system, "team:prod", title)


@pytest.mark.parametrize("source", [None, {"system": "kafka", "conn_id": "prod", "name": "orders"}])
def test_of_a_source_that_cannot_be_made_the_key_is_shown(source):
    shown = source_json(ReaderOverview(7, "kafka:prod:orders", "r", source=source))
    assert (shown["title"], shown["conn_id"]) == ("kafka:prod:orders", "prod" if source else "")
