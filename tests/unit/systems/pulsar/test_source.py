import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidName, InvalidRequest
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.pulsar.declaration import Pulsar
from airflow_provider_streams.systems.pulsar.source import PulsarSource, full_topic_name, full_topic_pattern
from airflow_provider_streams.systems.source_json import source_from_json, source_to_json

part = st.text("abzAZ019-=:._", min_size=1, max_size=10)


@given(part, part, part)
def test_shorthands_and_full_names_are_the_same_topic(tenant, namespace, local):
    full = f"persistent://{tenant}/{namespace}/{local}"
    assert full_topic_name(full) == full
    assert full_topic_name(f"{tenant}/{namespace}/{local}") == full
    if not re.match(r"^[a-z-]+://", local):
        assert full_topic_name(local) == f"persistent://public/default/{local}"


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a/b",
        "a/b/",
        "/b/c",
        "a/b/c/d",
        "persistent://a",
        "non-persistent://a/b/c",
        "topic://a/b/c",
        "http://a/b/c",
    ],
)
def test_names_that_are_no_stored_topics_are_refused_with_a_reason(name):
    with pytest.raises(InvalidName) as caught:
        PulsarSource(name)
    assert repr(name) in str(caught.value)


def test_a_source_has_topics_or_a_pattern():
    for arguments in ({}, {"topics": "a", "pattern": "b"}, {"topics": []}):
        with pytest.raises(InvalidRequest, match="one of them"):
            PulsarSource(**arguments)


@given(st.lists(part, min_size=1, max_size=4, unique=True), st.randoms(use_true_random=False))
def test_a_sources_key_does_not_depend_on_the_order_of_its_topics(topics, dice):
    names = [f"a/b/{name}" for name in topics]
    key = PulsarSource(names).key
    dice.shuffle(names)
    assert PulsarSource([*names, names[0]]).key == key


@pytest.mark.parametrize("pattern", ["a/b/[", "a.*/b/c", "topic://a/b/c.*", "a/b"])
def test_patterns_that_cannot_be_listed_are_refused(pattern):
    with pytest.raises(InvalidName):
        PulsarSource(pattern=pattern)


def test_a_pattern_is_completed_like_a_name():
    assert full_topic_pattern("orders-.*") == "persistent://public/default/orders-.*"
    assert full_topic_pattern("a/b/(x|y/z)") == "persistent://a/b/(x|y/z)"


def test_a_source_says_which_system_and_asset_it_is():
    source = PulsarSource("shop/orders/events", conn_id="p")
    assert (source.system, source.asset_uri) == ("pulsar", "pulsar://p/shop/orders/events")
    assert isinstance(source, Source)


def test_the_asset_of_several_topics_names_all_in_any_order():
    uris = {PulsarSource(topics, conn_id="p").asset_uri for topics in (["b", "shop/orders/a"], ["shop/orders/a", "b"])}
    assert uris == {"pulsar://p/public/default/b,shop/orders/a"}


TOPIC = "persistent://shop/orders/events"
CHOICES = {
    "all": ({}, "pulsar:pulsar_default:persistent://shop/orders/events"),
    "partitions": ({"partitions": [3, 0, 3]}, f"pulsar:pulsar_default:partitions:0,3:{TOPIC}"),
    "keys": ({"keys": ["b", "a"]}, f"pulsar:pulsar_default:keys:YQ==,Yg==:{TOPIC}"),
    "hashes": ({"key_hash_ranges": [(9, 20), (0, 8)]}, f"pulsar:pulsar_default:slots:0-20:{TOPIC}"),
    "both": ({"partitions": [1], "keys": "a"}, f"pulsar:pulsar_default:partitions:1:keys:YQ==:{TOPIC}"),
}


@pytest.mark.parametrize(("given", "key"), CHOICES.values(), ids=CHOICES)
def test_readers_of_different_choices_read_different_sources(given, key):
    source = PulsarSource("shop/orders/events", **given)
    assert source.key == key
    assert source_from_json(json.loads(json.dumps(source_to_json(source)))) == source
    names, details = Pulsar().names_of(source)
    assert Pulsar().source(names, "pulsar_default", details) == source


@pytest.mark.parametrize(
    "given",
    [
        {"partitions": [-1]},
        {"partitions": [True]},
        {"keys": [b"a"]},
        {"keys": "a", "key_hash_ranges": [(0, 1)]},
        {"key_hash_ranges": [(0, 65536)]},
        {"key_hash_ranges": [(5, 3)]},
    ],
)
def test_choices_that_cannot_be_are_refused(given):
    with pytest.raises(InvalidRequest):
        PulsarSource("shop/orders/events", **given)


def test_partitions_of_a_partition_are_refused():
    with pytest.raises(InvalidRequest, match="not both"):
        PulsarSource("shop/orders/events-partition-3", partitions=[3])
