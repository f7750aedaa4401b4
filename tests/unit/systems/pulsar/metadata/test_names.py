import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.systems.pulsar.metadata import names

LOCAL = st.text(min_size=1, max_size=20).filter(lambda text: "/" not in text and not text.isspace())


@given(st.from_regex(r"[a-z-]{1,12}", fullmatch=True), st.integers(0, 10_000))
def test_a_partition_knows_its_parent_and_number(local, number):
    parent = f"persistent://a/b/{local}"
    name = names.partition_name(parent, number)
    assert names.parent_of(name) == parent
    assert names.partition_of(name) == number


@pytest.mark.parametrize("local", ["x", "x-partition-", "x-partition-01", "x-partition--1", "x-partition-3x"])
def test_names_the_broker_takes_for_plain_topics_have_no_partition(local):
    name = f"persistent://a/b/{local}"
    assert (names.parent_of(name), names.partition_of(name)) == (name, -1)


def test_a_path_encodes_the_topic_as_one_segment():
    path = names.rest_path("persistent://tenant/space/some/thing? &%-partition-2")
    assert path == "persistent/tenant/space/some%2Fthing%3F%20%26%25-partition-2"


@given(LOCAL)
def test_no_topic_name_leaves_its_place_in_the_path(local):
    path = names.rest_path(f"persistent://t/n/{local}")
    assert path.count("/") == 3
    assert not set("?# ") & set(path)


def test_lists_fold_partitions_into_parents():
    listed = ["persistent://a/b/y-partition-1", "persistent://a/b/y-partition-0", "persistent://a/b/x"]
    assert names.parents(listed) == ("persistent://a/b/x", "persistent://a/b/y")


def test_a_pattern_matches_whole_names_of_users_topics_only():
    listed = [
        "persistent://a/b/orders-partition-0",
        "persistent://a/b/orders-eu",
        "persistent://a/b/my-orders",
        "persistent://a/b/__change_events",
    ]
    assert names.matching("persistent://a/b/orders.*", listed) == (
        "persistent://a/b/orders",
        "persistent://a/b/orders-eu",
    )
    assert names.matching("persistent://a/b/.*change.*", listed) == ()


def test_a_namespace_is_known_from_a_name_and_from_a_pattern():
    assert names.namespace_of("persistent://a/b/c/d") == "a/b"
    assert names.namespace_of("persistent://a/b/.*") == "a/b"
