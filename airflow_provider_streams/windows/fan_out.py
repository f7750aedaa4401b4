"""One window, or the missing ones of a span, of many topics or streams: each lands in its own table, in one job.

Each topic or stream is a source of its own, planned, pinned and recorded as ever; what fails for one does not hold up
the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    CertificateNotTrusted,
    FanOutIncomplete,
    JournalError,
    StreamsError,
    causes_text,
)
from airflow_provider_streams.model.backfill import Limits
from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.model.packing import packed
from airflow_provider_streams.model.patience import Patience
from airflow_provider_streams.model.placeholders import SourceTable
from airflow_provider_streams.systems.sources import source_to_json
from airflow_provider_streams.windows.jobs import land_together

if TYPE_CHECKING:
    from airflow_provider_streams.model.plan import Plan
    from airflow_provider_streams.model.window import Window
    from airflow_provider_streams.spark.batch_spec import WindowFailure
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.windows.reading import Entry
    from airflow_provider_streams.windows.workplace import Workplace

_log = logging.getLogger(__name__)

PLANNERS = 4
"""So many topics or streams are planned side by side, each on connections of its own."""
JOB_LIMITS = Limits(max_bytes=1 << 62, max_windows=500)
"""One window of many sources is read in one job, unless they are more than this: each holds a file open meanwhile."""
_TELL_SECONDS = 15.0

T = TypeVar("T")


@dataclass(frozen=True)
class Tables:
    """What became of the windows of many topics or streams."""

    landed: tuple[tuple[SourceTable, Plan, Landed], ...] = ()
    failures: Mapping[tuple[str, Window], WindowFailure] = field(default_factory=dict)
    """By source and window."""
    before: int = 0
    """Windows that an earlier try of this task has covered: they were not read again."""

    @property
    def rows(self) -> int:
        """Of all that were landed now."""
        return sum(landed.receipt.rows for _, _, landed in self.landed)

    @property
    def words(self) -> str:
        """What is said of it."""
        said = f"{len(self.landed)} landed, {self.rows:,} rows"
        said += f", {self.before} by an earlier try" if self.before else ""
        return said + (f", {len(self.failures)} failed" if self.failures else "")

    def and_then(self, other: Tables) -> Tables:
        """Both together."""
        failures = {**self.failures, **other.failures}
        return Tables((*self.landed, *other.landed), failures, self.before + other.before)

    def check(self, source: object, what: str, *, names_windows: bool, planned: int | None = None) -> None:
        """Complain about what is not landed.

        Args:
            source: as a whole.
            what: which windows.
            names_windows: whether each failure says of which window it is.
            planned: how many could be landed, of a dry run, which lands none.

        Raises:
            FanOutIncomplete: something is not.
        """
        if not self.failures:
            return
        causes = self._causes(names_windows=names_windows)
        retryable = any(one.retryable for one in self.failures.values())
        landed = len(self.landed) + self.before
        raise FanOutIncomplete(source, what, landed, causes, retryable=retryable, planned=planned)

    @contextmanager
    def named_by_what_ends_all(self) -> Iterator[None]:
        """What concerns all, and so is raised from within as it is, names in a note what had failed before it."""
        try:
            yield
        except StreamsError as error:
            several = len({window for _, window in self.failures}) > 1
            _name_earlier(error, self._causes(names_windows=several))
            raise

    def _causes(self, *, names_windows: bool) -> dict[str, str]:
        return {
            f"{name} {window}" if names_windows else name: f"{one.error_type}: {one.message}"
            for (name, window), one in self.failures.items()
        }


def failed(table: SourceTable, window: Window, error: BaseException) -> Tables:
    """One that is not landed."""
    from airflow_provider_streams.spark.batch_spec import WindowFailure  # noqa: PLC0415 - Spark's side when used

    _log.warning("%s, window %s: %s: %s", table, window, type(error).__name__, error)
    return Tables(failures={(str(table), window): WindowFailure.of(error)})


def _name_earlier(error: StreamsError, causes: Mapping[str, str]) -> None:
    if causes:
        error.add_note(f"Failed before this: {causes_text(causes)}")


def concerns_every_source(error: StreamsError) -> bool:
    """Whether planning the others would meet it again."""
    return isinstance(error, AuthenticationFailed | CertificateNotTrusted | JournalError)


class Preparing:
    """Does something with each topic or stream, some side by side, each thread on connections of its own.

    Args:
        place: where.
    """

    def __init__(self, place: Workplace) -> None:
        self._place, self._patience = place, Patience(several=True)
        self._done, self._told = 0, time.monotonic()
        self._lock = threading.Lock()

    def each(
        self, tables: Sequence[SourceTable], act: Callable[[StreamSystem, SourceTable], T]
    ) -> list[T | StreamsError]:
        """What came of each, in order; its failure, if that is its own.

        Raises:
            AuthenticationFailed, CertificateNotTrusted, JournalError: it concerns all; a note names what had failed
                before it.
        """
        shares = [range(first, len(tables), PLANNERS) for first in range(min(PLANNERS, len(tables)))]
        found: dict[int, T | StreamsError] = {}

        def work(share: range) -> None:
            with closing(self._place.stream.system()) as system:
                for number in share:
                    found[number] = self._one(system, tables[number], act)
                    self._tell(len(tables))

        try:
            with ThreadPoolExecutor(max(1, len(shares)), thread_name_prefix="streams-plan") as pool:
                list(pool.map(work, shares))
        except StreamsError as error:
            failures = [(str(tables[number]), one) for number, one in found.items() if isinstance(one, StreamsError)]
            _name_earlier(error, {name: f"{type(one).__name__}: {one}" for name, one in failures})
            raise
        return [found[number] for number in range(len(tables))]

    def _one(
        self, system: StreamSystem, table: SourceTable, act: Callable[[StreamSystem, SourceTable], T]
    ) -> T | StreamsError:
        if self._patience.over:
            return self._patience.over
        try:
            self._place.journal.introduce(table.source.key, source_to_json(table.source))
            return act(system, table)
        except StreamsError as error:
            if concerns_every_source(error):
                raise
            self._patience.note(error)
            return error

    def _tell(self, total: int) -> None:
        with self._lock:
            self._done += 1
            if time.monotonic() - self._told > _TELL_SECONDS:
                self._told = time.monotonic()
                _log.info("%d of %d are planned", self._done, total)


def land_tables(
    place: Workplace,
    entries: Sequence[tuple[SourceTable, Entry]],
    done: Callable[[int, Tables], None],
    before: Tables | None = None,
) -> Tables:
    """Read what is planned and pinned, in as few jobs as can be, and record each.

    Args:
        place: where.
        entries: each with its table.
        done: told after each job: its number from 1, and what came of it.
        before: what became of others already.

    Returns:
        What became of all, those of `before` too.

    Raises:
        StreamsError: what concerns all alike. Jobs that ended before stay landed.
    """
    jobs = packed(entries, lambda one: one[1].plan.estimate.bytes, JOB_LIMITS.max_bytes, JOB_LIMITS.max_windows)
    return land_jobs(place, jobs, done, before)


def land_jobs(
    place: Workplace,
    jobs: Iterable[Sequence[tuple[SourceTable, Entry]]],
    done: Callable[[int, Tables], None],
    before: Tables | None = None,
) -> Tables:
    """The same, job by job."""
    total = before or Tables()
    for number, job in enumerate(jobs, 1):
        with total.named_by_what_ends_all():
            outcome = _land_job(place, job)
        done(number, outcome)
        total = total.and_then(outcome)
    return total


def _land_job(place: Workplace, job: Sequence[tuple[SourceTable, Entry]]) -> Tables:
    landed: list[tuple[SourceTable, Plan, Landed]] = []
    failures: dict[tuple[str, Window], WindowFailure] = {}
    results = land_together(place, [entry for _, entry in job], fans_out=True)
    for (table, entry), result in zip(job, results, strict=True):
        if isinstance(result, Landed):
            landed.append((table, entry.plan, result))
        else:
            failures[str(table), entry.plan.window] = result
            _log.warning("%s, window %s: %s: %s", table, entry.plan.window, result.error_type, result.message)
    return Tables(tuple(landed), failures)
