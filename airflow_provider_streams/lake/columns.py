"""Columns of a table of any kind: the two window columns, and the columns that it must get to hold other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

import pyarrow as pa

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.column_types import SPARK_NAMES, list_of, map_of, text_of
from airflow_provider_streams.model.schema.column_type import wider
from airflow_provider_streams.model.window.window import Window, moment_label

WINDOW_COLUMNS: Final = ("window_start", "window_end")
"""In each row, the edges of the window that it was read for."""


def window_folder(window: Window, columns: Sequence[str] = WINDOW_COLUMNS) -> str:
    """The folder of a window's files in a table's: `window_start=<label>/window_end=<label>`, or one level of it."""
    edges = dict(zip(WINDOW_COLUMNS, (window.start, window.end), strict=True))
    return "/".join(f"{name}={moment_label(edges[name])}" for name in columns)


def without_window(columns: pa.Schema) -> pa.Schema:
    """A table's columns but for the window's."""
    return pa.schema([one for one in columns if one.name not in WINDOW_COLUMNS])


def check_names(target: str, names: Sequence[str]) -> None:
    """Raise `SinkError` if rows have a column twice, or one of the window columns."""
    lower = [name.lower() for name in names]
    for name in names:
        if name.lower() in WINDOW_COLUMNS:
            raise SinkError(target, f"the rows have a column {name!r}, which the table gives to every window")
        if lower.count(name.lower()) > 1:
            raise SinkError(target, f"the rows have more than one column {name.lower()!r}: tables ignore case")


def columns_of_rows(
    target: str, rows: pa.Schema, kind: str, kept_as: Callable[[pa.DataType], pa.DataType | None]
) -> pa.Schema:
    """The columns of a table for rows of a schema: nullable, and without the window columns.

    `kept_as` gives the type of such a table (`kind`) for a type. `SinkError`: there is none, or a name is taken.
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


def columns_to_add(
    target: str, table: pa.Schema, rows: pa.Schema, *, widen: bool, stored: pa.Schema | None = None
) -> pa.Schema:
    """The columns that a table must get before rows go into it: new ones, new fields, and wider numbers.

    Args:
        target: the table, for messages.
        table: its columns.
        rows: in the types that the table would give them.
        widen: whether it may get columns.
        stored: its columns with what may be null in them, if `table` does not say that.

    Raises:
        SinkError: it cannot hold the rows, or may not (`widen`).
    """
    own = {one.name.lower(): one for one in table}
    needed, lacking, wrong = [], [], []
    for one in rows:
        held = own.get(one.name.lower())
        type_ = one.type if held is None else widened(held.type, one.type)
        if held is not None and held.name != one.name:
            wrong.append(f"{one.name} is called {held.name} there")
        elif type_ is None:
            wrong.append(f"{one.name} is {text_of((held or one).type)}, the rows have {text_of(one.type)}")
        elif held is None or widened(type_, type_) != widened(held.type, held.type):  # lists then have one spelling
            needed.append(pa.field(one.name, type_))
            lacking.append(f"it lacks {one.name} {'' if held is None else 'as '}{text_of(one.type)}")
    names = {one.name for one in rows}
    for one in stored or table:
        if one.name not in WINDOW_COLUMNS and (one.name in names or not one.nullable):
            wrong += [f"{path} may not be null there" for path in _never_null(one)]
    if wrong or (lacking and not widen):
        hint = ". Land in another table, or drop this one first" if wrong else "; widen=True adds what is lacking"
        raise SinkError(target, f"the table cannot hold these rows: {'; '.join([*wrong, *lacking])}{hint}")
    return pa.schema(needed)


def _never_null(field: pa.Field[Any], path: str = "") -> Iterator[str]:
    """The outermost of a field and the fields in it that may not be null, by path. Keys of maps are never null."""
    path = f"{path}.{field.name}" if path else field.name
    if not field.nullable:
        yield path
        return
    inner = [field.type.item_field] if isinstance(field.type, pa.MapType) else parts_of(field.type)
    for one in inner:
        yield from _never_null(one, path)


