"""Prepares the tables of a source's topics or streams side by side; what fails for one does not hold up the others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import AuthenticationFailed, CertificateNotTrusted, JournalError, StreamsError
from airflow_provider_streams.model.circuit_breaker import CircuitBreaker
from airflow_provider_streams.model.read_progress import Pace
from airflow_provider_streams.model.sinks.placeholders import SourceTable
from airflow_provider_streams.spark.job.concurrency import side_by_side
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.windows.run.outcome import name_earlier
from airflow_provider_streams.windows.run.preparation import PreparedTable

if TYPE_CHECKING:
    from airflow_provider_streams.windows.run.window_context import WindowContext

_log = logging.getLogger(__name__)


class EachTable:
    """Prepares tables, some side by side. A failure of one is its own, unless it concerns all."""

    def __init__(self, window_context: WindowContext, tables: Sequence[SourceTable]) -> None:
        self._journal, self._tables = window_context.journal, tables
        self._circuit_breaker = CircuitBreaker(several=True)
        self._done, self._pace = 0, Pace()
        self._lock = threading.Lock()
        self._failed: dict[str, str] = {}

    def prepare(self, act: Callable[[SourceTable], PreparedTable | None]) -> list[PreparedTable | StreamsError | None]:
        """What came of each table, in order; its failure, if that is its own.

        Raises:
            AuthenticationFailed, CertificateNotTrusted, JournalError: it concerns all; a note names what had failed
                before it.
        """
        try:
            with side_by_side(partial(self._one, act), self._tables, "streams-plan") as each:
                return list(each)
        except StreamsError as error:
            name_earlier(error, self._failed)
            raise

    def _one(
        self, act: Callable[[SourceTable], PreparedTable | None], table: SourceTable
    ) -> PreparedTable | StreamsError | None:
        if self._circuit_breaker.over:
            return self._circuit_breaker.over
        try:
            self._journal.store_source(table.source.key, source_to_json(table.source))
            return act(table)
        except StreamsError as error:
            if isinstance(error, AuthenticationFailed | CertificateNotTrusted | JournalError):
                raise
            self._circuit_breaker.note(error)
            self._failed[str(table)] = f"{type(error).__name__}: {error}"
            return error
        finally:
            self._log_progress()

    def _log_progress(self) -> None:
        with self._lock:
            self._done += 1
            if self._pace.is_due():
                _log.info("%d of %d are planned", self._done, len(self._tables))
