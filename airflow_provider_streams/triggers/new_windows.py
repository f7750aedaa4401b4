"""Announces that new windows of a stream are complete."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import StreamHook, hook_for
from airflow_provider_streams.hooks.journal import aopen_journal
from airflow_provider_streams.model.basis import MAX_SKEW, BasisLike, default_basis
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.operators.read import check_choices
from airflow_provider_streams.systems.sources import source_from_json, source_to_json
from airflow_provider_streams.triggers.watching import REPEAT_SECONDS, News, WatchTrigger
from airflow_provider_streams.windows.progress import covered_end
from airflow_provider_streams.windows.readiness import WindowQuestion

MOST_WINDOWS = 100
"""An event names so many windows at most; the next event names the next ones."""
KEY_FORMAT = "%Y-%m-%dT%H:%M:%S"
"""Of partition keys, as Airflow's `CronPartitionTimetable` and its mappers write and read them by default."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Grid:
    """Windows of one length that tile time, counted from 1970 (UTC) plus an offset."""

    length: timedelta
    offset: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if self.length <= timedelta(0):
            raise InvalidRequest(f"window_length must be positive, got {self.length}")

    def before(self, moment: datetime) -> datetime:
        """The last edge at or before a time."""
        begin = _EPOCH + self.offset
        return begin + (moment - begin) // self.length * self.length

    def windows(self, start: datetime, end: datetime) -> list[Window]:
        """Those that lie between two times as a whole, the oldest `MOST_WINDOWS` of them."""
        at = self.before(start)
        at = at if at == start else at + self.length
        count = max(0, min((end - at) // self.length, MOST_WINDOWS))
        return [Window(at + n * self.length, at + (n + 1) * self.length) for n in range(count)]


class NewWindowsTrigger(WatchTrigger):
    """For `AssetWatcher`: an event when windows of a source are complete and not covered yet.

    Complete is what `WindowReadySensor` waits for. With a `reader`, the event names all complete windows that the
    journal does not have as covered, and is repeated until it does; without, the newest one, once.

    The event's payload: `source, reader, windows` (each `start, end, partition_key`), `partition_keys`, `window` and
    `partition_key` of the newest, and `more`: whether there are more than these. Airflow 3.3 gives an event of a
    watcher no partition of its own: a task of the DAG it starts passes the keys on, with
    `outlet_events[asset].add_partitions(keys)`.

    Args:
        source: what is read, or as `hooks.base.source_to_json` gives it.
        window_length: the length of windows, or its seconds; they are counted from midnight, UTC.
        reader: who covers the windows.
        basis: as the read's; without a user's cuts.
        slack: as the read's, or its seconds.
        offset: of the windows' edges from midnight, or its seconds.
        key_format: how a window's start is written as partition key.
        poll_interval: seconds between two looks.
        repeat_seconds: how often windows are announced again while they are not covered.
    """

    def __init__(
        self,
        source: Source | dict[str, Any],
        window_length: timedelta | float,
        *,
        reader: str | None = None,
        basis: BasisLike | None = None,
        slack: timedelta | float = 60.0,
        offset: timedelta | float = 0.0,
        key_format: str = KEY_FORMAT,
        poll_interval: float = 60.0,
        repeat_seconds: float = REPEAT_SECONDS,
    ) -> None:
        super().__init__(poll_interval, repeat_seconds)
        self.source: Source = source_from_json(source) if isinstance(source, dict) else source
        check_choices(source=self.source, basis=basis)
        if basis is not None and not isinstance(basis, str):
            raise InvalidRequest("windows that come by themselves cannot have the user's own cuts")
        self.grid = Grid(_span(window_length), _span(offset))
        self.slack = _span(slack)
        self.reader, self.basis, self.key_format = reader, basis or default_basis(self.source.system), key_format
        self._hook: StreamHook | None = None
        self._complete_until: datetime | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no secret."""
        return (
            "airflow_provider_streams.triggers.new_windows.NewWindowsTrigger",
            {
                "source": source_to_json(self.source),
                "window_length": self.grid.length.total_seconds(),
                "reader": self.reader,
                "basis": self.basis,
                "slack": self.slack.total_seconds(),
                "offset": self.grid.offset.total_seconds(),
                "key_format": self.key_format,
                "poll_interval": self.poll_interval,
                "repeat_seconds": self.repeat_seconds,
            },
        )

    async def look(self) -> News | None:
        """The complete windows that are not covered yet."""
        until = await self._ready_until(datetime.now(UTC))
        if until is None:
            return None
        since = await self._covered_until()
        return self._news(until - self.grid.length if since is None else since, until)

    async def cleanup(self) -> None:
        """Close local connections; there is nothing to undo at the server."""
        if self._hook is not None:
            await self._hook.aclose()

    async def _ready_until(self, now: datetime) -> datetime | None:
        """The end of the newest complete window; None: neither of the last two is known to be."""
        newest = self.grid.before(now)
        if self._complete_until == newest:
            return newest
        self._hook = self._hook or hook_for(self.source)
        for end in (newest, newest - self.grid.length):
            if end == self._complete_until:
                break
            window = Window(end - self.grid.length, end)
            question = WindowQuestion(self.source, window, self.basis, self.slack, MAX_SKEW)
            if (await self._hook.areadiness(question)).ready:
                self._complete_until = end
                break
        return self._complete_until

    async def _covered_until(self) -> datetime | None:
        if self.reader is None:
            return None
        with closing(await aopen_journal()) as journal:
            end = await asyncio.to_thread(covered_end, journal, self.source.key, self.reader, None)
        return None if end is None else end.time

    def _news(self, since: datetime, until: datetime) -> News | None:
        windows = self.grid.windows(since, until)
        if not windows:
            return None
        named = [{**window.to_json(), "partition_key": self._key(window)} for window in windows]
        payload = {
            "source": str(self.source),
            "reader": self.reader,
            "windows": named,
            "partition_keys": [one["partition_key"] for one in named],
            "window": windows[-1].to_json(),
            "partition_key": named[-1]["partition_key"],
            "more": windows[-1].end < until,
        }
        return News((windows[0].start, windows[-1].end), payload, again=self.reader is not None)

    def _key(self, window: Window) -> str:
        return window.start.strftime(self.key_format)


def _span(length: timedelta | float) -> timedelta:
    return length if isinstance(length, timedelta) else timedelta(seconds=length)
