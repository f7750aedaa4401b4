"""Versions that were registered after a payload was written: it names a schema that was deleted, not this one.

Where all versions of a topic are deleted, their numbers begin anew. Producers' clocks may lag by `SLACK`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from airflow_provider_streams.formats.arrays import Array, Ints, number_values, valid_flags
from airflow_provider_streams.formats.causes import Causes, Codes
from airflow_provider_streams.model.basis import SLACK

_MICROSECONDS: Final = 1000
_SLACK_MS: Final = round(SLACK.total_seconds() * 1000)
_LATEST: Final = np.iinfo(np.int64).max


class Registered:
    """When the versions of one name were registered.

    Args:
        made: by version, in milliseconds; of versions that it lacks nothing is known.
        causes: takes the words for rows that are older.
    """

    def __init__(self, made: Mapping[str, int], causes: Causes) -> None:
        self._first = {int(version): (ms - _SLACK_MS) * _MICROSECONDS for version, ms in made.items()}
        self._last_of_all = max(self._first.values(), default=0)
        self._causes = causes

    def times(self, written: Array | None) -> Ints | None:
        """When rows were written; None: none of them is too old for any version.

        Args:
            written: timestamps in microseconds; null: nobody knows.
        """
        if written is None or not len(written) or not self._first:
            return None
        times = np.where(valid_flags(written), number_values(written), _LATEST)
        return times if times.min() < self._last_of_all else None

    def in_time(self, version: int, rows: Ints, times: Ints | None, codes: Codes) -> Ints:
        """Those of a version's rows that can have been written with it; the others get their cause."""
        if times is None or version not in self._first:
            return rows
        early = times[rows] < self._first[version]
        if not early.any():
            return rows
        codes[rows[early]] = self._causes.code(
            f"its schema version {version} was registered after it was written: the schema it was written with was "
            "deleted"
        )
        return rows[~early]
