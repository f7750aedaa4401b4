"""How a stream holds its events: its policy, whose hold counts, and how fast it grows, by its recorded cuts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.retention import Holding, Rules, soonest
from airflow_provider_streams.systems.pravega import calls, cuts, hold, questions
from airflow_provider_streams.systems.pravega.calls import NO_LIMIT, Retention, RetentionKind
from airflow_provider_streams.systems.pravega.horizon import History
from airflow_provider_streams.systems.pravega.selection import streams_of
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.steps import Steps, ask
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut


def holding(
    source: PravegaSource, reader: str | None, recorded: Iterable[tuple[datetime, Cut]], now: datetime
) -> Steps[Holding]:
    """How a source holds its events for a reader; of several streams the one that loses events first.

    Args:
        source: which streams.
        reader: whose hold counts; None: anyone's.
        recorded: when cuts were sampled, and the cuts, oldest first.
        now: the time.

    Raises:
        SourceNotFound: no such stream or scope.
    """
    history = History((moment, cut, ()) for moment, cut in recorded)
    found = []
    for stream in (yield from streams_of(source)):
        found.append((yield from _of_stream(stream, reader, history, now)))  # noqa: PERF401 - it asks
    return soonest(found)


def _of_stream(stream: str, reader: str | None, history: History, now: datetime) -> Steps[Holding]:
    """How a stream holds its events for a reader.

    Events carry no time: how far back the stream reaches and how fast it grows is told by recorded cuts alone.

    Args:
        stream: `scope/stream`.
        reader: whose hold counts; None: anyone's.
        history: the recorded cuts.
        now: the time.

    Raises:
        SourceNotFound: no such stream or scope.
    """
    settings = yield from ask(calls.stream_settings(stream))
    subscribers = yield from ask(calls.list_holds(stream))
    head = yield from cuts.head(stream)
    oldest = history.oldest_held(head)
    rate = None
    if oldest is not None and (seconds := (now - oldest[0]).total_seconds()) > 0:
        unread = yield from questions.unread(stream, StreamCut.from_model(stream, oldest[1]))
        rate = unread.bytes / seconds
    is_held = bool(subscribers) if reader is None else hold.is_held(subscribers, stream, reader)
    return Holding(rules_of(settings.retention, is_held=is_held), rate, oldest[0] if oldest else None)


def rules_of(policy: Retention, *, is_held: bool) -> Rules:
    """A retention policy as rules: what a hold keeps goes at the policy's maximum, everything else at its minimum."""
    limit = max(policy.maximum, policy.minimum) if is_held else policy.minimum
    if policy.kind is RetentionKind.NONE or limit >= NO_LIMIT:
        return Rules()
    if policy.kind is RetentionKind.TIME:
        return Rules(retention=_span(limit))
    return Rules(retention_bytes=limit)


def _span(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=min(milliseconds, timedelta.max // timedelta(milliseconds=1)))
