"""Which events are shown: a condition on their columns, in Python's own notation, evaluated by Arrow.

Python parses the text, and never runs it: only the names, values and operators below have a meaning here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.lake.column_types import text_of
from airflow_provider_streams.model.name_suggestion import hint_for
from airflow_provider_streams.model.window.window import utc_moment

Value: TypeAlias = Any
"""An Arrow array with a value for each event, or a plain Python value."""

_EXAMPLE: Final = "write a condition like: amount > 100 and customer.city == 'Oslo'"
_COMPARE: Final[Mapping[type[ast.cmpop], Callable[[Value, Value], Value]]] = {
    ast.Eq: pc.equal,
    ast.NotEq: pc.not_equal,
    ast.Lt: pc.less,
    ast.LtE: pc.less_equal,
    ast.Gt: pc.greater,
    ast.GtE: pc.greater_equal,
}
_MIRRORED: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_FUNCTIONS: Final[Mapping[str, Callable[[Value, str], Value]]] = {
    "contains": pc.match_substring,
    "startswith": pc.starts_with,
    "matches": pc.match_substring_regex,
}
_MOST_CHARACTERS: Final = 10_000


@dataclass(frozen=True)
class RowCondition:
    """A condition on rows.

    Raises:
        InvalidRequest: it is none.
    """

    text: str

    def __post_init__(self) -> None:
        self._parsed()

    def check(self, schema: pa.Schema) -> None:
        """See that it can be asked of rows with these columns.

        Raises:
            InvalidRequest: it cannot.
        """
        self.mask(pa.RecordBatch.from_arrays([pa.array([], one.type) for one in schema], schema=schema))

    def mask(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """For each row, whether it meets the condition; a comparison with a value that is missing does not.

        Raises:
            InvalidRequest: no such column, or a comparison that its type does not have.
        """
        try:
            found = _Evaluation(rows).value(self._parsed())
            if not isinstance(found, pa.BooleanArray):
                raise InvalidRequest(f"--where {self.text!r} is no condition: {_EXAMPLE}")
            return cast("pa.BooleanArray", found.fill_null(fill_value=False))
        except (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError) as error:
            if isinstance(error, StreamsError):
                raise
            raise InvalidRequest(f"--where {self.text!r} does not fit the columns: {_EXAMPLE}") from error

    def _parsed(self) -> ast.expr:
        if len(self.text) > _MOST_CHARACTERS:
            raise InvalidRequest(f"--where has {len(self.text)} characters: the most are {_MOST_CHARACTERS}")
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            hint = "compare with ==, and write and, or, not in lower case"
            raise InvalidRequest(f"--where {self.text!r} cannot be read; {hint}; {_EXAMPLE}") from error


class _Evaluation:
    """The value of an expression for the rows of a batch."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = rows

    def value(self, node: ast.expr) -> Value:
        """The value of a node.

        Raises:
            InvalidRequest: it has no meaning, or does not fit the types of its columns.
        """
        try:
            return self._value(node)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError) as error:
            if isinstance(error, StreamsError):
                raise
            raise self._misfit(node) from error

    def _misfit(self, node: ast.expr) -> InvalidRequest:
        """What does not fit, in the words of a condition: Arrow names its own functions and types."""
        written = ast.unparse(node)[:100]
        names = dict.fromkeys(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        kinds = {name: self._rows.column(name).type for name in names if name in self._rows.schema.names}
        shown = ", ".join(f"{name} is {text_of(kind)}" for name, kind in kinds.items())
        return InvalidRequest(f"--where {written!r} does not fit the columns: {shown or _EXAMPLE}")

    def _value(self, node: ast.expr) -> Value:
        found: Value
        match node:
            case ast.Constant(value=str() | int() | float() | bool() | None as plain):
                found = plain
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                found = -number
            case ast.Name(id=name):
                found = self._column(name)
            case ast.Attribute(value=inner, attr=name):
                found = pc.struct_field(self.value(inner), name)
            case ast.BoolOp(op=op, values=parts):
                found = self._joined(op, parts)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                found = pc.invert(self.value(inner))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                found = self._compared(self.value(left), op, right)
            case ast.Call(func=ast.Name(id=name), args=[text, ast.Constant(value=str() as part)], keywords=[]):
                found = self._called(name, self.value(text), part)
            case _:
                raise _without_meaning(ast.unparse(node))
        return found

    def _called(self, name: str, text: Value, part: str) -> Value:
        if name not in _FUNCTIONS:
            raise _without_meaning(f"{name}(..)")
        if name == "matches":
            _check_pattern(part)
        return _FUNCTIONS[name](text, part)

    def _column(self, name: str) -> Value:
        if name not in self._rows.schema.names:
            raise InvalidRequest(f"--where: there is no column {name!r}; {hint_for(name, self._rows.schema.names)}")
        return self._rows.column(name)

    def _joined(self, op: ast.boolop, parts: list[ast.expr]) -> Value:
        join = pc.and_kleene if isinstance(op, ast.And) else pc.or_kleene
        found = self.value(parts[0])
        for part in parts[1:]:
            found = join(found, self.value(part))
        return found

    def _compared(self, left: Value, op: ast.cmpop, other: ast.expr) -> Value:
        if isinstance(op, ast.In):
            return self._is_one_of(left, other)
        if isinstance(op, ast.NotIn):
            return pc.invert(self._is_one_of(left, other))
        right = self.value(other)
        if isinstance(op, ast.Is | ast.IsNot):
            if right is not None:
                raise InvalidRequest("--where: `is` compares with None only: write == for values")
            return pc.is_null(left) if isinstance(op, ast.Is) else pc.is_valid(left)
        if not isinstance(left, pa.Array):
            left, right, kind = right, left, _MIRRORED[type(op)]
        else:
            kind = type(op)
        if not isinstance(left, pa.Array):
            raise InvalidRequest("--where: two values are compared, and no column")
        return _COMPARE[kind](left, right if isinstance(right, pa.Array) else _scalar(right, left.type))

    def _is_one_of(self, left: Value, other: ast.expr) -> Value:
        if not isinstance(other, ast.Tuple | ast.List) or not isinstance(left, pa.Array):
            raise InvalidRequest("--where: `in` needs a column and a list: state in ('paid', 'sent')")
        found: Value = pa.array([False] * len(left), pa.bool_())
        for item in other.elts:
            found = pc.or_kleene(found, pc.equal(left, _scalar(self.value(item), left.type)))
        return found


def _check_pattern(text: str) -> None:
    """Arrow looks at a pattern only where there are rows."""
    try:
        pc.match_substring_regex(pa.array([""]), text)
    except pa.ArrowException as error:
        raise InvalidRequest(f"--where: {text[:100]!r} is not a regular expression (RE2)") from error


def _without_meaning(text: str) -> InvalidRequest:
    return InvalidRequest(
        f"--where: {text[:100]!r} has no meaning here: use columns, values, comparisons, in, is None, and, or, not, "
        f"and {', '.join(_FUNCTIONS)}"
    )


def _moment(text: str) -> datetime:
    """A time with its zone; or a date: its first moment, in UTC."""
    with suppress(ValueError):
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    return utc_moment(text)


def _scalar(value: Value, kind: pa.DataType) -> Value:
    """A value that a column of this type can be compared with, as Arrow's."""
    if isinstance(value, str):
        if pa.types.is_timestamp(kind):
            moment = _moment(value)
            return pa.scalar(moment if kind.tz else moment.replace(tzinfo=None), pa.timestamp("us", kind.tz))
        if pa.types.is_date(kind):
            return pa.scalar(date.fromisoformat(value))
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return pa.scalar(value.encode())
    elif pa.types.is_decimal(kind) and isinstance(value, int | float) and not isinstance(value, bool):
        return pa.scalar(Decimal(str(value)))
    return pa.scalar(value)
