"""An asset's URI has at most 1,500 letters, and is the same in every DAG that names the same stream or table."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from airflow.sdk import Asset
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams import (
    DeltaSink,
    IcebergSink,
    ParquetSink,
    PravegaSource,
    PulsarSource,
    ReadWindowOperator,
    WindowReadySensor,
)
from airflow_provider_streams.model.asset_uri_length import MOST_LETTERS, may_shorten, short_uri
from airflow_provider_streams.model.sinks.custom_sink import CustomSink
from airflow_provider_streams.model.sinks.table_sink import TableSink

FOLDERS = "/".join(["x" * 200] * 8)
LONG = [
    PravegaSource([f"shop/{'orders-of-a-region' * 3}-{number}" for number in range(40)]),
    PravegaSource(pattern=f"shop/({'|'.join(f'orders-{number}' for number in range(300))})"),
    PravegaSource(scope="shop", tags=[f"{'tag' * 20}{number}" for number in range(40)]),
    PulsarSource(pattern=f"persistent://shop/orders/({'|'.join(f'orders-{number}' for number in range(300))})"),
    PulsarSource(f"shop/orders/{'x' * 1500}"),
    PulsarSource([f"shop/orders/{'orders-of-a-region' * 3}-{number}" for number in range(40)]),
    ParquetSink(f"/lake/{FOLDERS}"),
    ParquetSink(f"/lake/{'ü' * 250}/{'ü' * 250}"),
    DeltaSink(f"s3://lake/{FOLDERS}"),
    DeltaSink(f"/lake/{FOLDERS}"),
    IcebergSink(f"shop.{'orders' * 300}"),
    TableSink(f"prod.shop.{'orders' * 300}"),
    CustomSink("shop.sinks:Writer", f"https://lake/{FOLDERS}"),
]


@pytest.mark.parametrize("value", LONG, ids=lambda one: f"{type(one).__name__}")
def test_long_names_are_assets_that_consumers_find(value):
    """A consumer writes `Asset(uri=table.asset_uri)`, in another file."""
    asset = Asset(uri=value.asset_uri)
    assert len(asset.uri) <= MOST_LETTERS
    assert asset.uri == asset.name == value.asset_uri
    if hasattr(value, "topics") or hasattr(value, "streams"):
        task = WindowReadySensor(task_id="ready", source=value)
        read = ReadWindowOperator(task_id="read", source=value, sink=None)
        assert read.inlets == [asset]
        assert task.source is value
    else:
        read = ReadWindowOperator(task_id="read", source=PulsarSource("t"), sink=value)
        assert read.outlets == [asset]
        assert len(value.location) > MOST_LETTERS


def test_the_rule_is_what_the_documentation_says():
    """DAGs of other versions of this package find each other by it."""
    assert short_uri("pravega://c/" + "s" * 2000) == "pravega://c/" + "s" * 1455 + "~f475c43395a5bf37ceed6790ad19b2e4"
    assert short_uri("x" * MOST_LETTERS) == "x" * MOST_LETTERS


@given(st.text(st.sampled_from("aß%/ü~"), min_size=0, max_size=400), st.integers(1440, 1520))
def test_a_short_form_is_whole_and_stays(end, filler):
    from airflow_provider_streams.model.stream.source import in_uri

    uri = f"file:///{'x' * filler}{in_uri(end)}"
    short = short_uri(uri)
    assert len(short) <= MOST_LETTERS
    assert short_uri(short) == short
    assert short == uri or re.fullmatch(r"(?:[^%]|%[0-9A-F]{2})*", short), "no half of an escape"
    assert unquote(short, errors="replace")
    assert short == uri or may_shorten(short, uri[:100])


def test_two_long_uris_with_one_beginning_are_two():
    assert len({short_uri("x" * length) for length in range(1490, 1600)}) == 110
