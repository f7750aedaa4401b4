"""Conditions of `model.changes.expressions` over the columns of change rows."""

from __future__ import annotations

from functools import reduce
from typing import Any, Final

import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import pc
from airflow_provider_streams.lake.changes.columns import UnusableChanges, column_at
from airflow_provider_streams.model.changes.expressions import (
    Compare,
    Condition,
    Every,
    IsIn,
    IsNull,
    IsTrue,
    Not,
    Some,
    Value,
)

_COMPARE: Final[dict[str, Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def holds(condition: Condition, rows: pa.Table) -> Any:
    """Whether a condition is known to hold, for each row.

    Raises:
        UnusableChanges: the rows lack a column, or its type does not compare with a literal.
    """
    return pc.fill_null(_truth(condition, rows), False)


def _truth(condition: Condition, rows: pa.Table) -> Any:  # noqa: PLR0911 - one for each kind
    match condition:
        case Every(parts):
            return reduce(pc.and_kleene, (_truth(one, rows) for one in parts))
        case Some(parts):
            return reduce(pc.or_kleene, (_truth(one, rows) for one in parts))
        case Not(inner):
            return pc.invert(_truth(inner, rows))
        case IsNull(column):
            return pc.is_null(column_at(rows, column))
        case IsTrue(column):
            found = column_at(rows, column)
            if not pa.types.is_boolean(found.type):
                raise UnusableChanges(f"column {'.'.join(column)!r} is {found.type}, and no condition by itself")
            return found
        case IsIn(column, values):
            return reduce(pc.or_kleene, (_compared(rows, Compare(column, "=", one)) for one in values))
        case Compare():
            return _compared(rows, condition)


def _compared(rows: pa.Table, one: Compare) -> Any:
    column: Any = column_at(rows, one.column)
    if isinstance(column.type, pa.DictionaryType):
        column = pc.cast(column, column.type.value_type)
    value = _literal(one, column.type)
    if one.by == "<=>":
        return pc.fill_null(pc.equal(column, value), False)
    return _COMPARE[one.by](column, value)


def _literal(one: Compare, type_: pa.DataType) -> Any:
    """The literal in a type that compares with the column exactly."""
    value: Value = one.value
    is_number = not isinstance(value, bool | str)
    fits = (
        (isinstance(value, bool) and pa.types.is_boolean(type_))
        or (is_number and (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)))
        or (isinstance(value, str) and not (pa.types.is_nested(type_) or pa.types.is_boolean(type_)))
    )
    if fits and isinstance(value, str) and (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
        fits = False  # Spark would cast the text, and fail or not by its settings
    if fits:
        try:
            literal: Any = pa.scalar(value)
            is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
            return pc.cast(literal, type_) if isinstance(value, str) and not is_text else literal
        except pa.ArrowException:
            pass
    raise UnusableChanges(f"column {'.'.join(one.column)!r} is {type_}, and does not compare with {value!r:.60}")
