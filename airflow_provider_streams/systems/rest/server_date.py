"""The time that a server tells in the headers of its HTTP answers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

HTTP_SECONDS: Final = 1.0
"""The resolution of the `Date` header."""


def parse_date(text: str) -> datetime | None:
    """The value of a `Date` header; None: it is none."""
    try:
        return parsedate_to_datetime(text).astimezone(UTC)
    except ValueError:
        return None


@dataclass
class ServerClock:
    """The clock of a server, by its latest answer that told the time."""

    _told: datetime | None = None
    _asked: float = 0.0

    def hear(self, date: str | None, asked: float) -> None:
        """Take the `Date` header of an answer, and when it was asked for, by `time.monotonic`.

        The server wrote the header at some time since then, so no later moment would give the latest time.
        """
        told = None if date is None else parse_date(date)
        if told is not None:
            self._told, self._asked = told, asked

    def latest(self) -> datetime | None:
        """The latest time that it may show now; None: no answer told the time."""
        if self._told is None:
            return None
        return self._told + timedelta(seconds=HTTP_SECONDS + time.monotonic() - self._asked)
