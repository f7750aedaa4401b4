"""Whether a source's windows are read before their events may go, asked on both edges.

See `windows.after_landing.retention`.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime

from airflow_provider_streams.connections.journal import aopen_journal, open_journal
from airflow_provider_streams.hooks.base import StreamHook, hook_for
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.retention import Holding, Verdict, judge
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.windows.after_landing.retention import RetentionQuestion, recorded, waiting_since


def check_retention(question: RetentionQuestion) -> tuple[Verdict, Holding]:
    """The verdict now, and what it rests on; nothing is changed.

    Raises:
        InvalidRequest: a system whose retention cannot be asked for.
        AccessError, SystemUnavailable: the system refuses or does not answer.
    """
    source = question.source
    with closing(hook_for(source)) as hook:
        holding = hook.holding(source, question.reader, lambda: _recorded(source))
    return judge(holding, question.schedule, datetime.now(UTC), waiting_since=_waiting(question)), holding


async def acheck_retention(question: RetentionQuestion, hook: StreamHook) -> tuple[Verdict, Holding]:
    """As `check_retention`, for an event loop; `hook` is the source's, and stays open."""
    source = question.source
    holding = await hook.aholding(source, question.reader, lambda: _arecorded(source))
    since = await _awaiting(question)
    return judge(holding, question.schedule, datetime.now(UTC), waiting_since=since), holding


def _waiting(question: RetentionQuestion) -> datetime | None:
    if question.reader is None:
        return None
    with open_journal() as journal:
        return waiting_since(journal, question.source, question.reader)


def _recorded(source: Source) -> list[tuple[datetime, Cut]]:
    with open_journal() as journal:
        return recorded(journal, source)


async def _awaiting(question: RetentionQuestion) -> datetime | None:
    if question.reader is None:
        return None
    with closing(await aopen_journal()) as journal:
        return await asyncio.to_thread(waiting_since, journal, question.source, question.reader)


async def _arecorded(source: Source) -> list[tuple[datetime, Cut]]:
    with closing(await aopen_journal()) as journal:
        return await asyncio.to_thread(recorded, journal, source)
