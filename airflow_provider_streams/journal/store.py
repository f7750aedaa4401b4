"""The journal: which plans are pinned, which windows are covered, where a source's tail was."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import Self

from airflow_provider_streams.journal import pruning
from airflow_provider_streams.journal.chained_windows import ChainedWindows
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.evidence.recorded_cuts import Cuts
from airflow_provider_streams.journal.evidence.tail_observations import TailObservations
from airflow_provider_streams.journal.landings import Landings
from airflow_provider_streams.journal.pinned_plans import PinnedPlans
from airflow_provider_streams.journal.pruning import Pruned
from airflow_provider_streams.journal.row_ids import Readers
from airflow_provider_streams.journal.runs.window_runs import WindowRuns
from airflow_provider_streams.journal.runs.window_states import WindowStates


class Journal(Readers, Landings, PinnedPlans, ChainedWindows, WindowRuns, WindowStates, Cuts, TailObservations):
    """The SQL memory of every reader. Safe to share between threads and forks, and between any number of processes.

    Connects when first used, and then makes or migrates its tables; no connection stays open between two calls.
    Every method raises `JournalUnavailable` (retryable) if the database does not answer and `JournalError` if it
    cannot be used; messages never hold the URL's password.

    Args:
        url: a SQLAlchemy URL: `sqlite:////path/journal.db`, `postgresql://user:password@host/database`, `mysql://..`.
        keep: how long history is kept: once a day, the next window that a reader covers prunes it; None: for ever.

    Raises:
        InvalidRequest: history is kept for a day at least.
        JournalError: not a URL, one of an asynchronous driver, or one of a database in memory.
        MissingDependency: the database's driver is not installed.
    """

    def __init__(self, url: str, *, keep: timedelta | None = None) -> None:
        super().__init__(Database(url))
        self._keep = None if keep is None else pruning.check_age(keep)

    @classmethod
    def open(cls, url: str, *, keep: timedelta | None = None) -> Self:
        """The journal at `url`, its tables made or migrated now. Any number of processes may open an empty one."""
        journal = cls(url, keep=keep)
        journal._database.prepare()
        return journal

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def kept_open(self) -> AbstractContextManager[None]:
        """Makes hundreds of small changes in a row cheaper. Meanwhile, the process must not fork."""
        return self._database.kept_open()

    def prune(self, keep: timedelta, *, dry_run: bool = False) -> list[Pruned]:
        """Forget what ended, or was pinned, so long ago and decides nothing; see `pruning`.

        Returns:
            What was forgotten of each reader, or would be in a `dry_run`, where there is anything.

        Raises:
            InvalidRequest: history is kept for a day at least.
        """
        return pruning.prune(self._database, keep, dry_run=dry_run)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({self._database.name!r})"
