"""A window: a half-open span of time, in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from airflow_provider_streams.errors import InvalidWindow


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Half-open span of time, `start <= t < end`; any aware datetimes, kept in UTC.

    Raises:
        InvalidWindow: a naive time, or an end that is not after the start.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            moment: datetime = getattr(self, name)
            if moment.tzinfo is None or moment.utcoffset() is None:
                raise InvalidWindow(f"{name} of a window must carry a time zone, got {moment.isoformat()}")
            # a plain datetime: pendulum's subclass would not pickle where pendulum is missing
            utc = moment.astimezone(UTC)
            object.__setattr__(
                self,
                name,
                datetime(
                    utc.year,
                    utc.month,
                    utc.day,
                    utc.hour,
                    utc.minute,
                    utc.second,
                    utc.microsecond,
                    tzinfo=UTC,
                ),
            )
        if self.end <= self.start:
            raise InvalidWindow(f"a window must end after it starts, got {self}")

    def __str__(self) -> str:
        return f"{_text(self.start)}/{_text(self.end)}"

    @property
    def length(self) -> timedelta:
        """The window's length."""
        return self.end - self.start

    @property
    def start_ms(self) -> int:
        """The first whole millisecond inside the window since 1970, for codecs."""
        return -(-(self.start - _EPOCH) // _MILLISECOND)

    @property
    def end_ms(self) -> int:
        """The first whole millisecond at or after the end since 1970, for codecs."""
        return -(-(self.end - _EPOCH) // _MILLISECOND)

    @property
    def label(self) -> str:
        """Its start as a name for folders and partitions, sortable: `20261120T100000Z`.

        Windows that start between two seconds carry microseconds: `20261120T100000.250000Z`.
        """
        fraction = f".{self.start.microsecond:06d}" if self.start.microsecond else ""
        return f"{self.start:%Y%m%dT%H%M%S}{fraction}Z"

    @classmethod
    def parse(cls, text: str) -> Self:
        """From an ISO 8601 interval `start/end`, each with an offset or `Z`.

        Raises:
            InvalidWindow: the text is no such interval.
        """
        start, slash, end = text.strip().partition("/")
        try:
            if not slash:
                raise ValueError("no '/'")  # noqa: TRY301 - one message for every malformed text
            return cls(datetime.fromisoformat(start.strip()), datetime.fromisoformat(end.strip()))
        except InvalidWindow:
            raise
        except ValueError as error:
            raise InvalidWindow(
                f"{text!r} is not a window: write 'start/end', like '2026-11-20T10:00Z/2026-11-20T11:00Z' ({error})"
            ) from error

    def to_json(self) -> dict[str, str]:
        """`{"start": iso, "end": iso}`."""
        return {"start": _text(self.start), "end": _text(self.end)}

    @classmethod
    def from_json(cls, data: dict[str, str]) -> Self:
        """The reverse of `to_json`."""
        return cls.parse(f"{data['start']}/{data['end']}")


def tile(start: datetime, end: datetime, length: timedelta) -> Iterator[Window]:
    """Adjacent windows of `length` from `start` up to `end`; a shorter last piece is not a window.

    Raises:
        InvalidWindow: `length` is not positive.
    """
    if length <= timedelta(0):
        raise InvalidWindow(f"a window's length must be positive, got {length}")
    while start + length <= end:
        yield Window(start, start + length)
        start += length


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
