"""Which rows cannot be decoded, and why: one small number a row, and a text for each number."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_streams.formats.arrays import Array, Flags, nulls, numbers, texts

Codes = npt.NDArray[np.int16]

GOOD: Final = 0
"""The code of a row that is decoded."""


class Causes:
    """The texts of causes, by code. Texts name fields and rules, never what a payload holds."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {"": GOOD}
        self._texts: list[str] = [""]
        self._prefix = ""

    def code(self, text: str) -> int:
        """The number of a text: the same each time. After `MOST` texts, what is new is cut down to its first words."""
        text = self._prefix + text
        found = self._codes.get(text)
        if found is None:
            if len(self._texts) >= MOST:
                return self._codes.get(OTHER) or self._add(OTHER)
            found = self._add(text)
        return found

    def below(self, prefix: str) -> Causes:
        """The same texts and numbers for those who read a part of a row: what they add begins with `prefix`."""
        part = Causes()
        part._codes, part._texts, part._prefix = self._codes, self._texts, self._prefix + prefix
        return part

    def text(self, code: int) -> str:
        """What a number means; `GOOD` has no text."""
        return self._texts[code]

    def array(self, codes: Codes) -> Array:
        """The cause of each row, null where it is good: a dictionary of strings."""
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


def blame(codes: Codes, rows: Flags, code: int) -> None:
    """Mark these rows, except those that have a cause already."""
    if rows.any():
        codes[rows & (codes == GOOD)] = code
