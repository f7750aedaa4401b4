"""What a plan pins of changes in Avro: the schema tells the columns, whatever the window holds. No Arrow, no numpy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.change_data.messages.layouts import IMAGES, is_metadata
from airflow_provider_streams.formats.change_data.row_types.avro_meanings import connect_schema
from airflow_provider_streams.formats.change_data.row_types.connect_schema import fields_of, meaning_of
from airflow_provider_streams.formats.change_data.row_types.uniting import united
from airflow_provider_streams.formats.change_data.sampling import DOCUMENT, Sample, key_names
from airflow_provider_streams.model.schema.change_payload import ChangePayload, Debezium
from airflow_provider_streams.model.schema.change_rows import UNAVAILABLE, ChangeFormat, Envelope
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.types import Field, StructOf


def typed_format(
    payload: ChangePayload,
    avro: str,
    keys: Sequence[str] | None,
    samples: Sequence[Sample] = (),
    former: ChangeFormat | None = None,
) -> ChangeFormat:
    """How messages of an Avro schema become change rows.

    Args:
        payload: what the user declared.
        avro: the schema of the messages, as Avro's JSON.
        keys: the fields of the key, if a schema tells them.
        samples: messages whose keys tell them otherwise.
        former: what the reader's former window pinned; its columns stay.

    Raises:
        InvalidSchema: the schema describes no changes; or a column's type differs from the former one.
    """
    schema = connect_schema(avro)
    envelope, told = _told(schema)
    declared = parse_columns(payload.columns) if payload.columns else StructOf(())
    own = {one.name for one in declared.fields}
    before = StructOf(tuple(one for one in former.row.fields if one.name not in own)) if former else StructOf(())
    row = united(before, StructOf(tuple(one for one in told.fields if one.name not in own)))
    found = StructOf((*declared.fields, *row.fields))
    if not found.fields:
        raise InvalidSchema("the schema of changes", "its row has no columns", _NO_CHANGES)
    names = {one.name for one in found.fields}
    known = key_names(samples, former) if keys is None else keys
    placeholder = payload.placeholder if isinstance(payload, Debezium) else UNAVAILABLE
    return ChangeFormat(
        found,
        envelope,
        tuple(name for name in known if name in names),
        placeholder,
        declared=tuple(one.name for one in declared.fields),
        schema=json.dumps(schema, separators=(",", ":")),
    )


def _told(schema: object) -> tuple[Envelope, StructOf]:
    """What is around a row, and the row's columns."""
    fields = fields_of(schema)
    if "op" not in fields:
        rows = tuple(Field(name, meaning_of(one).type) for name, one in fields.items() if not is_metadata(name))
        return "flat", StructOf(rows)
    image = next((fields[name] for name in IMAGES["debezium"][::-1] if name in fields), None)
    if image is None:
        raise InvalidSchema("the schema of changes", "it has an op, but no rows before or after it", _NO_CHANGES)
    type_ = meaning_of(image).type
    return "debezium", type_ if isinstance(type_, StructOf) else DOCUMENT


_NO_CHANGES: Final = "Read such a topic with value='auto'."
