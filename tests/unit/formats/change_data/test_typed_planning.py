"""What a plan pins of changes in Avro: all columns come from the schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.change_data.sampling import Sample
from airflow_provider_streams.formats.change_data.typed_planning import typed_format
from airflow_provider_streams.model.schema.change_payload import Debezium
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.ddl import ddl, parse_columns
from tests.unit.formats.change_data.debezium_messages import key_of
from tests.unit.formats.change_data.test_typed import COLUMNS, ENVELOPE, ROW

FLAT = {**ROW, "fields": [*ROW["fields"], {"name": "__op", "type": ["null", "string"]}]}


def planned(schema: dict[str, Any], payload: Debezium | None = None, **others: Any) -> ChangeFormat:
    return typed_format(payload or Debezium(), json.dumps(schema), **{"keys": ["id"], **others})


@pytest.mark.parametrize(("schema", "envelope"), [(ENVELOPE, "debezium"), (FLAT, "flat")])
def test_the_row_has_the_columns_of_its_schema(schema: dict[str, Any], envelope: str) -> None:
    found = planned(schema)
    assert (found.row, found.envelope, found.keys) == (parse_columns(COLUMNS), envelope, ("id",))
    assert ChangeFormat.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_declared_columns_come_first_and_former_ones_stay() -> None:
    former = ChangeFormat(parse_columns("gone string, id long"))
    found = planned(ENVELOPE, Debezium("text string, any binary"), former=former)
    assert found.declared == ("text", "any")
    assert ddl(found.row).startswith("text string, any binary, gone string, id long, amount decimal(12,2)")


def test_a_key_that_no_schema_tells_is_looked_up_in_messages() -> None:
    assert planned(ENVELOPE, keys=None, samples=[Sample(None, key_of(id=1))]).keys == ("id",)
    assert planned(ENVELOPE, keys=None).keys == ()


def test_a_schema_of_no_changes_is_refused() -> None:
    nothing = {"type": "record", "name": "R", "fields": [{"name": "op", "type": "string"}]}
    with pytest.raises(InvalidSchema, match="no rows before or after"):
        planned(nothing)
