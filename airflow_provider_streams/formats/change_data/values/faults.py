"""Which rows hold a value that no column holds, and why."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from airflow_provider_streams.formats.arrow.arrays import Array, Flags, offsets_of


class Fault(NamedTuple):
    """Some rows, and what is wrong with them."""

    rows: Flags
    reason: str


class Faults:
    """Collects faults of a column, or of the values inside."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def add(self, rows: Flags, reason: str) -> None:
        """Note rows, if there are any."""
        if rows.any():
            self.found.append(Fault(rows, reason))

    def add_inside(self, lists: Array, items: Faults, mark: str) -> None:
        """Note lists whose items have faults."""
        offsets = offsets_of(lists)
        for rows, reason in items.found:
            before = np.concatenate([[0], np.cumsum(rows)])
            holders = before[offsets[1:]] > before[offsets[:-1]]
            self.add(holders, f"{mark}: {reason}")
