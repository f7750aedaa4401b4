"""How a stream holds its events: its policy, its holds, and its growth, by recorded cuts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.retention import Holding, Rules, soonest
from airflow_provider_streams.systems.pravega.client.controller import hold_calls, stream_calls
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps
from airflow_provider_streams.systems.pravega.client.stream_configuration import NO_LIMIT, Retention, RetentionKind
from airflow_provider_streams.systems.pravega.metadata import queries
from airflow_provider_streams.systems.pravega.metadata.queries import streams_of
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.operations import hold
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.planning.retention_horizon import History
from airflow_provider_streams.systems.pravega.source import PravegaSource


def holding(
    source: PravegaSource, reader: str | None, recorded: Iterable[tuple[datetime, Cut]], now: datetime
) -> Steps[Holding]:
    """How a source holds its events for a reader; of several streams the one that loses events first.

    Without a reader, any hold counts. `recorded` has the cuts, oldest first, and the time when each was sampled.
    """
    history = History((moment, cut, ()) for moment, cut in recorded)
    found = []
    for stream in (yield from streams_of(source)):
        found.append((yield from _of_stream(stream, reader, history, now)))  # noqa: PERF401 - it asks
    return soonest(found)


def _of_stream(stream: str, reader: str | None, history: History, now: datetime) -> Steps[Holding]:
    # events carry no time: recorded cuts alone tell how far back the stream reaches and how fast it grows
    settings = yield from stream_calls.stream_settings(stream)
    subscribers = yield from hold_calls.list_holds(stream)
    head = yield from cuts.head(stream)
    oldest = history.oldest_held(head)
    rate = None
    if oldest is not None and (seconds := (now - oldest[0]).total_seconds()) > 0:
        unread = yield from queries.unread(stream, StreamCut.from_model(stream, oldest[1]))
        rate = unread.bytes / seconds
    is_held = bool(subscribers) if reader is None else hold.is_held(subscribers, stream, reader)
    return Holding(rules_of(settings.retention, is_held=is_held), rate, oldest[0] if oldest else None)


def rules_of(policy: Retention, *, is_held: bool) -> Rules:
    """A retention policy as rules: events with a hold go at the policy's maximum, all others at its minimum."""
    limit = max(policy.maximum, policy.minimum) if is_held else policy.minimum
    if policy.kind is RetentionKind.NONE or limit >= NO_LIMIT:
        return Rules()
    if policy.kind is RetentionKind.TIME:
        return Rules(retention=timedelta(milliseconds=min(limit, timedelta.max // timedelta(milliseconds=1))))
    return Rules(retention_bytes=limit)
