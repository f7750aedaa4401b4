from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.connection.list_options import numbers, spans, words, write
from airflow_provider_streams.systems.pulsar.declaration import chosen
from airflow_provider_streams.systems.registry import declaration_of


@pytest.mark.parametrize("text", ["", " ", ",", ", ,", ",a", "a,,b", '"a', '"a"b', "\t\n"])
def test_a_blank_choice_is_refused(text):
    """`--keys "$KEY"` with an empty variable would read everything."""
    with pytest.raises(InvalidRequest, match="none of them blank"):
        words("keys", text)
    for option in ("keys", "partitions", "key_hash_ranges"):
        with pytest.raises(InvalidRequest):
            chosen({option: text})
    with pytest.raises(InvalidRequest):
        declaration_of("pravega").source(["shop/orders"], "pravega_default", {"routing_keys": text})


def test_what_is_not_given_chooses_nothing():
    assert words("keys", None) == numbers("partitions", None) == spans("key hash ranges", None) == ()
    assert chosen({}) == {"keys": (), "partitions": (), "key_hash_ranges": ()}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a, b ,c d", ("a", "b", "c d")),
        ("a, b ,", ("a", "b")),
        ('"a,b", " ","",x"y', ("a,b", " ", "", 'x"y')),
        ('"say ""no"""', ('say "no"',)),
    ],
)
def test_values_in_double_quotes_are_taken_as_they_are(text, values):
    assert words("keys", text) == values


@given(st.lists(st.text(), min_size=1))
def test_any_values_come_back(values):
    assert words("keys", write(values)) == tuple(values)
