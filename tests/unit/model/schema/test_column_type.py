"""Types of columns by their parts: a type that grows loses nothing, and the path names a part that is missing."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.schema.column_type import ColumnType
from airflow_provider_streams.model.sinks.landing import grown, missing_columns, new_columns

PLAIN = st.sampled_from(["bigint", "string", "decimal(10,2)", "time(6)", "timestamp_ntz", "char(3)"])
NAMES = st.text(string.ascii_lowercase + "_ .", min_size=1, max_size=4)


def _nested(inner):
    return st.one_of(
        inner.map(lambda one: ColumnType("array", {"element": one})),
        st.tuples(PLAIN, inner).map(lambda one: ColumnType(f"map<{one[0]}", {"value": one[1]})),
        st.dictionaries(NAMES, inner, max_size=3).map(lambda parts: ColumnType("struct", parts)),
    )


TYPES = st.recursive(PLAIN.map(ColumnType), _nested, max_leaves=12)
ROWS = st.dictionaries(NAMES, TYPES, min_size=1, max_size=4).map(lambda parts: ColumnType("struct", parts))


def schema(rows):
    return tuple((name, str(one)) for name, one in rows.parts.items())


def structs(type_, path=()):
    """Where structs are."""
    if type_.name == "struct":
        yield path
    for name, one in type_.parts.items():
        yield from structs(one, (*path, name))


def at(type_, path):
    return at(type_.parts[path[0]], path[1:]) if path else type_


def changed(type_, path, parts):
    """With other fields of one struct in it."""
    if not path:
        return ColumnType("struct", parts)
    inner = changed(type_.parts[path[0]], path[1:], parts)
    return ColumnType(type_.name, {**type_.parts, path[0]: inner})


@given(TYPES)
def test_the_text_of_a_type_and_its_parts_are_the_same(type_):
    assert ColumnType.parse(str(type_)) == type_


@pytest.mark.parametrize(
    "text",
    [
        "struct<a:b:string>", "struct<a<b:string>", "struct<a>", "struct<a:string", "array<", "map<string>", "map<",
        "struct<a:string,a:string>", "struct<a:string,>", "string>", "array<string>>", "", "struct<,>", "decimal(1",
    ],
)  # fmt: skip
def test_a_text_that_is_no_type_is_one_type_without_parts(text):
    assert ColumnType.parse(text) == ColumnType(text)
    assert missing_columns((("a", text),), (("a", text),)) == []
    assert len(missing_columns((("a", text),), (("a", "struct<z:int>"),))) == 1


@given(ROWS, st.data())
def test_rows_with_one_field_more_or_less_somewhere(rows, data):
    path = data.draw(st.sampled_from(list(structs(rows))))
    parts = at(rows, path).parts
    name = data.draw(NAMES.filter(lambda name: name not in parts))
    fields = list(parts.items())
    fields.insert(data.draw(st.integers(0, len(fields))), (name, data.draw(TYPES)))
    narrow, wide = schema(rows), schema(changed(rows, path, dict(fields)))
    dotted = ".".join((*path, name))

    assert missing_columns(narrow, wide) == []
    assert new_columns(narrow, wide) == (dotted,)
    assert missing_columns(wide, narrow) == [f"{dotted} is missing, it was {dict(fields)[name]}"]
    assert missing_columns(wide, narrow, [dotted]) == []
    assert missing_columns(wide, narrow, ["another"]) != [] or name == "another"
    table = grown(narrow, wide)
    assert grown(wide, narrow) == wide
    assert grown(table, narrow) == table
    assert missing_columns(table, wide) == missing_columns(wide, table) == []


@given(ROWS, ROWS)
def test_a_table_that_took_rows_lacks_nothing_of_them_and_keeps_what_it_had(table, rows):
    before, now = schema(table), schema(rows)
    after = grown(before, now)
    assert missing_columns(now, after) == []
    assert new_columns(after, now) == ()
    if all("instead" not in one for one in missing_columns(before, now)):
        assert missing_columns(before, after) == []
        assert missing_columns(after, before, new_columns(before, now)) == []
