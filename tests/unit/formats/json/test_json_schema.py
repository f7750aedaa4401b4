"""References of JSON Schemas: what they mean, and that none makes planning endless."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.json.columns import of_json_schema
from airflow_provider_streams.formats.schema.row_types import type_of

LINE = {"type": "object", "id": "urn:Line", "properties": {"item": {"type": "string"}}}


def shown(schema: Any) -> str:
    return str(type_of(of_json_schema(json.dumps(schema))))


def objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "schema",
    [
        objects(a=LINE, b={"type": "object", "$ref": "urn:Line"}),
        {**objects(a={"$ref": "#/definitions/Line"}, b={"$ref": "#/definitions/Line"}), "definitions": {"Line": LINE}},
        {**objects(a={"$ref": "#/$defs/a~1b"}, b={"$ref": "#/$defs/a~1b"}), "$defs": {"a/b": LINE}},
        {**objects(a={"$ref": "urn:Line"}, b={"$ref": "#/definitions/x"}), "definitions": {"x": LINE}},
    ],
)
def test_a_reference_is_what_it_refers_to(schema):
    assert shown(schema) == "struct<a: struct<item: string>, b: struct<item: string>>"


@pytest.mark.parametrize(
    "schema",
    [
        objects(a={"$ref": "#"}),
        objects(a={"$ref": "urn:nothing"}),
        objects(a={"$ref": "#/definitions/nothing"}),
        {**objects(a={"$ref": "#/definitions/a"}), "definitions": {"a": objects(b={"$ref": "#/definitions/a"})}},
        {"id": "urn:Node", **objects(next={"type": "object", "$ref": "urn:Node"})},
        {
            **objects(a={"$ref": "#/definitions/0"}),
            "definitions": {
                str(number): objects(
                    x={"$ref": f"#/definitions/{number + 1}"}, y={"$ref": f"#/definitions/{number + 1}"}
                )
                for number in range(60)
            },
        },
    ],
    ids=["root", "no-id", "no-path", "circle", "itself", "doubling"],
)
def test_references_that_lead_nowhere_or_on_and_on_are_refused(schema):
    with pytest.raises(InvalidSchema):
        shown(schema)
