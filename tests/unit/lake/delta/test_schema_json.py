from __future__ import annotations

import pytest

from airflow_provider_streams.lake.delta.schema_json import grown

NOTE = {"comment": "theirs"}


def field(name, type_, **metadata):
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def struct(*fields):
    return {"type": "struct", "fields": list(fields)}


def array(element):
    return {"type": "array", "elementType": element, "containsNull": True}


def map_(value):
    return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}


OWN = struct(field("a", "integer", **NOTE))
WIDER = struct(field("a", "long"), field("b", "string"))
BOTH = struct(field("a", "long", **NOTE), field("b", "string"))


@pytest.mark.parametrize("around", [lambda one: one, array, map_, lambda one: array(map_(one))])
def test_a_field_keeps_its_metadata_wherever_it_is(around):
    own, new, both = (struct(field("s", around(one))) for one in (OWN, WIDER, BOTH))
    assert grown(own, new) == both


def test_columns_that_do_not_grow_stay_and_new_ones_follow():
    own = struct(field("x", array("long"), **NOTE), field("y", "string"))
    assert grown(own, struct(field("z", "date"))) == struct(*own["fields"], field("z", "date"))
