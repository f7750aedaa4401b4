"""A window: a half-open span of time, in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from airflow_provider_streams.errors import InvalidRequest, InvalidWindow


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Half-open span of time, `start <= t < end`; any aware datetimes, kept in UTC.

    Raises:
        InvalidWindow: a naive time, one outside of UTC's years, or an end that is not after the start.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            moment: datetime = getattr(self, name)
            if moment.tzinfo is None or moment.utcoffset() is None:
                raise InvalidWindow(f"{name} of a window must carry a time zone, got {moment.isoformat()}")
            object.__setattr__(self, name, in_utc(moment, name))
        if self.end <= self.start:
            raise InvalidWindow(f"a window must end after it starts, got {self}")

    def __str__(self) -> str:
        return f"{utc_text(self.start)}/{utc_text(self.end)}"

    @property
    def length(self) -> timedelta:
        """The window's length."""
        return self.end - self.start

    @property
    def start_ms(self) -> int:
        """The first whole millisecond inside the window since 1970, for codecs."""
        return -(-(self.start - EPOCH) // _MILLISECOND)

    @property
    def end_ms(self) -> int:
        """The first whole millisecond at or after the end since 1970, for codecs."""
        return -(-(self.end - EPOCH) // _MILLISECOND)

    @property
    def start_us(self) -> int:
        """The start in microseconds since 1970."""
        return microseconds_of(self.start)

    @property
    def end_us(self) -> int:
        """The end in microseconds since 1970."""
        return microseconds_of(self.end)

    @property
    def label(self) -> str:
        """Both edges as a sortable name for files: `20261120T100000Z_20261120T110000Z`; see `moment_label`."""
        return f"{moment_label(self.start)}_{moment_label(self.end)}"

    def overlaps(self, other: Window) -> bool:
        """Whether they share time."""
        return self.start < other.end and other.start < self.end

    def holds(self, other: Window) -> bool:
        """Whether all of another window is in this one."""
        return self.start <= other.start and other.end <= self.end

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
        return {"start": utc_text(self.start), "end": utc_text(self.end)}

    @classmethod
    def from_json(cls, data: dict[str, str]) -> Self:
        """The reverse of `to_json`."""
        return cls.parse(f"{data['start']}/{data['end']}")


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
LATEST: Final = datetime.max.replace(tzinfo=UTC)


def utc_text(moment: datetime) -> str:
    """An aware time in ISO 8601, in UTC: `2026-11-20T10:00:00Z`."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def earlier(moment: datetime, length: timedelta) -> datetime:
    """So much earlier, or the first time of the calendar."""
    return moment - min(length, moment - EARLIEST)


def later(moment: datetime, length: timedelta) -> datetime:
    """So much later, or the last time of the calendar."""
    return moment + min(length, LATEST - moment)


def in_utc(moment: datetime, name: str = "a time") -> datetime:
    """A plain datetime in UTC: pendulum's subclass divides no spans, and does not pickle where pendulum is missing.

    Raises:
        InvalidWindow: it is outside of UTC's years.
    """
    try:
        utc = moment.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        raise InvalidWindow(f"{name} is outside of the years 1 to 9999 in UTC: {moment.isoformat()}") from error
    parts = (utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond)
    return datetime(*parts, tzinfo=UTC)


def utc_moment(moment: datetime | str) -> datetime:
    """A time in UTC, from an aware time or its ISO 8601 text.

    Raises:
        InvalidWindow: it is none, has no offset, or is outside of UTC's years.
    """
    shown = moment.isoformat() if isinstance(moment, datetime) else repr(moment)
    try:
        aware = moment if isinstance(moment, datetime) else datetime.fromisoformat(moment.strip())
    except ValueError as error:
        raise InvalidWindow(f"{shown} is not a time: write it like 2026-11-20T10:00Z") from error
    if aware.tzinfo is None or aware.utcoffset() is None:
        raise InvalidWindow(f"{shown} has no time zone: write it like 2026-11-20T10:00Z")
    return in_utc(aware)


def parse_length(text: str) -> timedelta:
    """A length of time like `90s`, `15m`, `1h`, `1d`: a day is 24 hours here.

    Raises:
        InvalidWindow: it is none.
    """
    found = _LENGTH.fullmatch(text.strip())
    if found is None:
        raise InvalidWindow(f"{text!r} is not a length of time: write it like 15m, 1h or 1d")
    try:
        return timedelta(**{_UNITS[found["unit"]]: float(found["count"])})
    except OverflowError as error:
        raise InvalidWindow(f"{text!r} is too long: times lie between the years 1 and 9999") from error


def length_of_seconds(name: str, seconds: float | str) -> timedelta:
    """A length of time from an option that is a number of seconds.

    Raises:
        InvalidRequest: it is none.
    """
    try:
        return timedelta(seconds=float(seconds))
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"{name} is a number of seconds that a calendar can hold, not {seconds!r}") from error


def microseconds_of(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - EPOCH) // _MICROSECOND


def moment_of_us(microseconds: int) -> datetime:
    """The reverse of `microseconds_of`."""
    return EPOCH + timedelta(microseconds=microseconds)


def moment_of_ms(milliseconds: int) -> datetime | None:
    """A time that a producer wrote as milliseconds since 1970; None: it is outside of the calendar."""
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


def moment_label(moment: datetime) -> str:
    """A time as a name for folders and partitions, sortable: `20261120T100000Z`; between two seconds `..00.250000Z`."""
    utc = moment.astimezone(UTC)
    fraction = f".{utc.microsecond:06d}" if utc.microsecond else ""
    return f"{utc.year:04d}{utc:%m%dT%H%M%S}{fraction}Z"


def moment_of_label(label: str) -> datetime | None:
    """The reverse of `moment_label`; None: it is none."""
    try:
        form = "%Y%m%dT%H%M%S.%fZ" if "." in label else "%Y%m%dT%H%M%SZ"
        return datetime.strptime(label, form).replace(tzinfo=UTC)
    except ValueError:
        return None


_MILLISECOND = timedelta(milliseconds=1)
_MICROSECOND = timedelta(microseconds=1)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LENGTH = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?P<unit>[smhd])")
