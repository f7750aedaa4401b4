"""The grammar of conditions and sequences."""

from __future__ import annotations

import contextlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.changes.expressions import (
    Compare,
    Every,
    IsIn,
    IsNull,
    IsTrue,
    Not,
    Some,
    parse_condition,
    parse_sequence,
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("value is null", IsNull(("value",))),
        ("value IS NOT NULL", Not(IsNull(("value",)))),
        ("op = 'D'", Compare(("op",), "=", "D")),
        ('op == "it\\"s"', Compare(("op",), "=", 'it"s')),
        ("n <> -1", Compare(("n",), "<>", -1)),
        ("n!=2.50", Compare(("n",), "<>", Decimal("2.50"))),
        ("n <=> 1", Compare(("n",), "<=>", 1)),
        ("a.`b c`.d >= true", Compare(("a", "b c", "d"), ">=", True)),
        ("deleted", IsTrue(("deleted",))),
        ("op in ('D', 'T')", IsIn(("op",), ("D", "T"))),
        ("op not in ('D')", Not(IsIn(("op",), ("D",)))),
        ("a or b and not c", Some((IsTrue(("a",)), Every((IsTrue(("b",)), Not(IsTrue(("c",)))))))),
        ("(a or b) and c", Every((Some((IsTrue(("a",)), IsTrue(("b",)))), IsTrue(("c",))))),
    ],
)
def test_conditions_mean_what_spark_takes_them_for(text: str, meant: object) -> None:
    assert parse_condition(text) == meant


def test_a_sequence_is_a_column_or_a_struct_of_columns() -> None:
    assert parse_sequence("version") == (("version",),)
    assert parse_sequence("source.lsn") == (("source", "lsn"),)
    assert parse_sequence("STRUCT(a, b.c)") == (("a",), ("b", "c"))
    assert parse_sequence("struct") == (("struct",),)  # a column may be called so


@pytest.mark.parametrize(
    "text",
    ["", "a =", "a = b", "= 1", "a b", "(a", "a)", "a is 1", "a in ()", "a in (1", "not", "a; drop", "1a = 2", "a = '",
     "a.", "upper(a) = 'D'", "a + 1 = 2", "null", "a = null", "a like 'x'"],
)  # fmt: skip
def test_what_is_not_of_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_condition(text)


def test_deep_texts_are_refused_before_python_gives_up() -> None:
    for text in ("(" * 5000 + "a" + ")" * 5000, "not " * 5000 + "a"):
        with pytest.raises(InvalidRequest, match="levels"):
            parse_condition(text)


@given(st.text(alphabet="ab.`'\"()=<>! \n\\10-,andornotisull", max_size=30))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidRequest):
        parse_condition(text)
