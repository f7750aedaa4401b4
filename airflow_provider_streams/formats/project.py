"""Columns of one schema as those of another: fields by name or alias, numbers widened, what is lacking filled in."""

from __future__ import annotations

import base64
import decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.formats.arrays import Array, nulls, numbers, valid_flags
from airflow_provider_streams.formats.arrow_types import arrow_type
from airflow_provider_streams.formats.branches import as_union, is_union
from airflow_provider_streams.formats.unite import by_newest, counterpart, taker
from airflow_provider_streams.model.row_type import (
    MISSING,
    ArrayOf,
    Decimal,
    Field,
    MapOf,
    Simple,
    StructOf,
    Type,
)


def differences(have: Type, want: Type) -> tuple[str, ...]:
    """Why values of one type cannot become those of another; empty: they can."""
    both, found = by_newest(want, have)
    if not found and arrow_type(both) != arrow_type(want):
        return (f"the value is {both}, wider than {want}",)
    return found


def project(values: Array, have: Type, want: Type) -> Array:
    """The values as `want`; `differences` has said that they can.

    Raises:
        PlanMismatch: they cannot.
    """
    wanted = arrow_type(want)
    if have == want and values.type == wanted:
        return values
    if is_union(have) or is_union(want):
        return _union(values, have, want, wanted)
    match have, want:
        case StructOf(), StructOf():
            return _struct(values, have, want, wanted)
        case ArrayOf(item), ArrayOf(wanted_item):
            inner = project(values.values, item, wanted_item)  # type: ignore[attr-defined]  # a list has them
            return _around(values, wanted, [inner])
        case MapOf(_, item), MapOf(_, wanted_item):
            return _map(values, item, wanted_item, wanted)
        case ((Simple() | Decimal()), (Simple() | Decimal())):
            # a long beside a double is one: what is beyond 53 bits is rounded, as Avro's rules say
            return cast("Array", values.cast(wanted, safe=not pa.types.is_floating(wanted)))
    raise PlanMismatch(f"{have} cannot become {want}")


def _struct(values: Array, have: StructOf, want: StructOf, kind: pa.DataType) -> Array:
    count = len(values)
    fields = []
    for one in want.fields:
        found = counterpart(one, have.fields)
        if found is None:
            fields.append(filled(one, count))
        else:
            place = have.fields.index(found)
            column: Array = pc.struct_field(values, place) if values.null_count else _child(values, place)
            fields.append(project(column, found.type, one.type))
    made: Array = pa.StructArray.from_arrays(
        fields, fields=list(cast("pa.StructType", kind)), mask=values.is_null() if values.null_count else None
    )
    return made


def _union(values: Array, have: Type, want: Type, kind: pa.DataType) -> Array:
    """Each branch's values as the branch that takes them; `lost` names those that none takes."""
    parts: dict[str, list[Array]] = {}
    for branch, column in branches(values, have):
        if found := taken_by(branch, want, have):
            parts.setdefault(found.name, []).append(project(column, branch.type, found.type))
    count = len(values)
    members = [_first(parts[one.name]) if one.name in parts else filled(one, count) for one in as_union(want).fields]
    if not is_union(want):
        return members[0]
    made: Array = pa.StructArray.from_arrays(
        members, fields=list(cast("pa.StructType", kind)), mask=values.is_null() if values.null_count else None
    )
    return made


def branches(values: Array, have: Type) -> list[tuple[Field, Array]]:
    """The branches of a union with their values, null where the value is of another; a type alone is one branch."""
    fields = as_union(have).fields
    if not is_union(have):
        return [(fields[0], values)]
    return [(one, pc.struct_field(values, place)) for place, one in enumerate(fields)]


def taken_by(branch: Field, want: Type, have: Type) -> Field | None:
    """The branch of the plan's type that takes one of `have`, and holds what it holds."""
    found = taker(branch, want, have)
    return found[0] if found and arrow_type(found[0].type) == arrow_type(found[1]) else None


def _first(columns: list[Array]) -> Array:
    """Of each row the value that one of the columns has."""
    made = columns[0]
    for column in columns[1:]:
        places = np.where(valid_flags(made), 0, len(made)) + np.arange(len(made))
        made = pa.concat_arrays([made, column]).take(numbers(pa.int64(), places))
    return made


def _child(values: Array, place: int) -> Array:
    return cast("pa.StructArray", values).field(place)


def _map(values: Array, item: Type, wanted_item: Type, kind: pa.DataType) -> Array:
    found = cast("pa.MapArray[Any, Any]", values)
    entries = pa.StructArray.from_arrays(
        [found.keys, project(found.items, item, wanted_item)],
        fields=[cast("pa.MapType[Any, Any]", kind).key_field, cast("pa.MapType[Any, Any]", kind).item_field],
    )
    return _around(values, kind, [entries])


def _around(values: Array, kind: pa.DataType, children: list[Array]) -> Array:
    """The same lists of other items."""
    buffers = values.buffers()[:2]
    return pa.Array.from_buffers(kind, len(values), list(buffers), offset=values.offset, children=children)


def filled(field: Field, count: int) -> Array:
    """A column of the field's default; of nulls, where it has none."""
    kind = arrow_type(field.type)
    if field.default is MISSING or field.default is None:
        return nulls(kind, count)
    one: Array = pa.array([_value(field.type, field.default)], kind)
    return one.take(pa.repeat(pa.scalar(0, pa.int32()), count))


def _value(type_: Type, default: Any) -> Any:  # noqa: PLR0911  # one for each type
    """A default of JSON as Arrow takes it."""
    if default is None:
        return None
    match type_:
        case Decimal():
            return decimal.Decimal(default)
        case Simple("binary"):
            return base64.b64decode(default)
        case ArrayOf(element):
            return [_value(element, one) for one in default]
        case MapOf(_, item):
            return [(name, _value(item, one)) for name, one in default.items()]
        case StructOf(fields):
            return {one.name: _value(one.type, default.get(one.name)) for one in fields}
    return default
