"""Columns of one type as columns of another, as far as each value stays exactly what it is."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.change_data.values.faults import Faults
from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, Simple, StructOf, Type

MISFIT: Final = "the change has {have}, and the table's column is {want}"


def fit(values: Array, have: Type, want: Type, faults: Faults) -> Array:
    """The values as the plan's type. Rows that have no such value are null, and a fault."""
    if have == want:
        return values
    match have, want:
        case ArrayOf(item), ArrayOf(wanted):
            inner = Faults()
            items = fit(cast("pa.ListArray[Any]", values).values, item, wanted, inner)
            faults.add_inside(values, inner, "[]")
            return arrays.lists_like(values, arrow_type(want), items)
        case Simple(word), (Simple() | Decimal()) if _is_exact(word, want):
            return cast_exactly(values, arrow_type(want), faults, MISFIT.format(have=have, want=want))
        case Decimal(), Decimal():
            return cast_exactly(values, arrow_type(want), faults, MISFIT.format(have=have, want=want))
    if not isinstance(have, StructOf) or values.null_count < len(values):
        faults.add(arrays.valid_flags(values), MISFIT.format(have=have, want=want))
    return arrays.nulls(arrow_type(want), len(values))


def _is_exact(word: str, want: Type) -> bool:
    """Whether Arrow's cast keeps each value or refuses it."""
    if isinstance(want, Decimal):
        return word in _WHOLE or word == "string"
    return isinstance(want, Simple) and (
        (word in _WHOLE and want.word in _WHOLE) or (word, want.word) in (("float", "double"), ("int", "double"))
    )


def cast_exactly(values: Array, kind: pa.DataType, faults: Faults, reason: str) -> Array:
    """Arrow's cast, which refuses what it cannot keep. Refused rows are null, and a fault."""
    if values.type == kind:
        return values
    refused = np.zeros(len(values), np.bool_)
    made = _cast(values, kind, refused)
    faults.add(refused, reason)
    return made


def _cast(values: Array, kind: pa.DataType, refused: Flags) -> Array:
    """Cast in halves as long as a value is refused."""
    try:
        return cast("Array", values.cast(kind))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(values) == 1:
            refused[:] = True
            return arrays.nulls(kind, 1)
    half = len(values) // 2
    parts = [_cast(values.slice(0, half), kind, refused[:half]), _cast(values.slice(half), kind, refused[half:])]
    return pa.concat_arrays(parts)


_WHOLE: Final = ("byte", "short", "int", "long")
