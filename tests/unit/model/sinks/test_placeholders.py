"""Targets with placeholders: names that are safe everywhere, and no two topics in one table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink, PravegaSource, PulsarSource
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.sinks.placeholders import is_fan_out, tables_of
from airflow_provider_streams.model.sinks.table_name import database_names, safe_name, with_names
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.plan.fan_out_sources import expand_named

SINKS = [
    IcebergSink("lake.{topic}"),
    DeltaSink("s3://lake/{topic}"),
    DeltaSink("/lake/{topic}"),
    ParquetSink("/lake/{topic}"),
]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("orders-1_x", "orders-1_x"),
        ("Orders.V1", "orders_v1"),
        ("a%2Fb", "a_2fb"),
        ("se\u00f1or ..", "se_or___"),
        ("../etc", "___etc"),
    ],
)
def test_a_name_is_small_letters_digits_and_two_marks(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@pytest.mark.parametrize("sink", SINKS, ids=lambda sink: str(sink.asset_uri))
@given(name=st.text(min_size=1, max_size=30))
def test_every_name_is_a_tables_name_in_every_format(sink, name: str) -> None:
    ((table,), meetings) = tables_of(sink, [(PulsarSource("a"), {"topic": name})])
    assert not meetings
    assert not is_fan_out(table.sink)
    assert table.sink.asset_uri == sink.asset_uri.replace("*", safe_name(name))
    assert type(table.sink).from_json(table.sink.to_json()) == table.sink


@given(names=st.lists(st.text("aA.-_%\u00e9", min_size=1, max_size=3), min_size=1, max_size=8, unique=True))
def test_no_two_topics_share_a_table(names: list[str]) -> None:
    given = [(PulsarSource(f"public/default/{number}"), {"topic": name}) for number, name in enumerate(names)]
    tables, meetings = tables_of(IcebergSink("lake.{topic}"), given)
    assert len({table.sink.asset_uri for table in tables}) == len(tables)
    assert {one.source for one in tables} | {one.source for one in meetings} == {source for source, _ in given}
    for one in meetings:
        assert one.others
        assert str(one.source) in str(one.error())


def test_what_is_said_of_the_table_is_said_of_each() -> None:
    sink = IcebergSink("lake.{tenant}_{topic}", conn_id="iceberg", partition_by="day", widen=True)
    (orders, clicks), _ = tables_of(
        sink, [(PulsarSource(name), {"tenant": "T", "topic": name}) for name in ("orders", "clicks")]
    )
    assert orders.sink == IcebergSink("lake.t_orders", conn_id="iceberg", partition_by="day", widen=True)
    assert clicks.sink == IcebergSink("lake.t_clicks", conn_id="iceberg", partition_by="day", widen=True)


def test_a_topic_and_a_stream_know_their_names() -> None:
    pulsar, pravega = declaration_of("pulsar"), declaration_of("pravega")
    assert pulsar.placeholder_names(PulsarSource("t/n/Some.Topic")) == {
        "tenant": "t",
        "namespace": "n",
        "topic": "Some.Topic",
        "schema": "Some",
        "table": "Topic",
    }
    known = {"scope": "s", "stream": "a.b", "topic": "a.b", "schema": "a", "table": "b"}
    assert pravega.placeholder_names(PravegaSource("s/a.b")) == known
    assert database_names("dbz.public.orders") == {"schema": "public", "table": "orders"}
    assert database_names("orders") == {"schema": "", "table": "orders"}
    assert with_names("{scope}/{stream}", pravega.placeholder_names(PravegaSource("S/a.b"))) == "s/a_b"


def test_an_unknown_placeholder_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        InvalidRequest, match=r"nothing to put for \{stream\}; known: \{tenant\}, \{namespace\}, \{topic\}, \{schema\}"
    ):
        expand_named(PulsarSource(pattern="t/n/.*"), IcebergSink("lake.{stream}"))
    with pytest.raises(InvalidRequest, match=r"known: \{scope\}, \{stream\}, \{topic\}"):
        expand_named(PravegaSource(scope="s"), ParquetSink("/lake/{namespace}"))
    with pytest.raises(InvalidRequest, match=r"\{\}"):
        expand_named(PulsarSource("a"), ParquetSink("/lake/{}"))


def test_named_topics_and_streams_are_known_without_asking() -> None:
    found = expand_named(
        PulsarSource(["a", "t/n/b"], conn_id="c", value="auto", keys="k"), ParquetSink("/lake/{topic}")
    )
    assert found is not None
    assert [(one.source, one.sink.asset_uri) for one in found.tables] == [
        (PulsarSource("a", conn_id="c", value="auto", keys="k"), "file:///lake/a"),
        (PulsarSource("t/n/b", conn_id="c", value="auto", keys="k"), "file:///lake/b"),
    ]
    assert expand_named(PulsarSource(pattern="t/n/.*"), ParquetSink("/lake/{topic}")) is None
    assert expand_named(PravegaSource(scope="s"), ParquetSink("/lake/{topic}")) is None


def test_partitions_of_a_pattern_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="name the topics, or leave out partitions"):
        expand_named(PulsarSource(pattern="t/n/.*", partitions=[1]), ParquetSink("/lake/{topic}"))


def test_topics_that_differ_by_what_a_catalog_folds_meet() -> None:
    found = expand_named(PulsarSource(["a.b", "A_b", "c"]), IcebergSink("lake.{topic}"))
    assert found is not None
    assert [str(one.source) for one in found.tables] == ["persistent://public/default/c"]
    assert {str(one.source) for one in found.meetings} == {
        "persistent://public/default/a.b",
        "persistent://public/default/A_b",
    }
    (first, _) = found.meetings
    assert "would share the table iceberg://default/lake/a_b" in str(first.error())


def test_what_lands_in_one_table_has_no_placeholders() -> None:
    with pytest.raises(InvalidRequest, match="a table for each topic or stream"):
        Landing(ParquetSink("/lake/{topic}"))
