"""What sensors ask of a cluster: pure predicates over its answers, shared by blocking and asynchronous callers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import EntryId, MessageId
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient, together
from airflow_provider_streams.systems.pulsar.admin.peek import PeekedEntry
from airflow_provider_streams.systems.pulsar.cuts import lookup_ms
from airflow_provider_streams.systems.pulsar.survey import shards_of


@dataclass(frozen=True, slots=True)
class Ready:
    """The window's end is certain."""


@dataclass(frozen=True, slots=True)
class NotReady:
    """It is not, and why."""

    reason: str


def window_ready(
    now: datetime, window: Window, slack: timedelta, before_end: Mapping[str, PeekedEntry | None] | None = None
) -> Ready | NotReady:
    """Whether everything published in a window can be read now.

    Args:
        now: the time.
        window: the window.
        slack: how much later than its publish time an event may be stored.
        before_end: per shard the entry just before the window's end plus slack, None where there is none.
    """
    certain = window.end + slack
    if now < certain:
        return NotReady(f"it is certain at {certain.isoformat()} at the earliest")
    held = sorted(shard for shard, entry in (before_end or {}).items() if entry is not None and entry.uncommitted)
    if held:
        return NotReady(f"an open transaction holds back {', '.join(held)}")
    return Ready()


async def entries_before_end(
    admin: AsyncAdminClient, source: PulsarSource, window: Window, slack: timedelta
) -> dict[str, PeekedEntry | None]:
    """The last argument of `window_ready`: two requests per shard, once the window's time is over."""
    listed = await shards_of(admin, source)
    until_ms = lookup_ms(window.end, slack)
    entries = await together(_before(admin, shard.name, until_ms) for shard in listed)
    return {shard.name: entry for shard, entry in zip(listed, entries, strict=True)}


async def _before(admin: AsyncAdminClient, shard: str, until_ms: int) -> PeekedEntry | None:
    end: MessageId = await admin(requests.message_id_at(shard, until_ms))
    entry = EntryId(end.ledger, end.entry - 1)
    if entry.entry < 0:
        # the end is a ledger's begin: the entry before lies in an older one
        stats = await admin(requests.internal_stats(shard))
        older = [row for row in stats.ledgers if row.ledger < end.ledger and row.entries]
        if not older:
            return None
        entry = EntryId(older[-1].ledger, older[-1].entries - 1)
    return await admin(requests.peek(shard, entry.ledger, entry.entry))
