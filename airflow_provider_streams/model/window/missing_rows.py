"""Covered windows whose rows are no longer in their table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.window import Window


@dataclass(frozen=True, slots=True)
class MissingWindows:
    """Windows that were covered, and are missing again: someone dropped the reader's table, or removed rows from it."""

    source: Source
    reader: str
    target: str
    windows: tuple[Window, ...]
    """In order of time. A backfill of their span reads them again, as far as the stream still holds them."""
    is_table_gone: bool
    """Whether the whole table is gone; otherwise only these windows."""

    def __str__(self) -> str:
        what = f"the table {self.target} is gone" if self.is_table_gone else f"{self.target} no longer holds them"
        span = f" from {self.windows[0].start} to {self.windows[-1].end}" if self.windows else ""
        windows = counted(len(self.windows), "covered window")
        return f"{self.source}: {windows} of reader {self.reader!r}{span} went missing: {what}. Backfill them"


OnMissing = Callable[[MissingWindows], None]
"""A run calls it once for each loss that it finds."""


def not_reported(_found: MissingWindows) -> None:
    """For callers without a report: the log has a warning."""
