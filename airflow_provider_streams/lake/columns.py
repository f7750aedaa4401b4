"""Columns of a table, whichever kind it is: those of every window, and what a table must get to hold other rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

import pyarrow as pa

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.types import list_of

WINDOW_COLUMNS: Final = ("window_start", "window_end")
"""The edges of the window a row was read for, in each row."""


def check_names(target: str, names: Sequence[str]) -> None:
    """See that rows have no column which the table gives to them, and none twice.

    Raises:
        SinkError: they have.
    """
    lower = [name.lower() for name in names]
    for name in names:
        if name.lower() in WINDOW_COLUMNS:
            raise SinkError(target, f"the rows have a column {name!r}, which the table gives to every window")
        if lower.count(name.lower()) > 1:
            raise SinkError(target, f"the rows have more than one column {name.lower()!r}: tables tell no case apart")


def columns_of_rows(
    target: str, rows: pa.Schema, kind: str, kept_as: Callable[[pa.DataType], pa.DataType | None]
) -> pa.Schema:
    """The columns that rows of a schema are in a table, all of which can be null; without those of the window.

    Args:
        target: the table's name.
        rows: the schema.
        kind: what the table is: Delta, Iceberg.
        kept_as: the type of such a table that holds all values of a type; None: none does.

    Raises:
        SinkError: it has no such type, or a name is taken.
    """
    check_names(target, rows.names)
    fields = []
    for one in rows:
        type_ = kept_as(one.type)
        if type_ is None:
            raise SinkError(
                target,
                f"column {one.name!r} is {one.type}, and {kind} has no such type: select other columns, or change it "
                "in a transform",
            )
        fields.append(pa.field(one.name, type_))
    return pa.schema(fields)


def columns_to_add(target: str, table: pa.Schema, rows: pa.Schema, *, widen: bool) -> pa.Schema:
    """New columns, and structs with new fields, that a table must get before rows go into it; mostly none.

    Args:
        target: the table's name.
        table: its columns, those of the window among them.
        rows: theirs, as the table would keep them.
        widen: whether it may get any.

    Raises:
        SinkError: it must not, or it has columns that these cannot go into, with the difference.
    """
    own = {one.name.lower(): one for one in table}
    needed, problems = [], []
    for one in rows:
        held = own.get(one.name.lower())
        type_ = one.type if held is None else _widened(held.type, one.type)
        if held is not None and (held.name != one.name or type_ is None):
            problems.append(f"{held.name} is {held.type} and would be {one.name} {one.type}")
        elif held is None or type_ != held.type:
            needed.append(pa.field(one.name, cast("pa.DataType", type_)))
    problems += [f"{one.name} may not be null" for one in table if not one.nullable and one.name not in WINDOW_COLUMNS]
    if problems:
        raise SinkError(
            target,
            f"the rows do not go into the table: {'; '.join(problems)}. Land in another one, or drop this one first",
        )
    if needed and not widen:
        lacking = ", ".join(f"{one.name} {one.type}" for one in needed)
        raise SinkError(target, f"the table lacks {lacking}: add it, or let the sink add it (widen=True)")
    return pa.schema(needed)


def _widened(own: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """What holds values of both, as structs may grow; None: nothing does."""
    match own, new:
        case pa.StructType(), pa.StructType():
            return _widened_struct(own, new)
        case pa.ListType(), pa.ListType():
            inner = _widened(own.value_type, new.value_type)
            return None if inner is None else list_of(inner)
        case pa.MapType(), pa.MapType():
            item = _widened(own.item_type, new.item_type)
            return None if item is None or own.key_type != new.key_type else pa.map_(own.key_type, item)
    return own if own == new else None


def _widened_struct(own: pa.StructType, new: pa.StructType) -> pa.StructType | None:
    names = {one.name.lower(): one.name for one in own}
    fields = {one.name: one.type for one in own}
    for one in new:
        if names.get(one.name.lower(), one.name) != one.name:
            return None
        type_ = _widened(fields[one.name], one.type) if one.name in fields else one.type
        if type_ is None:
            return None
        fields[one.name] = type_
    return pa.struct(list(fields.items()))
