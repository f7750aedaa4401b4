"""The journal's database as the api-server uses it: opened once, looked up again every so often."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from airflow.providers.common.compat.sdk import conf
from fastapi import HTTPException
from sqlalchemy import Connection

from airflow_provider_streams.connections.journal import DEFAULT_CONN_ID, journal_url
from airflow_provider_streams.errors import JournalUnavailable, StreamsError
from airflow_provider_streams.journal.database import Database

LOOKUP_SECONDS: Final = 60.0
"""How long the journal's connection is taken from memory instead of from Airflow's database or secrets backend."""

log = logging.getLogger(__name__)


class JournalTransactions:
    """Transactions on the journal of `[streams] journal_conn_id`. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._url = ""
        self._database: Database | None = None
        self._looked_up = 0.0

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads.

        Raises:
            HTTPException: 503 or 500; what exactly is wrong stands in the server's log, not in the answer: messages
                about databases name hosts and users.
        """
        with self._answered(), self._open().reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that changes something; rolled back by any exception.

        Raises:
            HTTPException: as `reading`.
        """
        with self._answered(), self._open().writing() as connection:
            yield connection

    @contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            yield
        except StreamsError as error:
            log.warning("the journal cannot be used: %s", error)
            if isinstance(error, JournalUnavailable):
                raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "The journal's database does not answer.") from None
            raise HTTPException(
                HTTPStatus.INTERNAL_SERVER_ERROR, "The journal cannot be used; the api-server's log says why."
            ) from None

    def _open(self) -> Database:
        with self._lock:
            now = time.monotonic()
            if self._database is None or now - self._looked_up > LOOKUP_SECONDS:
                url = journal_url(conf.get("streams", "journal_conn_id", fallback=DEFAULT_CONN_ID))
                if self._database is None or url != self._url:
                    self._url, self._database = url, Database(url)
                self._looked_up = now
            return self._database
