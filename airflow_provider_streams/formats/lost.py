"""Values of a union that no branch of the plan's type takes: rows that hold one are bad, never null."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrays import Array, Flags, nulls, offsets_of, valid_flags
from airflow_provider_streams.formats.arrow_types import arrow_type
from airflow_provider_streams.formats.branches import is_union, shown
from airflow_provider_streams.formats.project import branches, taken_by
from airflow_provider_streams.formats.unite import counterpart
from airflow_provider_streams.model.row_type import ArrayOf, MapOf, StructOf, Type


class Lost(NamedTuple):
    """Values that have no place, of one field and branch."""

    path: str
    branch: str
    rows: Flags


def can_lose(have: Type, want: Type) -> bool:
    """Whether there are values of one type that have no place in the other."""
    return next(lost(nulls(arrow_type(have), 0), have, want), None) is not None


def lost(values: Array, have: Type, want: Type, path: str = "") -> Iterator[Lost]:
    """The values that have no place: one by one of all branches that nothing takes, with no row where none has it."""
    if have == want:
        return
    if is_union(have) or is_union(want):
        yield from _of_union(values, have, want, path)
        return
    match have, want:
        case StructOf(), StructOf():
            yield from _of_struct(values, have, want, path)
        case ArrayOf(item), ArrayOf(wanted):
            items: Array = values.values  # type: ignore[attr-defined]  # a list has them
            yield from _around(values, lost(items, item, wanted, f"{path}[]"))
        case MapOf(_, item), MapOf(_, wanted):
            items = cast("pa.MapArray[Any, Any]", values).items
            yield from _around(values, lost(items, item, wanted, f"{path}{{}}"))


def _of_union(values: Array, have: Type, want: Type, path: str) -> Iterator[Lost]:
    for branch, column in branches(values, have):
        found = taken_by(branch, want, have)
        if found is None:
            yield Lost(path, shown(branch), valid_flags(column))
        else:
            yield from lost(column, branch.type, found.type, path)


def _of_struct(values: Array, have: StructOf, want: StructOf, path: str) -> Iterator[Lost]:
    for one in want.fields:
        found = counterpart(one, have.fields)
        if found is not None:
            column: Array = pc.struct_field(values, have.fields.index(found))
            yield from lost(column, found.type, one.type, f"{path}.{one.name}" if path else one.name)


def _around(values: Array, inner: Iterator[Lost]) -> Iterator[Lost]:
    """Lists that hold such values."""
    offsets = offsets_of(values)
    for one in inner:
        before = np.concatenate([[0], np.cumsum(one.rows)])
        yield one._replace(rows=before[offsets[1:]] > before[offsets[:-1]])
