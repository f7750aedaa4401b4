"""Columns of one schema as columns of another: fields by name, numbers widened, missing fields filled.

A row with a value that the wanted type cannot hold is bad, never null: `lost` finds it.
"""

from __future__ import annotations

import base64
import decimal
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type, entry_type
from airflow_provider_streams.formats.schema.merge_schemas import (
    as_union,
    by_newest,
    counterpart,
    have_parts,
    is_union,
    shown,
    taker,
)
from airflow_provider_streams.model.schema.types import (
    MISSING,
    ArrayOf,
    Decimal,
    Field,
    MapOf,
    Simple,
    StructOf,
    Type,
    below,
)


class UnmatchedValues(NamedTuple):
    """Values without a place, of one field and branch."""

    path: str
    branch: str
    """A union's branch; empty: the field's types have nothing in common."""
    rows: Flags


def differences(have: Type, want: Type) -> tuple[str, ...]:
    """Why some values of one type cannot become values of another, except branches of unions; empty: all can."""
    both, found = by_newest(want, have)
    if not found and arrow_type(both) != arrow_type(want):
        return (f"the value is {both}, wider than {want}",)
    return found


def project(values: Array, have: Type, want: Type) -> Array:  # noqa: PLR0911  # one for each kind of type
    """The values as `want`, null if they cannot be that."""
    wanted = arrow_type(want)
    if have == want and values.type == wanted:
        return values
    if is_union(have) or is_union(want):
        return _union(values, have, want, wanted)
    match have, want:
        case StructOf(fields), StructOf(wanted_fields):
            return arrays.structs_like(values, wanted, [_field(values, fields, one) for one in wanted_fields])
        case ArrayOf(item), ArrayOf(wanted_item):
            return arrays.lists_like(values, wanted, project(_items(values), item, wanted_item))
        case MapOf(key, item), MapOf(wanted_key, wanted_item) if key == wanted_key:
            return maps_like(values, wanted, project(_map_items(values), item, wanted_item))
        case ((Simple() | Decimal()), (Simple() | Decimal())) if fits(have, want):
            # a long that the newest version promotes to a double is rounded beyond 53 bits, as Avro's rules say
            return cast("Array", values.cast(wanted, safe=not pa.types.is_floating(wanted)))
    return arrays.nulls(wanted, len(values))


def fits(have: Type, want: Type) -> bool:
    """Whether a column of one type, which has no parts, holds all values of the other."""
    return not differences(have, want)


def can_lose(have: Type, want: Type) -> bool:
    """Whether some values of one type have no place in the other."""
    return next(lost(arrays.nulls(arrow_type(have), 0), have, want), None) is not None


def lost(values: Array, have: Type, want: Type, path: str = "") -> Iterator[UnmatchedValues]:
    """The values of each branch and field without a place, even if no row has one."""
    if have == want:
        return
    if is_union(have) or is_union(want):
        yield from _lost_branches(values, have, want, path)
        return
    match have, want:
        case StructOf(fields), StructOf(wanted_fields):
            for one in wanted_fields:
                if own := counterpart(one, fields):
                    column = pc.struct_field(values, fields.index(own))
                    yield from lost(column, own.type, one.type, below(path, one.name))
        case ArrayOf(item), ArrayOf(wanted):
            yield from _holders(values, lost(_items(values), item, wanted, f"{path}[]"))
        case MapOf(key, item), MapOf(wanted_key, wanted) if key == wanted_key:
            yield from _holders(values, lost(_map_items(values), item, wanted, f"{path}{{}}"))
        case _ if not fits(have, want):
            yield UnmatchedValues(path, "", arrays.valid_flags(values))


def _lost_branches(values: Array, have: Type, want: Type, path: str) -> Iterator[UnmatchedValues]:
    for branch, column in branches(values, have):
        if found := _taken_by(branch, want, have):
            yield from lost(column, branch.type, found.type, path)
        else:
            yield UnmatchedValues(path, shown(branch), arrays.valid_flags(column))


def _holders(values: Array, inner: Iterator[UnmatchedValues]) -> Iterator[UnmatchedValues]:
    """Which lists hold such values."""
    offsets = arrays.offsets_of(values)
    for one in inner:
        before = np.concatenate([[0], np.cumsum(one.rows)])
        yield one._replace(rows=before[offsets[1:]] > before[offsets[:-1]])


def _field(values: Array, fields: tuple[Field, ...], want: Field) -> Array:
    found = counterpart(want, fields)
    if found is None:
        return _filled(want, len(values))
    place = fields.index(found)
    structs = cast("pa.StructArray", values)
    column: Array = pc.struct_field(values, place) if values.null_count else structs.field(place)
    return project(column, found.type, want.type)


def _union(values: Array, have: Type, want: Type, kind: pa.DataType) -> Array:
    """Each branch's values as the branch that takes them."""
    parts: dict[str, list[Array]] = {}
    for branch, column in branches(values, have):
        if found := _taken_by(branch, want, have):
            parts.setdefault(found.name, []).append(project(column, branch.type, found.type))
    members = [
        _first(parts[one.name]) if one.name in parts else _filled(one, len(values)) for one in as_union(want).fields
    ]
    return arrays.structs_like(values, kind, members) if is_union(want) else members[0]


def branches(values: Array, have: Type) -> list[tuple[Field, Array]]:
    """The branches of a union with their values, null if the value is of another; any other type is one branch."""
    fields = as_union(have).fields
    if not is_union(have):
        return [(fields[0], values)]
    return [(one, pc.struct_field(values, place)) for place, one in enumerate(fields)]


def _taken_by(branch: Field, want: Type, have: Type) -> Field | None:
    """The branch of the plan's type that takes and holds the values of a branch of `have`."""
    found = taker(branch, want, have)
    return found if found and (have_parts(branch.type, found.type) or fits(branch.type, found.type)) else None


def _first(columns: list[Array]) -> Array:
    """The value of each row, which one of the columns has."""
    made = columns[0]
    for column in columns[1:]:
        places = np.where(arrays.valid_flags(made), 0, len(made)) + np.arange(len(made))
        made = pa.concat_arrays([made, column]).take(arrays.numbers(pa.int64(), places))
    return made


def _items(values: Array) -> Array:
    return cast("pa.ListArray[Any]", values).values


def _map_items(values: Array) -> Array:
    return cast("pa.MapArray[Any, Any]", values).items


def maps_like(values: Array, kind: pa.DataType, items: Array) -> Array:
    """The same maps, of other items."""
    keys = cast("pa.MapArray[Any, Any]", values).keys
    return arrays.lists_like(values, kind, pa.StructArray.from_arrays([keys, items], fields=list(entry_type(kind))))


def _filled(field: Field, count: int) -> Array:
    """A column of the field's default, or of nulls."""
    kind = arrow_type(field.type)
    if field.default is MISSING or field.default is None:
        return arrays.nulls(kind, count)
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
