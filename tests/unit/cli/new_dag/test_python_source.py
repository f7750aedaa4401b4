"""Values as Python source: whatever a text holds, the source gives the same value, and nothing else runs."""

from __future__ import annotations

import ast
import io
import tokenize
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams import (
    Auto,
    Avro,
    CustomSink,
    DeltaSink,
    IcebergSink,
    Json,
    ParquetSink,
    PravegaSource,
    PublishTime,
    PulsarSource,
    RecordedCuts,
    Registry,
    TableSink,
)
from airflow_provider_streams.cli.new_dag.python_source import classes_in, comment, expression_of, lines, literal

TEXTS = st.text(st.characters(exclude_categories=()))
"""Surrogates and control characters among them."""

VALUES = (
    PulsarSource("shop/orders/events", value="auto", key="utf8", conn_id="prod"),
    PulsarSource(["a", "b"], partitions=[0, 3], keys=["k'\"\n"]),
    PulsarSource(pattern=r"persistent://shop/orders/.*\d+", key_hash_ranges=[(0, 1023), (4096, 8191)]),
    PulsarSource("o", value=Auto("price decimal(12,2)", type=["shop.Order", "old.Order"], as_text=True)),
    PravegaSource("shop/orders", value=Registry("registry", group="g", codecs={"lz4": "a.b:c"})),
    PravegaSource(scope="shop", tags=["a", "b"], event_time_unit="us", value=Json("id long, name string")),
    PravegaSource("shop/orders", value=Avro({"type": "record", "name": "R", "fields": []}), routing_keys=["x"]),
    ParquetSink("/lake/{topic}", compression="snappy"),
    IcebergSink("shop.orders", conn_id="iceberg_default", partition_by=None, widen=True),
    DeltaSink("s3://lake/orders", conn_id="aws_default"),
    TableSink("prod.shop.orders", using="iceberg"),
    CustomSink("my_package.my_sinks:MyWriter", "/lake/orders", {"a'": 'b"'}),
    PublishTime(slack=timedelta(seconds=5)),
    RecordedCuts(max_skew=timedelta(seconds=90, microseconds=5)),
    timedelta(hours=3),
    timedelta(0),
)


@given(TEXTS)
def test_a_literal_is_the_text_on_one_printable_line(text: str) -> None:
    written = literal(text)
    assert ast.literal_eval(written) == text
    assert written.isprintable()


@given(TEXTS)
def test_a_comment_is_nothing_but_a_comment(text: str) -> None:
    tokens = tokenize.generate_tokens(io.StringIO(comment(text) + "\n").readline)
    kinds = {token.type for token in tokens}
    assert kinds <= {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
    compile(comment(text), "comment", "exec")


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_expression_gives_an_equal_value(value: object) -> None:
    text = lines(expression_of(value), "value = ")
    names = {one.__name__: one for one in classes_in(value)}
    assert evaluated(text, names) == value


@given(st.lists(TEXTS.filter(str.strip), min_size=1, unique=True))
def test_names_of_any_letters_stay_names(names: list[str]) -> None:
    sink = CustomSink("m:W", "/lake", dict.fromkeys(names, "x"))
    assert evaluated(lines(expression_of(sink), "value = "), {"CustomSink": CustomSink}) == sink


def evaluated(text: str, names: dict[str, type]) -> object:
    """The value of the only statement, whose only names are these classes."""
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Assign)
    assert {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)} <= set(names)
    return eval(compile(ast.Expression(statement.value), "value", "eval"), {"__builtins__": {}, **names})  # noqa: S307
