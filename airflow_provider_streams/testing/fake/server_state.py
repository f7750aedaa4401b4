"""What the fake server holds, and how it misbehaves: a value, from options or a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from airflow_provider_streams.errors import InvalidRequest

EPOCH = datetime(2026, 11, 20, 10, tzinfo=UTC)
"""When event 0 of every shard was published, unless an option says otherwise."""

_FAULTS = ("drop", "trim", "fail", "echo", "crash", "slow", "hold")


@dataclass(frozen=True, slots=True)
class Truth:
    """What the fake server holds, and how it misbehaves."""

    streams: str = ""
    """The names of the streams there are, between commas; empty: any."""
    shards: int = 2
    events: int = 100
    """Per shard."""
    value_bytes: int = 16
    head: int = 0
    """The first event still held, in every shard."""
    epoch: datetime = EPOCH
    interval_ms: int = 1000
    now: datetime | None = None
    """Until when publishing is known to be over; None: one interval after the last event."""
    marker_every: int = 0
    """Every so many-th entry is a marker: stored, and never delivered. 0: none."""
    late_every: int = 0
    """Every so many-th event is late: stored in its place, published `late_by_ms` earlier. 0: none."""
    late_by_ms: int = 600_000
    records: int = 0
    """1: values are JSON objects of `shard` and `n`."""
    torn_every: int = 0
    """Every so many-th of them lacks its end. 0: none."""
    bare_every: int = 0
    """Every so many-th of them has no `shard`. 0: none."""
    batch_rows: int = 1000
    fault: str = ""
    life: str = "1"
    """Which incarnation of the stream this is: another one when it was deleted and made again."""
    password: str = field(default="", repr=False)
    """What the server demands as `token`; empty: anything."""

    @property
    def end_time(self) -> datetime:
        """See `now`."""
        return self.now or self.stored_at(self.events)

    def time_of(self, number: int) -> datetime:
        """When this event was published."""
        is_late = self.late_every and number % self.late_every == self.late_every - 1
        return self.stored_at(number) - timedelta(milliseconds=self.late_by_ms if is_late else 0)

    def stored_at(self, number: int) -> datetime:
        """When this event came to lie in its place."""
        return self.epoch + timedelta(milliseconds=number * self.interval_ms)

    def at(self, moment: datetime) -> int:
        """The first event stored at or after a moment, within `[0, events]`."""
        number = -((self.epoch - moment) // timedelta(milliseconds=self.interval_ms))
        return min(max(number, 0), self.events)

    def faults(self, kind: str) -> Iterator[list[int]]:
        """The arguments of each fault of a kind."""
        for text in filter(None, self.fault.split(",")):
            name, *arguments = text.split(":")
            if name not in _FAULTS:
                raise InvalidRequest(f"no fault {name!r}; known: {', '.join(_FAULTS)}")
            if name == kind:
                yield [int(argument) for argument in arguments]

    @classmethod
    def parse(cls, settings: Mapping[str, object]) -> Self:
        """From texts or JSON values by field name; others are ignored."""
        known = {one.name for one in fields(cls)}
        values: dict[str, object] = {}
        for name, value in settings.items():
            if name in known and value not in ("", None):
                values[name] = _parse(name, str(value))
        return cls(**values)  # type: ignore[arg-type]  # _parse gives each field its type


def dump(path: Path | str, **truth: object) -> Path:
    """Write a truth file, atomically; the names are `Truth`'s."""
    target = Path(path)
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    draft.write_text(json.dumps(truth, default=str))
    return draft.rename(target)


def value_of(shard: str, number: int, size: int) -> bytes:
    """The payload of one event."""
    return f"{shard}:{number}".encode().ljust(size, b".")


def record_of(truth: Truth, shard: str, number: int) -> bytes:
    """The payload of one event, as JSON."""
    record = json.dumps({"n": number} if is_bare(truth, number) else {"shard": shard, "n": number}).encode()
    return record[:-1] if is_torn(truth, number) else record


def is_torn(truth: Truth, number: int) -> bool:
    """Whether this event's payload is no JSON."""
    return bool(truth.torn_every and number % truth.torn_every == truth.torn_every - 1)


def is_bare(truth: Truth, number: int) -> bool:
    """Whether this event's payload lacks a field."""
    return bool(truth.bare_every and number % truth.bare_every == truth.bare_every - 1)


def index_of(shard: str) -> int:
    """A shard's number."""
    return int(shard.rpartition("-")[2])


def is_delivered(truth: Truth, shard: str, number: int) -> bool:
    """Whether a reader gets this entry."""
    if [index_of(shard), number] in list(truth.faults("drop")):
        return False
    return cause_of(truth, shard, number) is None


def cause_of(truth: Truth, shard: str, number: int) -> str | None:
    """Why the server never delivers this entry; None: it does."""
    if number < truth.head or any(s == index_of(shard) and number < n for s, n in truth.faults("trim")):
        return "lost"
    if truth.marker_every and number % truth.marker_every == truth.marker_every - 1:
        return "marker"
    return None


def _parse(name: str, text: str) -> object:
    if name in ("epoch", "now"):
        return datetime.fromisoformat(text)
    return text if name in ("streams", "fault", "life", "password") else int(text)
