"""The declaration: what it refuses, and that it survives the journal."""

from __future__ import annotations

import json

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.changes.expressions import IsNull


def test_it_is_the_same_after_json() -> None:
    cdc = AutoCdc(keys=["a", "b"], sequence_by="struct(at, n)", apply_as_deletes="value is null", stored_as_scd_type=2)
    assert AutoCdc.from_json(json.loads(json.dumps(cdc.to_json()))) == cdc
    assert cdc.sequence == (("at",), ("n",))
    assert cdc.deletes == IsNull(("value",))
    assert hash(cdc)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"keys": "id"}, "keys is a list"),
        ({"keys": ["id", "id"]}, "twice"),
        ({"keys": [1]}, "names of columns"),
        ({"column_list": []}, "column_list is empty"),
        ({"column_list": ["a"], "except_column_list": ["b"]}, "not both"),
        ({"stored_as_scd_type": 3}, "1 .* or 2"),
        ({"stored_as_scd_type": True}, "1 .* or 2"),
        ({"stored_as_scd_type": None}, "1 .* or 2"),
        ({"track_history_column_list": ["a"]}, "needs stored_as_scd_type=2"),
        ({"apply_as_truncates": "a", "stored_as_scd_type": 2}, "needs stored_as_scd_type=1"),
        ({"ignore_null_updates": "no"}, "True or False"),
        ({"apply_as_deletes": "op = "}, "too early"),
        ({"apply_as_deletes": 1}, "is a text"),
        ({"sequence_by": "a b"}, "'b' is not expected"),
    ],
)
def test_contradictions_and_other_types_are_refused_by_name(options: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        AutoCdc(**{"keys": ["id"], **options})  # type: ignore[arg-type]


def test_the_table_gets_the_chosen_columns_and_always_its_keys() -> None:
    rows = ["op", "id", "a", "b"]
    assert AutoCdc().chosen(rows, ["id"]) == rows
    assert AutoCdc(except_column_list=["op"]).chosen(rows, ["id"]) == ["id", "a", "b"]
    assert AutoCdc(column_list=["b", "id"]).chosen(rows, ["id"]) == ["id", "b"]
    with pytest.raises(InvalidRequest, match="needs its key 'id'"):
        AutoCdc(column_list=["b"]).chosen(rows, ["id"])
    with pytest.raises(InvalidRequest, match="no column 'c'"):
        AutoCdc(column_list=["c"]).chosen(rows, ["id"])
