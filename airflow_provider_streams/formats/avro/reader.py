"""Avro payloads of one schema: each is one value in binary, without a header, from the first byte to the last."""

from __future__ import annotations

from typing import Any, Final, cast

import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrays import Array
from airflow_provider_streams.formats.arrow.arrow_types import SIMPLE, arrow_type, entry_type
from airflow_provider_streams.formats.arrow.times import OUTSIDE, Scale
from airflow_provider_streams.formats.arrow.vectorized_cursor import ColumnSlots, VectorizedCursor
from airflow_provider_streams.formats.avro import column_decoders as leaf
from airflow_provider_streams.formats.avro import columns
from airflow_provider_streams.formats.avro import nested_decoders as nested
from airflow_provider_streams.formats.avro.column_decoders import Step
from airflow_provider_streams.formats.avro.reader_names import renamed_for_reader
from airflow_provider_streams.formats.avro.row_decoder import BROKEN, NOT_UTF8, RowReader, unresolved
from airflow_provider_streams.formats.avro.unresolvable_types import marked
from airflow_provider_streams.formats.decode_failures import Causes, Column
from airflow_provider_streams.model.schema import avro_schema as avro
from airflow_provider_streams.model.schema.types import below


class AvroReader:
    """Reads payloads by their writer's schema, Avro's JSON, as `reader_selection.reader_of` says."""

    def __init__(
        self,
        schema: str | dict[str, Any] | list[Any],
        causes: Causes,
        reader: str | None = None,
        *,
        as_text: bool = False,
        padded: bool = False,
    ) -> None:
        parsed = avro.parse(schema)
        if reader is not None:
            wanted = avro.parse(reader)
            parsed = renamed_for_reader(wanted, parsed)
            parsed = parsed if as_text else marked(parsed, wanted)
        self.type = columns.row_type(parsed)
        self._step = _Compiler(parsed, causes).step(parsed)
        self._padded = padded
        self._short = causes.code("it ends before its last field")
        self._trailing = causes.code("bytes are left after its last field: it was written with another schema")

    def read(self, payloads: Array) -> Column:
        """All payloads side by side."""
        lanes = VectorizedCursor.over(payloads, self._step.room)
        values = self._step.read(lanes, ColumnSlots.all(len(lanes)))
        lanes.settle(self._short, self._trailing, padded=self._padded)
        return Column(values, lanes.codes)


class _Compiler:
    """Makes the steps of one schema. Every step knows its path, for causes."""

    def __init__(self, schema: avro.Schema, causes: Causes) -> None:
        self._known, self._causes = avro.records(schema), causes

    def step(self, schema: avro.Schema, path: str = "") -> Step:
        """The step that reads a value of a schema."""
        step = self._step(schema, path)
        if why := unresolved(schema):
            step.unresolved, step.takes_zero = self._code(path, why), False
        return step

    def _step(self, schema: avro.Schema, path: str) -> Step:
        match schema:
            case avro.Record(_, fields):
                inner = [self.step(one.schema, below(path, one.name)) for one in fields]
                return nested.Structs(cast("pa.StructType", arrow_type(columns.row_type(schema))), inner)
            case avro.Union():
                return self._union(schema, path)
            case avro.Array() | avro.Map():
                return self._list(schema, path)
            case avro.Enum(_, symbols):
                return leaf.Symbols(symbols, self._broken(path), self._code(path, "names no symbol of its enum"))
            case avro.Recursive():
                return nested.InnerRecords(RowReader(schema, self._known, self._causes, path or _WHOLE))
        return self._leaf(schema, path)

    def _list(self, schema: avro.Array | avro.Map, path: str) -> Step:
        kind = arrow_type(columns.row_type(schema))
        rows = RowReader(schema, self._known, self._causes, path or _WHOLE)
        if isinstance(schema, avro.Array):
            item = self.step(schema.items, f"{path}[]")
        else:
            key = leaf.Texts(leaf.Blobs(self._broken(path)), self._code(path, NOT_UTF8))
            item = nested.Structs(entry_type(kind), [key, self.step(schema.values, f"{path}{{}}")])
        return nested.Lists(kind, item, rows, self._causes, path or _WHOLE)

    def _union(self, union: avro.Union, path: str) -> Step:
        values = columns.branches_with_values(union)
        steps = [self.step(branch, path) if branch in values else None for branch in union.branches]
        broken, unknown = self._broken(path), self._code(path, "names no branch of its union")
        kind = arrow_type(columns.row_type(union))
        if len(values) > 1:
            several = nested.WidenedUnions if columns.widened(values) else nested.Unions
            return several(kind, steps, broken, unknown)
        return nested.Alone(kind, steps, broken, unknown)

    def _leaf(self, schema: avro.Primitive | avro.Fixed, path: str) -> Step:  # noqa: PLR0911  # one for each type
        broken = self._broken(path)
        if schema.logical:
            return self._logical(schema, schema.logical, path)
        if isinstance(schema, avro.Fixed):
            return leaf.FixedBlobs(schema.size, broken)
        match schema.kind:
            case "null":
                return leaf.Nulls()
            case "boolean":
                return leaf.Booleans(broken)
            case "int" | "long":
                return leaf.Integers(SIMPLE[schema.kind], _BITS[schema.kind], broken)
            case "float" | "double":
                return leaf.Floats(SIMPLE[schema.kind])
            case "string":
                return leaf.Texts(leaf.Blobs(broken), self._code(path, NOT_UTF8))
        return leaf.Blobs(broken)

    def _logical(self, schema: avro.Primitive | avro.Fixed, logical: avro.Logical, path: str) -> Step:
        broken = self._broken(path)
        if logical.name in columns.LOGICAL_TIMES:
            bits = _BITS[cast("avro.Primitive", schema).kind]
            word, unit = columns.LOGICAL_TIMES[logical.name]
            return leaf.Times(SIMPLE[word], bits, Scale.of(word, unit), broken, self._code(path, OUTSIDE))
        blobs = leaf.FixedBlobs(schema.size, broken) if isinstance(schema, avro.Fixed) else leaf.Blobs(broken)
        if logical.name == "uuid":
            is_fixed = isinstance(schema, avro.Fixed)
            return leaf.Uuids(broken) if is_fixed else leaf.Texts(blobs, self._code(path, NOT_UTF8))
        if not columns.is_decimal(logical):
            return blobs
        kind = pa.decimal128(logical.precision, logical.scale)
        return leaf.Decimals(kind, blobs, self._code(path, "is no decimal of its digits"))

    def _broken(self, path: str) -> int:
        return self._code(path, BROKEN)

    def _code(self, path: str, rule: str) -> int:
        return self._causes.code(f"{path or _WHOLE}: {rule}")


_WHOLE: Final = "the value"
_BITS: Final = {"int": 32, "long": 64}
