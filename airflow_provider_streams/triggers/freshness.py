"""Waits until a table has everything of its source up to a moment."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

from airflow_provider_streams.connections.journal import aopen_journal, open_journal
from airflow_provider_streams.lake.registry import sink_from_json
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.model.window.window import utc_moment
from airflow_provider_streams.triggers.base import QuestionTrigger, StoredTrigger
from airflow_provider_streams.windows.after_landing.freshness import is_fresh


class FreshTableTrigger(StoredTrigger, QuestionTrigger):
    """Fires when all windows of a table's reader are covered up to a moment. Only the journal is asked.

    Args:
        sink: as `Sink.to_json` gives it.
        until: the moment, ISO 8601 with an offset.
        poll_interval: seconds between two polls.
    """

    stored = ("sink", "until", "poll_interval")

    def __init__(self, sink: dict[str, Any], until: str, poll_interval: float = 60.0) -> None:
        super().__init__(poll_interval)
        self.sink, self.until = sink, until

    async def ask(self) -> Readiness:
        """One poll."""
        with closing(await aopen_journal()) as journal:
            return await asyncio.to_thread(is_fresh, journal, sink_from_json(self.sink), utc_moment(self.until))

    def ask_blocking(self) -> Readiness:
        """As `ask`, in a worker."""
        with open_journal() as journal:
            return is_fresh(journal, sink_from_json(self.sink), utc_moment(self.until))
