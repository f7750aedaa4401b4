"""Announces that new windows of a stream are complete."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.connections.journal import aopen_journal
from airflow_provider_streams.errors import InvalidRequest, InvalidWindow
from airflow_provider_streams.model.stream.source import Source, check_source
from airflow_provider_streams.model.window.basis import BasisLike, Cuts, basis_from_json, basis_to_json
from airflow_provider_streams.model.window.coverage import Coverage, WindowState
from airflow_provider_streams.model.window.partition_key import KEY_FORMAT, NOTHING, Known, PartitionKeys
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every, WindowSchedule, parse_schedule
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import source_from_json, source_to_json
from airflow_provider_streams.template_fields import refuse_templates
from airflow_provider_streams.triggers.asset_watcher_base import REPEAT_SECONDS, News, WatchTrigger
from airflow_provider_streams.triggers.base import HookedTrigger, stored_value
from airflow_provider_streams.windows.plan.readiness import WindowQuestion

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal

MOST_WINDOWS = 100
"""An event names so many windows at most; the next event names the next ones."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """Windows that a consumer should read."""

    windows: tuple[Window, ...]
    more: bool
    """There are others."""
    known: Known = NOTHING
    """How the reader's DAG writes partition keys."""


def to_announce(coverage: Coverage, known: Known = NOTHING) -> Announcement:
    """The complete windows that are not covered, the oldest first; those never tried before those that failed.

    What the stream no longer holds is left out, as it cannot be read. Neither that nor windows that fail again and
    again keep others from being named.
    """
    wanted = [item for item in coverage.windows if item.state not in ("covered", "lost")]
    chosen = sorted(wanted, key=_urgency)[:MOST_WINDOWS]
    return Announcement(tuple(sorted(item.window for item in chosen)), len(wanted) > len(chosen), known)


def _urgency(item: WindowState) -> tuple[int, datetime]:
    return item.attempts, item.window.start


