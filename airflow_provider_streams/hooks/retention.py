"""How a source holds its events: what each system tells, as one value for the retention guard."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, cast

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.hooks.covered import covered_end
from airflow_provider_streams.hooks.horizon import MOST_CUTS
from airflow_provider_streams.hooks.journal import aopen_journal, open_journal
from airflow_provider_streams.hooks.pulsar_questions import Question, ask, topics_of
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.retention import Holding, Quota, Rules, Schedule, Verdict, judge
from airflow_provider_streams.model.source import PravegaSource, PulsarSource, Source

if TYPE_CHECKING:
    from airflow_provider_streams.hooks.pravega import PravegaHook
    from airflow_provider_streams.hooks.pulsar import PulsarHook
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.pravega.client import Steps
    from airflow_provider_streams.systems.pulsar.admin.answers import BacklogQuota, Retention, TopicStats
    from airflow_provider_streams.systems.pulsar.admin.peek import PeekedEntry


@dataclass(frozen=True, slots=True)
class RetentionQuestion:
    """Are the windows of a source read before their events may go?"""

    source: Source
    schedule: Schedule
    reader: str | None = None
    """Whose windows and pins count; None: any pin, and no window."""

    def to_json(self) -> dict[str, Any]:
        """All but the source as plain JSON values."""
        spans = (self.schedule.window_length, self.schedule.max_delay, self.schedule.margin)
        return {"seconds": [span.total_seconds() for span in spans], "reader": self.reader}

    @classmethod
    def from_json(cls, source: Source, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        length, delay, margin = (timedelta(seconds=seconds) for seconds in data["seconds"])
        return cls(source, Schedule(length, delay, margin), data["reader"])


def check_retention(question: RetentionQuestion) -> tuple[Verdict, Holding]:
    """The verdict now, and what it rests on; nothing is changed.

    Raises:
        InvalidRequest: a system whose retention cannot be asked for.
        AccessError, SystemUnavailable: the system refuses or does not answer.
    """
    source, reader = question.source, question.reader
    with closing(hook_for(source)) as hook:
        if isinstance(source, PulsarSource):
            holding = ask(cast("PulsarHook", hook).admin, pulsar_holding(source, reader, datetime.now(UTC)))
        elif isinstance(source, PravegaSource):
            pravega = cast("PravegaHook", hook)
            with open_journal() as journal:
                cuts = _recorded(journal, source)
            holding = pravega.run(_pravega_rule(pravega.stream(source.stream), reader, cuts))
        else:
            raise InvalidRequest(f"the retention of a {source.system} source cannot be asked for")
    if reader is None:
        return judge(holding, question.schedule, datetime.now(UTC)), holding
    with open_journal() as journal:
        return _judged(journal, question, holding), holding


async def acheck_retention(question: RetentionQuestion, hook: Any) -> tuple[Verdict, Holding]:
    """As `check_retention`, for an event loop; `hook` is the source's, and stays open."""
    source, reader = question.source, question.reader
    if isinstance(source, PulsarSource):
        holding = await hook.aanswer(pulsar_holding(source, reader, datetime.now(UTC)))
    elif isinstance(source, PravegaSource):
        with closing(await aopen_journal()) as journal:
            cuts = await asyncio.to_thread(_recorded, journal, source)
        rule = await asyncio.to_thread(_pravega_rule, await hook.astream(source.stream), reader, cuts)
        holding = await hook.arun(rule)
    else:
        raise InvalidRequest(f"the retention of a {source.system} source cannot be asked for")
    if reader is None:
        return judge(holding, question.schedule, datetime.now(UTC)), holding
    with closing(await aopen_journal()) as journal:
        return await asyncio.to_thread(_judged, journal, question, holding), holding


def _judged(journal: Journal, question: RetentionQuestion, holding: Holding) -> Verdict:
    """With the reader's oldest window that is not covered yet."""
    end = covered_end(journal, question.source.key, question.reader or "", None)
    since = None if end is None else end.time
    return judge(holding, question.schedule, datetime.now(UTC), waiting_since=since)


def _recorded(journal: Journal, source: Source) -> list[tuple[datetime, Cut]]:
    return [(one.sampled_from, one.cut) for one in journal.recorded_cuts(source.key, MOST_CUTS)]


def _pravega_rule(stream: str, reader: str | None, recorded: list[tuple[datetime, Cut]]) -> Steps[Holding]:
    from airflow_provider_streams.systems.pravega import retention  # noqa: PLC0415 - gRPC when used

    return retention.holding(stream, reader, recorded, datetime.now(UTC))


# Pulsar


def pulsar_holding(source: PulsarSource, reader: str | None, now: datetime) -> Question[Holding]:
    """How Pulsar holds the topics of a source: of all limits the least, of all rates the greatest."""
    from airflow_provider_streams.systems.pulsar.admin import requests  # noqa: PLC0415

    topics = yield from topics_of(source)
    shards = [shard for topic in topics for shard in topic.shards]
    policies = yield [
        request(topic.name)
        for topic in topics
        for request in (requests.retention, requests.message_ttl, requests.backlog_quotas)
    ]
    stats: list[TopicStats] = yield [requests.stats(shard) for shard in shards]
    firsts: list[PeekedEntry | None] = yield [requests.examine_message(shard) for shard in shards]
    oldest = [first.publish_time if first else None for first in firsts]
    pinned = [_pinned(one, reader) for one in stats]
    return Holding(
        _pulsar_rules(policies, pinned=all(size is not None for size in pinned)),
        max((_rate(one.storage_bytes, first, now) for one, first in zip(stats, oldest, strict=True)), default=0.0),
        min((first for first in oldest if first), default=None),
        max((size or 0 for size in pinned), default=0),
    )


def _pinned(stats: TopicStats, reader: str | None) -> int | None:
    """Bytes that a pin keeps on a shard; None: there is no pin."""
    from airflow_provider_streams.systems.pulsar.pins import PinSubscription  # noqa: PLC0415

    pins = (PinSubscription.of("", name, one) for name, one in stats.subscriptions.items())
    kept = [pin.bytes or 0 for pin in pins if pin and (reader is None or pin.mark.reader == reader)]
    return max(kept, default=None)


def _rate(stored: int, since: datetime | None, now: datetime) -> float:
    seconds = (now - since).total_seconds() if since else 0.0
    return stored / seconds if seconds >= 1 else 0.0


def _pulsar_rules(policies: Sequence[Any], *, pinned: bool) -> Rules | None:
    """The strictest of several topics' policies, each a retention, a TTL and quotas; None: one is not known."""
    if any(policy is None for policy in policies):
        return None
    retentions: list[Retention] = list(policies[0::3])
    quotas: Iterable[BacklogQuota] = (quota for each in policies[2::3] for quota in each)
    return Rules(
        keep=_span(_least(one.seconds for one in retentions)),
        keep_bytes=_least(one.bytes for one in retentions),
        pinned=pinned,
        expiry=_span(_least(ttl or None for ttl in policies[1::3])),
        quotas=tuple(dict.fromkeys(Quota(one.limit_bytes, _span(one.limit_seconds), one.evicts) for one in quotas)),
    )


def _least(limits: Iterable[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
