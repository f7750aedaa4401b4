"""Records cuts on a clock, in the triggerer, all the time or for a while; and waits for one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, closing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_streams.connections.journal import aopen_journal, open_journal
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.model.window.window import utc_moment
from airflow_provider_streams.systems.source_json import source_from_json, source_to_json
from airflow_provider_streams.template_fields import refuse_templates
from airflow_provider_streams.triggers.base import SourceTrigger, StoredTrigger
from airflow_provider_streams.windows.plan.cut_recording import RecordOutcome, next_tick, record, utc_now
from airflow_provider_streams.windows.plan.readiness import cut_recorded

if TYPE_CHECKING:
    from airflow_provider_streams.systems.base import StreamSystem


class RecordCutsTrigger(StoredTrigger, BaseEventTrigger):
    """Samples the tails of sources at every full multiple of an interval, and stores them in the journal.

    Without an end it runs for ever and fires nothing. If a source fails, it logs that once and tries again at the next
    tick. So it can be the watcher of an asset (`AssetWatcher(name, trigger)`), which Airflow runs as long as the DAG
    that names the asset is active; or `RecordCutsOperator` waits for its end. Any number of recorders may run for one
    source.

    Args:
        sources: what to sample; each may be as `systems.source_json.source_to_json` gives it, or that as JSON text.
        every_seconds: the interval; about the greatest skew of a window's edge.
        recorder: the name to store with the entries.
        until: when to end (ISO 8601); None: never.
        keep_seconds: forget entries older than this; None: keep all.
    """

    stored = ("sources", "every_seconds", "recorder", "until", "keep_seconds")

    def __init__(
        self,
        sources: Sequence[Source | dict[str, Any] | str],
        every_seconds: float = 60.0,
        recorder: str = "trigger",
        until: str | None = None,
        keep_seconds: float | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's is not annotated
        self.sources = [_plain(one) for one in sources]
        self.every_seconds, self.recorder = every_seconds, recorder
        self.until, self.keep_seconds = until, keep_seconds
        refuse_templates("RecordCutsTrigger", (), {"sources": self.sources, "recorder": recorder})
        self._failing: dict[str, str] = {}

    def arguments(self) -> dict[str, Any]:
        """As `StoredTrigger`."""
        # texts: a watcher with dictionaries in a list is another one to Airflow 3.3 at each parse of its DAG
        return super().arguments() | {"sources": [json.dumps(one, sort_keys=True) for one in self.sources]}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Record until the end; then fires once, with the number of entries stored and refused."""
        sources = [source_from_json(data) for data in self.sources]
        end = utc_moment(self.until) if self.until else None
        every = timedelta(seconds=self.every_seconds)
        stored = ticks = 0
        while end is None or utc_now() < end:
            stored += await self._tick(sources)
            ticks += 1
            tick = next_tick(utc_now(), every)
            await sleep_until(tick if end is None else min(tick, end))
        payload = {"status": "success", "ticks": ticks, "stored": stored, "failing": dict(self._failing)}
        yield TriggerEvent(payload)  # type: ignore[no-untyped-call]  # Airflow's is not annotated

    async def _tick(self, sources: list[Source]) -> int:
        try:
            results = await self._record(sources)
        except StreamsError as error:
            # the journal, or a connection: nothing is lost, the next tick is only a later one
            self.log.warning("No cut was recorded, trying again: %s", error)
            return 0
        for result in results:
            self._note(result)
        return sum(result.sequence is not None for result in results)

    async def _record(self, sources: list[Source]) -> list[RecordOutcome]:
        async with AsyncExitStack() as stack:
            # opened again each time: credentials may change, and a minute is long for an idle connection
            systems: dict[str, StreamSystem | StreamsError] = {}
            for source in sources:
                if source.conn_id not in systems:
                    systems[source.conn_id] = await _system(source, stack)
            journal = stack.enter_context(closing(await aopen_journal()))
            results = await asyncio.to_thread(record, journal, systems, sources, self.recorder)
            if self.keep_seconds is not None:
                before = utc_now() - timedelta(seconds=self.keep_seconds)
                for source in sources:
                    await asyncio.to_thread(journal.prune_cuts, before, source.key)
        return results

    def _note(self, result: RecordOutcome) -> None:
        """A failure is logged when it begins and when it ends, not at every tick."""
        key, failing = result.source.key, self._failing
        if result.error is None:
            if failing.pop(key, None):
                self.log.info("Cuts of %s are recorded again", result.source)
            return
        if failing.get(key) != type(result.error).__name__:
            self.log.warning("No cut of %s was recorded, trying again at every tick: %s", result.source, result.error)
        failing[key] = type(result.error).__name__


class CutAvailableTrigger(SourceTrigger):
    """Fires when the journal holds a cut of a source sampled at or after a time; the source itself is not asked.

    Args:
        source: as `systems.source_json.source_to_json` gives it.
        moment: the time, ISO 8601 with an offset.
        poll_interval: seconds between two polls.
    """

    stored = ("source", "moment", "poll_interval")

    def __init__(self, source: dict[str, Any], moment: str, poll_interval: float = 60.0) -> None:
        super().__init__(source, poll_interval)
        self.moment = moment

    async def ask(self) -> Readiness:
        """One poll."""
        with closing(await aopen_journal()) as journal:
            return await asyncio.to_thread(cut_recorded, journal, self.read_source(), utc_moment(self.moment))

    def ask_blocking(self) -> Readiness:
        """As `ask`, in a worker."""
        with open_journal() as journal:
            return cut_recorded(journal, self.read_source(), utc_moment(self.moment))


async def _system(source: Source, stack: AsyncExitStack) -> StreamSystem | StreamsError:
    """The system of a source; if its connection is wrong, the error: other sources are recorded all the same."""
    try:
        return stack.enter_context(closing(await hook_for(source).asystem()))
    except StreamsError as error:
        return error


def _plain(given: Source | dict[str, Any] | str) -> dict[str, Any]:
    if isinstance(given, Source):
        return source_to_json(given)
    plain: dict[str, Any] = json.loads(given) if isinstance(given, str) else given
    return plain


async def sleep_until(moment: datetime) -> None:
    """Sleep until the wall clock has reached a time: never less, as a sampling must not begin before its tick."""
    while (left := (moment - utc_now()).total_seconds()) > 0:  # noqa: ASYNC110 - a sleep may end early by a wall clock
        await asyncio.sleep(left)
