"""The column that any format's reader returns, and why rows are bad: a number for each row, a text for each number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow.arrays import Array, Flags, nulls, numbers, texts
from airflow_provider_streams.model.plan.receipt import some_names
from airflow_provider_streams.model.schema.change_rows import KINDS
from airflow_provider_streams.model.schema.types import Type

Codes = npt.NDArray[np.int16]

GOOD: Final = 0
"""The code of a good row."""

APART: Final = 1
"""The code of a row of a record type that is not read: it is not bad."""

OTHER_TYPE: Final = "other type"
"""The text of `APART`."""

KIND_TEXTS: Final = {f"a message of kind {kind}": kind for kind in KINDS if kind != "change"}
"""The texts of messages of a connector that are no rows and not bad, and their kinds."""


class Column(NamedTuple):
    """Decoded payloads."""

    values: Array
    """One for each payload. Values of bad rows mean nothing."""
    codes: Codes
    """Why a row is bad, or `GOOD`."""


class Reader(Protocol):
    """Decodes payloads that were written with one schema."""

    @property
    def type(self) -> Type:
        """The values' type."""

    def read(self, payloads: Array) -> Column:
        """Read binary payloads without nulls. Never raises for what they hold."""


class OtherObjects(NamedTuple):
    """Objects with keys without a column, while a column is empty in all of them."""

    objects: int = 0
    keys: tuple[str, ...] = ()
    """The keys, sorted; only the first ones of many."""
    empty: tuple[str, ...] = ()
    """The columns, in the same way."""


class Counter(Protocol):
    """Counts such objects."""

    @property
    def found(self) -> OtherObjects:
        """The objects so far."""


class Causes:
    """The texts of causes, by code. A text names fields and rules, never what a payload holds."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {"": GOOD, OTHER_TYPE: APART}
        self._texts: list[str] = ["", OTHER_TYPE]
        self._prefix = ""
        self.counters: list[Counter] = []
        """The readers' counters of objects with unmatched keys."""

    @property
    def unmatched(self) -> OtherObjects:
        """Objects with keys without a column, of readers with an empty column."""
        found = [one.found for one in self.counters]
        return OtherObjects(
            sum(one.objects for one in found),
            some_names(key for one in found for key in one.keys),
            some_names(path for one in found for path in one.empty),
        )

    def code(self, text: str) -> int:
        """The number of a text, always the same. After `MOST` texts, new ones share a number."""
        text = self._prefix + text
        found = self._codes.get(text)
        if found is None:
            if len(self._texts) >= MOST:
                return self._codes.get(OTHER) or self._add(OTHER)
            found = self._add(text)
        return found

    def below(self, prefix: str) -> Causes:
        """The same texts and numbers for a reader of a part of a row, whose texts begin with `prefix`."""
        part = Causes()
        part._codes, part._texts, part._prefix = self._codes, self._texts, self._prefix + prefix
        part.counters = self.counters
        return part

    def text(self, code: int) -> str:
        """The text of a number; empty for `GOOD`."""
        return self._texts[code]

    def array(self, codes: Codes) -> Array:
        """The cause of each row, null for good rows: a dictionary of strings."""
        if not codes.any():
            return nulls(pa.dictionary(pa.int32(), pa.string()), len(codes))
        used, places = np.unique(codes, return_inverse=True)
        words = texts([self._texts[code] for code in used])
        indices = numbers(pa.int32(), places.astype(np.int32), codes != GOOD)
        return pa.DictionaryArray.from_arrays(indices, words)

    def _add(self, text: str) -> int:
        self._texts.append(text)
        self._codes[text] = len(self._texts) - 1
        return len(self._texts) - 1


MOST: Final = 10_000
OTHER: Final = "another cause (there are too many to name)"


def of_other_type(causes: Array) -> pa.BooleanArray:
    """Which rows are of a record type that is not read, by the causes of all rows."""
    return _are_among(causes, [OTHER_TYPE])


def set_aside(causes: Array) -> pa.BooleanArray:
    """Which rows are no rows of the table, and not bad: of another type, or of a connector's other kinds."""
    return _are_among(causes, [OTHER_TYPE, *KIND_TEXTS])


def _are_among(causes: Array, known: Sequence[str]) -> pa.BooleanArray:
    found: pa.BooleanArray = pc.is_in(causes.cast(pa.string()), value_set=texts(known))
    return found


def blame(codes: Codes, rows: Flags, code: int) -> None:
    """Give these rows a cause, unless they have one."""
    if rows.any():
        codes[rows & (codes == GOOD)] = code
