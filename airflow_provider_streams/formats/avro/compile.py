"""Avro schemas to steps."""

from __future__ import annotations

from typing import Any, Final, cast

import pyarrow as pa

from airflow_provider_streams.formats.arrow_types import SIMPLE, arrow_type
from airflow_provider_streams.formats.avro.columns import (
    LOGICAL_TIMES,
    branches_with_values,
    is_decimal,
    row_type,
    widened,
)
from airflow_provider_streams.formats.avro.nested import (
    Alone,
    InnerRecords,
    ListCauses,
    Lists,
    Structs,
    Unions,
    WidenedUnions,
)
from airflow_provider_streams.formats.avro.rows import NOT_UTF8, OUTSIDE, RowReader
from airflow_provider_streams.formats.avro.steps import (
    Blobs,
    Booleans,
    Decimals,
    FixedBlobs,
    Floats,
    Integers,
    Nulls,
    Step,
    Symbols,
    Texts,
    Times,
    Uuids,
)
from airflow_provider_streams.formats.causes import Causes
from airflow_provider_streams.formats.times import Scale
from airflow_provider_streams.model.avro_schema import (
    Array,
    Enum,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Recursive,
    Schema,
    Union,
    records,
)


class Compiler:
    """Makes the steps of one schema; every step knows its path, for causes."""

    def __init__(self, schema: Schema, causes: Causes) -> None:
        self._known, self._causes = records(schema), causes

    def step(self, schema: Schema, path: str = "") -> Step:
        """The step that reads a value of it."""
        match schema:
            case Record(_, fields):
                inner = [self.step(one.schema, _below(path, one.name)) for one in fields]
                return Structs(cast("pa.StructType", arrow_type(row_type(schema))), inner)
            case Union():
                return self._union(schema, path)
            case Array() | Map():
                return self._list(schema, path)
            case Enum(_, symbols):
                return Symbols(symbols, self._broken(path), self._code(path, "names no symbol of its enum"))
            case Recursive():
                rows = RowReader(schema, self._known, self._causes, path or _WHOLE, as_json=True)
                return InnerRecords(rows)
        return self._leaf(schema, path)

    def _list(self, schema: Array | Map, path: str) -> Step:
        kind = arrow_type(row_type(schema))
        rows = RowReader(schema, self._known, self._causes, path or _WHOLE)
        if isinstance(schema, Array):
            item = self.step(schema.items, f"{path}[]")
        else:
            key = Texts(Blobs(self._broken(path)), self._code(path, NOT_UTF8))
            value = self.step(schema.values, f"{path}{{}}")
            found = cast("pa.MapType[Any, Any]", kind)
            entry = pa.struct([found.key_field, found.item_field])
            item = Structs(entry, [key, value])
        return Lists(kind, item, rows, ListCauses(self._causes, path or _WHOLE))

    def _union(self, union: Union, path: str) -> Step:
        values = branches_with_values(union)
        steps = [self.step(branch, path) if branch in values else None for branch in union.branches]
        broken, unknown = self._broken(path), self._code(path, "names no branch of its union")
        kind = arrow_type(row_type(union))
        if len(values) > 1:
            several = WidenedUnions if widened(values) else Unions
            return several(kind, steps, broken, unknown)  # type: ignore[arg-type]
        return Alone(kind, steps, broken, unknown)

    def _leaf(self, schema: Primitive | Fixed, path: str) -> Step:  # noqa: PLR0911  # one for each type
        broken = self._broken(path)
        if schema.logical:
            return self._logical(schema, schema.logical, path)
        if isinstance(schema, Fixed):
            return FixedBlobs(schema.size, broken)
        match schema.kind:
            case "null":
                return Nulls()
            case "boolean":
                return Booleans(broken)
            case "int" | "long":
                return Integers(SIMPLE[schema.kind], _BITS[schema.kind], broken)
            case "float" | "double":
                return Floats(SIMPLE[schema.kind])
            case "string":
                return Texts(Blobs(broken), self._code(path, NOT_UTF8))
        return Blobs(broken)

    def _logical(self, schema: Primitive | Fixed, logical: Logical, path: str) -> Step:
        broken = self._broken(path)
        if logical.name in LOGICAL_TIMES:
            bits = _BITS[cast("Primitive", schema).kind]
            word, unit = LOGICAL_TIMES[logical.name]
            return Times(SIMPLE[word], bits, Scale.of(word, unit), broken, self._code(path, OUTSIDE))
        blobs = FixedBlobs(schema.size, broken) if isinstance(schema, Fixed) else Blobs(broken)
        if logical.name == "uuid":
            return Uuids(broken) if isinstance(schema, Fixed) else Texts(blobs, self._code(path, NOT_UTF8))
        if not is_decimal(logical):
            return blobs
        kind = pa.decimal128(logical.precision, logical.scale)
        return Decimals(kind, blobs, self._code(path, "is no decimal of its digits"))

    def _broken(self, path: str) -> int:
        return self._code(path, "ends early, or is no Avro value of its type")

    def _code(self, path: str, rule: str) -> int:
        return self._causes.code(f"{path or _WHOLE}: {rule}")


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


_WHOLE: Final = "the value"
_BITS: Final = {"int": 32, "long": 64}
