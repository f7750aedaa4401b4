"""Avro payloads of one schema: each is one value in binary, without a header, from its first byte to its last."""

from __future__ import annotations

from typing import Any

from airflow_provider_streams.formats.arrays import Array
from airflow_provider_streams.formats.avro.columns import row_type
from airflow_provider_streams.formats.avro.compile import Compiler
from airflow_provider_streams.formats.causes import Causes
from airflow_provider_streams.formats.lanes import Lanes, Places
from airflow_provider_streams.formats.reader import Column
from airflow_provider_streams.model.avro_schema import parse


class AvroReader:
    """Reads payloads by their writer's schema.

    Args:
        schema: Avro's JSON.
        causes: where causes get their numbers.
        padded: NULs behind the value belong to nothing (Pravega's serializers with a codec leave them).

    Raises:
        InvalidSchema: not an Avro schema, or one of too many columns.
    """

    def __init__(self, schema: str | dict[str, Any] | list[Any], causes: Causes, *, padded: bool = False) -> None:
        parsed = parse(schema)
        self.type = row_type(parsed)
        self._step = Compiler(parsed, causes).step(parsed)
        self._padded = padded
        self._short = causes.code("it ends before its last field")
        self._trailing = causes.code("bytes are left behind its last field: it was written with another schema")

    def read(self, payloads: Array) -> Column:
        """All payloads side by side."""
        lanes = Lanes.over(payloads, self._step.room)
        values = self._step.read(lanes, Places.all(len(lanes)))
        lanes.settle(self._short, self._trailing, padded=self._padded)
        return Column(values, lanes.codes)
