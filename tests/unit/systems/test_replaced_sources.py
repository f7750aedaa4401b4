"""`dataclasses.replace` of a source: each field by its name, and the others stay."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from airflow_provider_streams import Bytes, Json, PravegaSource, PulsarSource, Utf8
from airflow_provider_streams.systems.source_json import source_from_json, source_to_json
from airflow_provider_streams.testing.fake import FakeSource

TOPICS = PulsarSource("shop/orders/events", conn_id="c", value="auto", key="utf8", partitions=[1], keys=["a"])
HASHES = PulsarSource(pattern="shop/orders/.*", key_hash_ranges=[(0, 8)])
STREAMS = PravegaSource("shop/orders", "c", "s", "utf8", routing_keys=["a"])
SCOPE = PravegaSource(scope="shop", tags=["paid"])
PATTERN = PravegaSource(pattern="shop/orders-.*", tags=["paid"])

NEW = {
    "pulsar": {
        "topics": ("persistent://shop/orders/others",),
        "pattern": "persistent://shop/returns/.*",
        "conn_id": "d",
        "value": Bytes(),
        "key_payload": Json("id long"),
        "partitions": (2, 3),
        "keys": ("b",),
        "key_hash_ranges": ((9, 20),),
    },
    "pravega": {
        "streams": ("shop/returns", "shop/others"),
        "scope": "other",
        "pattern": "shop/returns-.*",
        "tags": ("late",),
        "routing_keys": ("b",),
        "conn_id": "d",
        "event_time_unit": "us",
        "value": Bytes(),
    },
    "fake": {"name": "letters", "conn_id": "d", "value": Bytes()},
}
"""Another value of each field."""
EMPTY = {
    "topics": {"pattern": None},
    "pattern": {"topics": (), "streams": (), "scope": None, "partitions": ()},
    "keys": {"key_hash_ranges": ()},
    "key_hash_ranges": {"keys": ()},
    "streams": {"scope": None, "pattern": None, "tags": ()},
    "scope": {"streams": (), "pattern": None},
    "tags": {"streams": (), "scope": "shop", "pattern": None},
}
"""What is to be empty where a field is not."""

SOURCES = [TOPICS, HASHES, STREAMS, SCOPE, PATTERN, FakeSource("numbers")]


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_a_source_with_nothing_replaced_is_the_same(source):
    assert replace(source) == source
    assert replace(source).key == source.key


@pytest.mark.parametrize(
    ("source", "field"), [(source, one.name) for source in SOURCES for one in fields(source)], ids=str
)
def test_each_field_may_be_replaced_and_the_others_stay(source, field):
    names = {one.name for one in fields(source)}
    emptied = {name: value for name, value in EMPTY.get(field, {}).items() if name in names}
    new = {**emptied, field: NEW[source.system][field]}
    found = replace(source, **new)
    expected = {one.name: getattr(source, one.name) for one in fields(source)} | new
    assert {name: getattr(found, name) for name in names} == expected
    assert source_from_json(source_to_json(found)) == found


def test_what_the_constructor_calls_its_arguments_may_be_replaced_too():
    assert replace(TOPICS, key="bytes").key_payload == Bytes()
    assert replace(TOPICS, key_payload=None).key_payload is None
    assert replace(STREAMS, stream="shop/returns").streams == ("shop/returns",)
    assert replace(TOPICS, value="utf8").value == Utf8()