def wide_as(rows: pa.Schema, table: pa.Schema) -> pa.Schema:
    """The rows' columns, with numbers as wide as the table's."""
    own = {one.name: one for one in table}
    return pa.schema([_field_wide_as(one, own.get(one.name)) for one in rows])


def united(table: pa.Schema, rows: pa.Schema) -> pa.Schema:
    """A table's columns after rows of others went into it; where their types do not fit, its own stay."""
    new = {one.name: one for one in rows if one.name not in table.names}
    both = {one.name: rows.field(one.name).type if one.name in rows.names else one.type for one in table}
    kept = [one.with_type(widened(one.type, both[one.name]) or one.type) for one in table]
    return pa.schema([*kept, *new.values()])


def promoted(table: pa.Schema, new: pa.Schema) -> list[str]:
    """The columns of a table whose numbers become wider."""
    own = pa.schema([one for one in table if one.name in new.names])
    return [one.name for one in own if wide_as(pa.schema([one]), new) != pa.schema([one])]


def wider_number(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The one of two types that holds the values of both; None: tables promote neither to the other."""
    found = wider(_number(one), _number(other))
    if found is None:
        return None
    return one if found == _number(one) else other


def _number(type_: pa.DataType) -> str:
    if isinstance(type_, pa.Decimal128Type):
        return f"decimal({type_.precision},{type_.scale})"
    return SPARK_NAMES.get(type_, str(type_))


def parts_of(type_: pa.DataType) -> list[pa.Field[Any]]:
    """The fields in a list, map or struct; none for other types."""
    match type_:
        case pa.ListType() | pa.LargeListType() | pa.FixedSizeListType():
            return [type_.value_field]
        case pa.MapType():
            return [type_.key_field, type_.item_field]
        case pa.StructType():
            return list(type_)
    return []


def fields_within(field: pa.Field[Any], path: str = "") -> Iterator[tuple[str, pa.Field[Any]]]:
    """A field and all fields in it, outer ones first, each with its path."""
    path = f"{path}.{field.name}" if path else field.name
    yield path, field
    for inner in parts_of(field.type):
        yield from fields_within(inner, path)


def _field_wide_as(own: pa.Field[Any], table: pa.Field[Any] | None) -> pa.Field[Any]:
    return own if table is None else own.with_type(_type_wide_as(own.type, table.type))


def _type_wide_as(own: Any, table: Any) -> pa.DataType:
    match own:
        case pa.StructType() if isinstance(table, pa.StructType):
            known = {one.name: one for one in table}
            return pa.struct([_field_wide_as(one, known.get(one.name)) for one in own])
        case pa.ListType() if isinstance(table, pa.ListType | pa.LargeListType):
            return cast("pa.DataType", pa.list_(_field_wide_as(own.value_field, table.value_field)))
        case pa.MapType() if isinstance(table, pa.MapType):
            return map_of(own.key_field, _field_wide_as(own.item_field, table.item_field))
    return wider_number(own, table) or cast("pa.DataType", own)


def widened(own: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """The type that holds values of both, as structs and numbers may grow; None: there is none."""
    match own, new:
        case pa.StructType(), pa.StructType():
            return _widened_struct(own, new)
        case pa.ListType() | pa.LargeListType(), pa.ListType() | pa.LargeListType():
            inner = widened(own.value_type, new.value_type)
            return None if inner is None else list_of(inner)
        case pa.MapType(), pa.MapType():
            item = widened(own.item_type, new.item_type)
            return None if item is None or own.key_type != new.key_type else pa.map_(own.key_type, item)
    return own if own == new else wider_number(own, new)


def _widened_struct(own: pa.StructType, new: pa.StructType) -> pa.StructType | None:
    names = {one.name.lower(): one.name for one in own}
    fields = {one.name: one.type for one in own}
    wanted = {one.name for one in new}
    if any(not one.nullable and one.name not in wanted for one in own):
        return None
    for one in new:
        if names.get(one.name.lower(), one.name) != one.name:
            return None
        type_ = widened(fields[one.name], one.type) if one.name in fields else one.type
        if type_ is None:
            return None
        fields[one.name] = type_
    return pa.struct(list(fields.items()))
