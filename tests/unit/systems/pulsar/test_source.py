import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidName, InvalidRequest
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.pulsar.source import PulsarSource, full_topic_name, full_topic_pattern

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
