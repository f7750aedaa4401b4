"""How far back a stream still reaches, and who holds it: few systems are asked at a time, and answers are kept."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.stream.hold import Hold
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.redaction import safe_cause

PATIENCE_SECONDS: Final = 4.0
"""How long a request waits; the answer of a slower system is there for the next one."""
KEEP_SECONDS: Final = 300.0
"""How long an answer is taken from memory."""
AT_ONCE: Final = 2
"""So many systems are asked at the same time; the others wait."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Horizon:
    """What is known about a source's retention."""

    moment: datetime | None = None
    """The oldest time the stream can still serve; None: not known, or without a limit."""
    problem: str = ""
    """Why it is not known: the kind of error, never its text."""
    pending: bool = False
    """It was asked and has not answered yet."""
    holds: tuple[Hold, ...] | None = None
    """What keeps its events from its retention; None: not known."""


class Horizons:
    """Answers by source key. `ask` blocks, and runs in a thread of its own."""

    def __init__(self, ask: Callable[[str], Horizon]) -> None:
        self._ask = ask
        self._threads = ThreadPoolExecutor(AT_ONCE, "streams-horizon")
        self._asked: dict[str, tuple[float, Future[Horizon]]] = {}

    async def get(self, key: str, patience_seconds: float = PATIENCE_SECONDS) -> Horizon:
        """The horizon of a source, waited for a short while."""
        asked_at, answer = self._asked.get(key, (0.0, None))
        if answer is None or (answer.done() and time.monotonic() - asked_at > KEEP_SECONDS):
            answer = self._threads.submit(self._answer, key)
            self._asked[key] = time.monotonic(), answer
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(answer)), patience_seconds)
        except TimeoutError:
            return Horizon(pending=True)

    def known(self, key: str) -> datetime | None:
        """What was answered last, without asking."""
        _, answer = self._asked.get(key, (0.0, None))
        return answer.result().moment if answer is not None and answer.done() else None

    def _answer(self, key: str) -> Horizon:
        try:
            return self._ask(key)
        except StreamsError as error:
            log.info("the retention horizon of %s is not known: %s", key, error)
            return Horizon(problem=type(error).__name__)
        except Exception as error:
            # an error of a client library must not end the page; its text may hold anything
            log.exception("the retention horizon of %s could not be asked", key, exc_info=safe_cause(error))
            return Horizon(problem=type(error).__name__)


def ask_system(key: str) -> Horizon:
    """The oldest time from which on the source is held whole, and its holds.

    Raises:
        StreamsError: the connection is missing, or the system refuses or does not answer.
    """
    # loads clients only when a browser asks
    from airflow_provider_streams.connections.journal import open_journal  # noqa: PLC0415
    from airflow_provider_streams.hooks.base import hook_for  # noqa: PLC0415
    from airflow_provider_streams.windows.after_landing.retention import horizon_of, source_of_key  # noqa: PLC0415

    with open_journal() as journal:
        source = source_of_key(journal, key)
        with closing(hook_for(source).system()) as system:
            moment = horizon_of(journal, system, source)
        readers = [reader for known, reader in journal.sources() if known == key]
    return Horizon(moment, holds=_holds(source, readers))


def _holds(source: Source, readers: list[str]) -> tuple[Hold, ...] | None:
    """None: the connection may read the stream, and may not see who holds it."""
    from airflow_provider_streams.hooks.base import hook_for  # noqa: PLC0415 - as above

    try:
        with closing(hook_for(source)) as hook:
            return hook.holds(source, readers)
    except StreamsError as error:
        log.info("what holds %s is not known: %s", source, error)
        return None
