"""Times as Debezium writes them as text: `2026-11-03T10:11:12.123456Z`, `2026-11-03Z`, `10:11:12.5Z`."""

from __future__ import annotations

from typing import Final, cast

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array
from airflow_provider_streams.formats.arrow.arrow_types import SIMPLE
from airflow_provider_streams.formats.arrow.times import scale_of
from airflow_provider_streams.formats.change_data.values import text_columns
from airflow_provider_streams.formats.change_data.values.faults import Faults
from airflow_provider_streams.formats.change_data.values.fitting import cast_exactly
from airflow_provider_streams.formats.json.converters import time_of_day
from airflow_provider_streams.model.schema.types import Simple, Type

NO_TIME: Final = "holds a text that is no time of the years 1 to 9999, as ISO 8601 writes it"
FINER: Final = "holds a time that is finer than microseconds"


def moments(type_: Type, values: Array, faults: Faults) -> Array:
    """The column of such texts. `timestamp` needs a zone; for other types, `Z` says that they have none."""
    simple = cast("Simple", type_)
    texts = values
    if simple.word != "timestamp":
        texts = text_columns.replaced(values, "Z$", "")
    finer = text_columns.matches(texts, _FINER)
    faults.add(finer, FINER)
    texts = text_columns.only(texts, ~finer)
    texts = text_columns.replaced(texts, _ZEROS, r"\1\2")
    if simple.word == "time":
        return _times_of_day(texts, faults)
    known = text_columns.matches(texts, _SHAPES[simple.word])
    faults.add(arrays.valid_flags(texts) & ~known, NO_TIME)
    texts = text_columns.only(texts, known)
    made = cast_exactly(texts, SIMPLE[simple.word], faults, NO_TIME)
    outside = scale_of(simple).outside(arrays.number_values(made)) & arrays.valid_flags(made)
    faults.add(outside, NO_TIME)
    return made


def _times_of_day(texts: Array, faults: Faults) -> Array:
    wrong = np.zeros(len(texts), np.bool_)
    counts: list[int | None] = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            counts.append(None if text is None else time_of_day(cast("str", text)))
        except ValueError:
            counts.append(None)
            wrong[row] = True
    faults.add(wrong, NO_TIME)
    made: Array = pa.array(counts, SIMPLE["time"])
    return made


_FINER: Final = r"\.[0-9]{6}[0-9]*[1-9]"
_ZEROS: Final = r"(\.[0-9]{6})0*(Z|[+-][0-9:]+)?$"
_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_SHAPES: Final = {
    "date": f"^{_DATE}$",
    "timestamp": f"^{_DATE}T{_CLOCK}(Z|[+-][0-9]{{2}}:?[0-9]{{2}})$",
    "timestamp_ntz": f"^{_DATE}[T ]{_CLOCK}$",
}