class NewWindowsTrigger(HookedTrigger, WatchTrigger):
    """For `AssetWatcher`: an event when windows of a source are complete and not covered yet.

    Complete is what `WindowReadySensor` waits for. With a `reader`, the event names all complete windows that the
    journal does not have as covered, and is repeated until it does; without, the newest one, once.

    The event's payload: `source, reader, windows` (each `start, end, partition_key`), `partition_keys`, `window` and
    `partition_key` of the newest, and `more`: whether there are more than these. Airflow 3.3 gives an event of a
    watcher no partition of its own: a task of the DAG it starts passes the keys on, with
    `outlet_events[asset].add_partitions(keys)`.

    Args:
        source: what is read, or as `systems.source_json.source_to_json` gives it, or that as JSON text.
        window_length: the length of windows: a time, its seconds, or its text (`1h`, `1d Europe/Berlin`,
            `parse_schedule`).
        reader: who covers the windows.
        basis: as the read's, without a user's cuts; or as `model.window.basis.basis_to_json` gives it, or that as
            JSON text.
        offset: of the edges of windows of one length from midnight (UTC), or its seconds.
        key_format: how a window's start is written as partition key, in the time zone of its window schedule, until the
            DAG that reads these windows for `reader` has noted how its timetable writes keys.
        poll_interval: seconds between two looks.
        repeat_seconds: how often windows are announced again while they are not covered.
    """

    stored = ("source", "reader", "key_format", "poll_interval", "repeat_seconds")

    def __init__(
        self,
        source: Source | dict[str, Any] | str,
        window_length: timedelta | float | str,
        *,
        reader: str | None = None,
        basis: BasisLike | Mapping[str, Any] | None = None,
        offset: timedelta | float = 0.0,
        key_format: str = KEY_FORMAT,
        poll_interval: float = 60.0,
        repeat_seconds: float = REPEAT_SECONDS,
    ) -> None:
        super().__init__(poll_interval, repeat_seconds)
        source, basis = stored_value(source), stored_value(basis)
        self.source: Source = check_source(source_from_json(source) if isinstance(source, dict) else source)
        given = basis_from_json(basis) if isinstance(basis, Mapping) else basis
        self.basis = declaration_of(self.source.system).basis(given)
        if isinstance(self.basis, Cuts):
            raise InvalidRequest("this trigger finds windows by time, so basis cannot be Cuts(start, end)")
        self.window_schedule = _schedule(window_length, _span(offset))
        self.reader, self.key_format = reader, key_format
        refuse_templates("NewWindowsTrigger", (), {name: getattr(self, name) for name in ("source", "basis", "reader")})
        self._complete_until: datetime | None = None
        self._is_introduced = False

    def arguments(self) -> dict[str, Any]:
        """As `StoredTrigger`."""
        return super().arguments() | {
            "window_length": str(self.window_schedule),
            "basis": basis_to_json(self.basis),
        }

    def read_source(self) -> Source:
        """As `HookedTrigger`."""
        return self.source

    async def poll(self) -> News | None:
        """The complete windows that are not covered yet."""
        until = await self._ready_until(datetime.now(UTC))
        if until is None:
            return None
        newest = self.window_schedule.cell(until - timedelta(microseconds=1))
        if self.reader is None:
            return self._news(Announcement((newest,), more=False))
        with closing(await aopen_journal()) as journal:
            return self._news(await asyncio.to_thread(self._uncovered, journal, self.reader, newest))

    async def _ready_until(self, now: datetime) -> datetime | None:
        """The end of the newest complete window; None: neither of the last two is known to be."""
        newest = self.window_schedule.before(now)
        if self._complete_until == newest:
            return newest
        last = self.window_schedule.cell(newest - timedelta(microseconds=1))
        for window in (last, self.window_schedule.cell(last.start - timedelta(microseconds=1))):
            if window.end == self._complete_until:
                break
            question = WindowQuestion(self.source, window, self.basis)
            if (await self.hook().areadiness(question)).ready:
                self._complete_until = window.end
                await self.hook().aobserve_tail(self.source)
                break
        return self._complete_until

    def _uncovered(self, journal: Journal, reader: str, newest: Window) -> Announcement:
        """Since the first window that the reader knows, or that was complete when the first watcher asked."""
        if not self._is_introduced:
            journal.store_source(self.source.key, source_to_json(self.source))
            self._is_introduced = True
        since = journal.watched_from(self.source.key, reader, newest.start)
        known = journal.known_keys([self.source.key], reader, [newest], [])
        return to_announce(journal.stretches(self.source.key, reader, since, newest.end, self.window_schedule), known)

    def _news(self, found: Announcement) -> News | None:
        windows = found.windows
        if not windows:
            return None
        rules = PartitionKeys(key_format=self.key_format)
        keys = [rules.key(window, self.window_schedule, found.known) for window in windows]
        named = [{**window.to_json(), "partition_key": key} for window, key in zip(windows, keys, strict=True)]
        payload = {
            "source": str(self.source),
            "reader": self.reader,
            "windows": named,
            "partition_keys": [one["partition_key"] for one in named],
            "window": windows[-1].to_json(),
            "partition_key": named[-1]["partition_key"],
            "more": found.more,
        }
        return News(windows, payload, again=self.reader is not None)


def _schedule(length: timedelta | float | str, offset: timedelta) -> WindowSchedule:
    window_schedule = parse_schedule(timedelta(seconds=length) if isinstance(length, int | float) else length)
    if not offset:
        return window_schedule
    if not isinstance(window_schedule, Every):
        raise InvalidWindow(
            f"windows of {window_schedule} follow the calendar: offset is only for windows of one length"
        )
    return Every(window_schedule.length, offset)


def _span(length: timedelta | float) -> timedelta:
    return length if isinstance(length, timedelta) else timedelta(seconds=length)
