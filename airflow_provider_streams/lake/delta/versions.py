"""The newest version of a Delta table, again and again while others commit."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from airflow_provider_streams.errors import ForeignTable, SinkError, TableUnavailable
from airflow_provider_streams.lake.delta.log import DeltaVersion, load
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.landing import TableMark

_ROUNDS = 60
"""How often other commits may come first."""
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0


def newest(storage: Storage) -> DeltaVersion:
    """The table as it is now.

    Raises:
        SinkError: there is none.
    """
    version = load(storage)
    if version is None:
        raise SinkError(storage.root, "there is no such table, or it was deleted meanwhile")
    return version


def check_mark(version: DeltaVersion, storage: Storage, mark: TableMark) -> DeltaVersion:
    """A version that bears a mark.

    Raises:
        ForeignTable: it does not.
    """
    if version.mark != mark:
        raise ForeignTable(
            storage.root, f"the table belongs to {version.mark or 'nobody that it names'}, not to {mark}"
        )
    return version


def versions(storage: Storage, first: DeltaVersion | None = None) -> Iterator[DeltaVersion]:
    """The newest version, again and again.

    Raises:
        TableUnavailable: others were first too often.
    """
    longest = _FIRST_PAUSE_SECONDS
    for number in range(_ROUNDS):
        yield first if first is not None and number == 0 else newest(storage)
        time.sleep(random.uniform(0, longest))  # noqa: S311 - so that those who wait do not meet again
        longest = min(2 * longest, _LONGEST_PAUSE_SECONDS)
    raise TableUnavailable(storage.root, f"other commits were first {_ROUNDS} times: land fewer windows at once")
