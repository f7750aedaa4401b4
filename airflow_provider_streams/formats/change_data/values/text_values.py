"""Values that are all written as text, as Canal writes them."""

from __future__ import annotations

from typing import Final

import numpy as np

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.change_data.values import text_columns
from airflow_provider_streams.formats.change_data.values.faults import Faults
from airflow_provider_streams.formats.change_data.values.fitting import cast_exactly
from airflow_provider_streams.formats.change_data.values.iso_times import moments
from airflow_provider_streams.model.schema.type_table import TIMES
from airflow_provider_streams.model.schema.types import Simple, Type

NO_VALUE: Final = "holds a text that is no value of the column"


def of_text(type_: Type, values: Array, faults: Faults) -> Array:
    """The column of such texts."""
    match type_:
        case Simple("string"):
            return values
        case Simple("binary"):
            return _latin1(values, faults)
        case Simple("boolean"):
            return _booleans(values, faults)
        case Simple(word) if word in TIMES:
            return moments(type_, values, faults)
    return cast_exactly(values, arrow_type(type_), faults, NO_VALUE)


def _booleans(values: Array, faults: Faults) -> Array:
    known = text_columns.among(values, ["0", "1"])
    faults.add(arrays.valid_flags(values) & ~known, NO_VALUE)
    return arrays.booleans(text_columns.equal(values, "1"), known)


def _latin1(values: Array, faults: Faults) -> Array:
    """Bytes that were written as if each were a letter of ISO 8859-1."""
    wrong = np.zeros(len(values), np.bool_)
    found: list[bytes | None] = []
    for row, text in enumerate(values.to_pylist()):
        try:
            found.append(None if text is None else str(text).encode("latin-1"))
        except UnicodeEncodeError:
            found.append(None)
            wrong[row] = True
    faults.add(wrong, NO_VALUE)
    return arrays.listed(found)
