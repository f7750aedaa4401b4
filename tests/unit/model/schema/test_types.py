"""Types of rows: as JSON, as a person writes them, and their limits."""

from __future__ import annotations

import contextlib
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.ddl import parse_columns, parse_type
from airflow_provider_streams.model.schema.type_json import from_json, to_json
from airflow_provider_streams.model.schema.type_table import MOST_DEPTH, TIMES, WORDS
from airflow_provider_streams.model.schema.types import (
    MISSING,
    ArrayOf,
    Decimal,
    Field,
    MapOf,
    Simple,
    StructOf,
    columns,
    leaves,
    quoted,
)

NAMES = st.text(min_size=1, max_size=8).filter(lambda name: name.strip() and "\0" not in name)
SIMPLE = st.builds(Simple, st.sampled_from(WORDS)) | st.builds(
    Simple, st.sampled_from(TIMES), st.sampled_from(("d", "s", "ms", "us", "ns"))
)
DECIMALS = st.integers(1, 38).flatmap(lambda digits: st.builds(Decimal, st.just(digits), st.integers(0, digits)))


def structs(inner):
    fields = st.lists(
        st.builds(
            Field,
            NAMES,
            inner,
            nullable=st.booleans(),
            default=st.sampled_from((MISSING, None, 5, "x", [], {"a": 1})),
            aliases=st.lists(NAMES, max_size=2).map(tuple),
        ),
        max_size=4,
        unique_by=lambda field: field.name.lower(),
    )
    return fields.map(lambda found: StructOf(tuple(found)))


TYPES = st.recursive(
    SIMPLE | DECIMALS,
    lambda inner: inner.map(ArrayOf) | st.builds(MapOf, SIMPLE, inner) | structs(inner),
    max_leaves=12,
)


@given(TYPES)
def test_a_type_outlives_json_with_all_that_it_says(type_):
    again = from_json(json.loads(json.dumps(to_json(type_))))
    assert again == type_
    assert to_json(again) == to_json(type_)


@given(TYPES)
def test_what_a_type_says_of_itself_can_be_read_again(type_):
    assert str(parse_type(str(type_))) == str(type_)


def test_a_missing_default_is_itself_in_another_process():
    type_ = StructOf((Field("id", Simple("long")),))
    sent = pickle.loads(pickle.dumps(type_))  # noqa: S301
    assert (sent, sent.fields[0].default is MISSING, to_json(sent)) == (type_, True, to_json(type_))


def test_a_missing_default_is_itself_after_json():
    field = from_json({"struct": [{"name": "a", "type": "int", "nullable": False}]}).fields[0]
    assert field.default is MISSING


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("id long, `odd name` string", "struct<id: long, `odd name`: string>"),
        ("a BIGINT, b tinyint, c numeric(5), d decimal", "struct<a: long, b: byte, c: decimal(5,0), d: decimal(10,0)>"),
        ("a: struct<b: array<int>, c map<string,double>>", "struct<a: struct<b: array<int>, c: map<string,double>>>"),
        ("t timestamp_ltz, u timestamp_ntz", "struct<t: timestamp, u: timestamp_ntz>"),
        ("`a``b` int", "struct<`a``b`: int>"),
    ],
)
def test_columns_as_a_person_writes_them(text, shown):
    assert str(parse_columns(text)) == shown


def test_a_column_that_may_not_lack_says_so():
    required, other = parse_columns("a int not null, b int").fields
    assert (required.nullable, required.default) == (False, MISSING)
    assert (other.nullable, other.default) == (True, None)


@pytest.mark.parametrize(
    "text",
    ["", "id", "id nothing", "id long,", "id long id2 long", "a array<int", "a array<int,int>", "a map<int>",
    "a int not",
     "a int not nil", "a decimal(39,0)", "a decimal(5,6)", "a decimal(99999)", "a int, A int", "a int; drop",
     "a " + "array<" * 70 + "int" + ">" * 70, "a map<array<int>,int>", "a struct<b: int", "<", "a int,,b int"],
)  # fmt: skip
def test_what_is_no_list_of_columns_is_refused(text):
    with pytest.raises(InvalidSchema):
        parse_columns(text)


@given(st.text(max_size=30))
def test_any_text_is_columns_or_refused_by_name(text):
    with contextlib.suppress(InvalidSchema):
        parse_columns(text)


@pytest.mark.parametrize(
    "data", [None, 5, "nothing", {}, {"array": 1}, {"map": ["int"]}, {"struct": [1]}, "date/x", "int/ms"]
)
def test_json_that_is_no_type_is_refused(data):
    with pytest.raises(InvalidSchema):
        from_json(data)


def test_columns_of_a_row():
    assert columns(Simple("string")) == (Field("value", Simple("string")),)
    assert [one.name for one in columns(parse_columns("a int, b int"))] == ["a", "b"]


def test_leaves_are_counted_to_a_depth():
    assert [str(one) for one in leaves(parse_type("struct<a: array<int>, b: map<string,double>>"))] == [
        "int",
        "string",
        "double",
    ]
    deep = Simple("int")
    for _ in range(MOST_DEPTH + 1):
        deep = ArrayOf(deep)
    with pytest.raises(InvalidSchema, match="deeper"):
        list(leaves(deep))


def test_names_are_quoted_where_they_must_be():
    assert [quoted(name) for name in ("plain", "a b", "é", "1a", "a`b")] == ["plain", "`a b`", "`é`", "`1a`", "`a``b`"]


def test_unions_and_names_of_records_outlive_json():
    record = StructOf((Field("x", Simple("int")),), names=("member_r2", "member_r1"))
    union = StructOf(
        (Field("member_r2", record, aliases=("member_r1",)), Field("member_int", Simple("int"))), union=True
    )
    again = from_json(json.loads(json.dumps(to_json(union))))
    assert again == union
    assert again != StructOf(union.fields)
    assert again.fields[0].type.names == record.names
