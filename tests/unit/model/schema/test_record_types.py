"""Which versions are of one record type, and which types a source reads."""

from __future__ import annotations

import json

import pytest

from airflow_provider_streams.errors import InvalidSchema, MultipleRecordTypes
from airflow_provider_streams.model.schema.payload import (
    Auto,
    Json,
    Registry,
    payload_from,
    payload_to_json,
)
from airflow_provider_streams.model.schema.payload_options import payload_of_options
from airflow_provider_streams.model.schema.record_types import RecordName, read_types, types_of_versions


def versions(*names):
    """By version; `new<old` is a record that names an older one as its alias."""
    told = [name.split("<") for name in names]
    return {str(number): RecordName(name, tuple(aliases)) for number, (name, *aliases) in enumerate(told)}


@pytest.mark.parametrize(
    ("names", "types"),
    [
        (["t.A", "t.A"], ["t.A", "t.A"]),
        (["t.A", "u.A"], ["t.A", "u.A"]),
        (["A", "t.A"], ["A", "t.A"]),
        (["A", "B<A"], ["B", "B"]),
        (["A", "A", "B<A", "C<B", "C"], ["C"] * 5),
        (["A", "B", "B<A"], ["B"] * 3),
        (["A", "B<A", "A"], ["A", "B", "A"]),
        (["B", "A", "B<A"], ["B", "A", "B"]),
        (["A", "B<A", "A<B"], ["A", "B", "A"]),
        (["A", "B<A", "C<A"], ["A", "B", "C"]),
        (["B<A", "A"], ["B", "A"]),
        (["B<Never"], ["B"]),
        (["", "A", ""], ["A", "A", "A"]),
        (["", "A", "B"], ["", "A", "B"]),
        (["", ""], ["", ""]),
    ],
)
def test_versions_are_of_one_type_by_name_or_by_an_alias_whose_name_is_not_used_again(names, types):
    assert list(types_of_versions(versions(*names)).values()) == types


def test_several_types_are_refused_by_name():
    with pytest.raises(
        MultipleRecordTypes, match=r"s/g: its events are of 2 record types: t\.Order, t\.Payment\."
    ) as caught:
        read_types({"s/other": versions("x.X"), "s/g": versions("t.Order", "t.Payment", "t.Order")})
    assert not caught.value.retryable
    assert read_types({"a": versions("t.Order"), "b": versions("t.Payment")}).read == {"t.Order", "t.Payment"}


@pytest.mark.parametrize("wanted", ["t.Order", "Order", ".t.Order"])
def test_one_type_is_chosen_by_its_name(wanted):
    types = read_types({"g": versions("t.Order", "t.Payment"), "h": versions("t.Payment")}, [wanted])
    assert types.read == {"t.Order"}
    assert [types.reads("g", "0"), types.reads("g", "1"), types.reads("h", "0")] == [True, False, False]


def test_a_type_is_found_by_the_name_that_it_had():
    types = read_types({"g": versions("t.Order", "t.Purchase<t.Order", "t.Payment")}, ["Order"])
    assert types.read == {"t.Purchase"}
    assert types.reads("g", "0")


def test_several_names_are_those_of_one_type():
    types = read_types({"g": versions("v1.Order", "v2.Order", "t.Payment")}, ["v1.Order", "v2.Order"])
    assert types.of == {"g": {"0": "v1.Order", "1": "v1.Order", "2": "t.Payment"}}
    assert types.read == {"v1.Order"}


@pytest.mark.parametrize(
    ("wanted", "why"),
    [("Refund", r"there are \.?Order, t\.Order"), ("Order", r"'\.Order', '\.t\.Order'"), ("rder", "no such type")],
)
def test_a_name_of_no_type_or_of_several_is_refused(wanted, why):
    with pytest.raises(InvalidSchema, match=why):
        read_types({"g": versions("Order", "t.Order", "t.Payment")}, [wanted])


def test_javas_nested_classes_are_found_by_their_own_name():
    assert read_types({"g": versions("Gen$J", "Gen$J2")}, ["J2"]).read == {"Gen$J2"}


def test_all_types_are_read_and_rows_say_theirs():
    types = read_types({"g": versions("t.Order", "t.Payment")}, all_types=True)
    assert (types.read, types.is_column) == ({"t.Order", "t.Payment"}, True)


@pytest.mark.parametrize("payload", [Auto(type="A"), Auto(type=("A", "B")), Auto(types="all"), Registry(type="A")])
def test_what_users_say_of_types_outlives_json_and_may_stand_in_options(payload):
    assert payload_from(json.loads(json.dumps(payload_to_json(payload)))) == payload
    assert hash(payload) == hash(payload_from(payload_to_json(payload)))
    names = ",".join(payload.type) or None
    assert payload_of_options("value", {"format": payload.format, "type": names, "types": payload.types}) == payload


def test_a_payload_in_json_has_no_defaults():
    assert payload_to_json(Auto()) == {"format": "auto"}
    assert payload_to_json(Registry()) == {"format": "registry", "conn_id": "registry_default"}


@pytest.mark.parametrize(
    "wrong", [{"type": "A", "types": "all"}, {"types": "every"}, {"type": ""}, {"type": ("A", "")}, {"type": "."}]
)
def test_what_says_nothing_of_types_is_refused(wrong):
    with pytest.raises(InvalidSchema):
        Auto(**wrong)


def test_options_of_types_belong_to_schemas_that_the_system_knows():
    with pytest.raises(InvalidSchema, match="value_format=auto or registry"):
        payload_of_options("value", {"format": "json", "schema": "id long", "type": "A"})
    with pytest.raises(InvalidSchema, match="value_format=auto or registry"):
        payload_of_options("value", {"types": "all"})
    assert isinstance(payload_of_options("value", {"format": "json", "schema": "id long"}), Json)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_values_that_are_no_records_are_another_type_than_a_record(order):
    told = (RecordName("t.X"), RecordName("string", is_record=False))
    names = {"t": {str(place): told[one] for place, one in enumerate(order)}}
    types = read_types(names, ("X",))
    assert [types.reads("t", str(place)) for place in (0, 1)] == [one == 0 for one in order]
    with pytest.raises(MultipleRecordTypes):
        read_types(names)


def test_values_that_are_no_records_are_one_type_where_there_are_no_records():
    names = {"0": RecordName("int", is_record=False), "1": RecordName("long", is_record=False)}
    assert types_of_versions(names) == {"0": "", "1": ""}


def test_a_type_without_any_schema_says_so():
    with pytest.raises(InvalidSchema, match="no schema"):
        read_types({"t": {}}, ("X",))
