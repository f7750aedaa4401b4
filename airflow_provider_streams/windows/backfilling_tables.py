"""Fill what is missing of a span of many topics or streams, each in its own table, many windows in one job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest, InvalidWindow, StreamsError
from airflow_provider_streams.model.backfill import Limits, PlannedWindow, Preview
from airflow_provider_streams.model.grid import Grid
from airflow_provider_streams.model.landing import Landing
from airflow_provider_streams.model.packing import packed
from airflow_provider_streams.model.plan_table import bytes_text
from airflow_provider_streams.model.table_list import MOST_NAMED
from airflow_provider_streams.windows.backfilling import Backfill, Backfiller, asked_grid
from airflow_provider_streams.windows.expansion import Expansion, expand, is_new, vanished
from airflow_provider_streams.windows.fan_out import Preparing, Tables, failed, land_jobs
from airflow_provider_streams.windows.kept_landing import grid_of
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.reading import recorded_planning
from airflow_provider_streams.windows.sightings import look

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.placeholders import SourceTable
    from airflow_provider_streams.model.sink import Sink
    from airflow_provider_streams.model.source import Source
    from airflow_provider_streams.model.window import Window
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.windows.reading import Entry, RunIds
    from airflow_provider_streams.windows.workplace import Workplace

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TablePreview:
    """What a backfill would read of one topic or stream."""

    table: SourceTable
    backfiller: Backfiller
    preview: Preview


@dataclass(frozen=True, slots=True)
class TablesPreview:
    """What a backfill would read of all of them."""

    each: tuple[TablePreview, ...]
    limits: Limits

    @property
    def windows(self) -> int:
        """How many windows will be read."""
        return sum(len(one.preview.readable) for one in self.each)

    @property
    def bytes(self) -> int:
        """Stored bytes to read."""
        return sum(one.preview.bytes for one in self.each)

    def to_json(self) -> dict[str, Any]:
        """Sums, as plain JSON values."""
        return {
            "tables": len(self.each),
            "windows": self.windows,
            "bytes": self.bytes,
            "jobs": len(self.jobs),
            "not_ready": sum(len(one.preview.having("not ready")) for one in self.each),
            "beyond_horizon": sum(len(one.preview.having("lost", "part lost")) for one in self.each),
        }

    def as_text(self) -> str:
        """The largest tables, and their sums."""
        some = sorted((one for one in self.each if one.preview.windows), key=lambda one: -one.preview.bytes)
        lines = [
            f" {one.table}: {len(one.preview.readable):,} windows, {bytes_text(one.preview.bytes)}"
            for one in some[:MOST_NAMED]
        ]
        if len(some) > MOST_NAMED:
            lines.append(f" .. and {len(some) - MOST_NAMED:,} smaller ones")
        told = self.to_json()
        lines.append(
            f" total {told['windows']:,} windows of {len(self.each):,} tables, {bytes_text(self.bytes)}, "
            f"{told['jobs']:,} Spark jobs; {told['not_ready']:,} windows are not ready yet, "
            f"{told['beyond_horizon']:,} beyond the horizon"
        )
        return "\n".join(lines)

    @property
    def jobs(self) -> tuple[list[tuple[TablePreview, PlannedWindow]], ...]:
        """The Spark jobs, in order of time; each may read windows of many topics or streams."""
        items = [(one, item) for one in self.each for item in one.preview.readable]
        items.sort(key=lambda found: found[1].window)
        return tuple(packed(items, lambda found: found[1].bytes, self.limits.max_bytes, self.limits.max_windows))


def grid_of_tables(
    journal: Journal, expansion: Expansion, reader: str, length: timedelta | str | None, span: Window
) -> Grid:
    """How the windows of all tile time: as it is said, else as those of any that was landed do.

    Raises:
        InvalidWindow: it is not said, and nothing was read yet that could tell; or see `asked_grid`.
    """
    known = (grid_of(journal, one.source.key, reader) for one in expansion.tables)
    grid = next((one for one in known if one is not None), None)
    if length is not None:
        return asked_grid(length, span, grid)
    if grid is None:
        raise InvalidWindow(
            f"reader {reader!r} has landed nothing of these topics or streams yet: say how long its windows are, with "
            "window_length=timedelta(..) or a text like '1h' or '1d Europe/Berlin'"
        )
    return grid


class TablesBackfiller:
    """Runs one backfill.

    Args:
        place: where.
        source: as a whole.
        sink: with placeholders.
        ids: who does it.
    """

    def __init__(self, place: Workplace, source: Source, sink: Sink, ids: RunIds) -> None:
        self._place, self._source, self._sink, self._ids = place, source, sink, ids

    def expand(self) -> Expansion:
        """The topics or streams of the source now.

        Raises:
            SourceNotFound: there is none.
            AccessError, SystemUnavailable: the system refuses or does not answer.
        """
        with closing(self._place.stream.system()) as system:
            expansion = expand(system, self._source, self._sink)
            look(self._place.journal, system, self._source, again=is_new(self._place.journal, self._source, expansion))
        return expansion

    def preview(self, expansion: Expansion, how: Backfill, *, pin: bool) -> tuple[TablesPreview, Tables]:
        """Choose and plan the windows of each; and what cannot be read.

        Args:
            expansion: which they are.
            how: the backfill of the whole; each has its own table, and else the same.
            pin: whether they will be read.

        Raises:
            InvalidRequest: late rows are to be read.
            AuthenticationFailed, CertificateNotTrusted, JournalError: it concerns all.
        """
        if how.lookback is not None:
            raise InvalidRequest(
                "late rows are looked for in one topic or stream at a time: leave out lookback, or name one, and its "
                "table"
            )

        def preview_one(system: StreamSystem, table: SourceTable) -> TablePreview:
            landing = Landing(table.sink, how.landing.transform, how.landing.columns)
            backfill = replace(how, source=table.source, landing=landing, whole=self._source)
            backfiller = Backfiller(self._place, backfill, self._ids)
            return TablePreview(table, backfiller, backfiller.preview(pin=pin, system=system))

        found = Preparing(self._place).each(expansion.tables, preview_one)
        outcome = Tables()
        for meeting in expansion.meetings:
            outcome = outcome.and_then(failed(meeting.table, how.span, meeting.error()))
        outcome = outcome.and_then(self._gone(expansion, how, pin=pin))
        for table, one in zip(expansion.tables, found, strict=True):
            unread = failed(table, how.span, one) if isinstance(one, StreamsError) else _unread(one)
            outcome = outcome.and_then(unread)
        previews = tuple(one for one in found if isinstance(one, TablePreview))
        return TablesPreview(previews, how.limits), outcome

    def _gone(self, expansion: Expansion, how: Backfill, *, pin: bool) -> Tables:
        """What is told of windows of topics or streams that are no longer there; recorded, if they would be read."""
        outcome = Tables()
        for window in how.grid.cells(how.span.start, how.span.end):
            question = WindowQuestion(self._source, window, how.basis)
            for one in vanished(self._place.journal, question, self._sink, expansion):
                if self._is_chosen(one.table, window, how):
                    outcome = outcome.and_then(self._lost(one.table, one.error(question), how, window, pin=pin))
        return outcome

    def _is_chosen(self, table: SourceTable, window: Window, how: Backfill) -> bool:
        known = self._place.journal.coverage(table.source.key, how.reader, window.start, window.end, how.grid)
        return not all(item.state == "covered" for item in known.windows) and bool(how.selection.of(known, window))

    def _lost(self, table: SourceTable, problem: StreamsError, how: Backfill, window: Window, *, pin: bool) -> Tables:
        if how.selection.accepts_loss:
            _log.warning("%s", problem)
            return Tables()
        read = replace(how, source=table.source, whole=self._source).read_of(window)
        with suppress(StreamsError), recorded_planning(self._place.journal, read, self._ids) if pin else nullcontext():
            raise problem
        return failed(table, window, problem)

    def run(self, preview: TablesPreview, done: Callable[[int, Tables], None], before: Tables | None = None) -> Tables:
        """Read what was planned and pinned, job by job, each window recorded as soon as its job has ended.

        Args:
            preview: what was planned.
            done: see `land_tables`.
            before: see `land_tables`.

        Raises:
            StreamsError: what concerns all alike. Jobs that ended before stay landed.
        """
        return land_jobs(self._place, (list(_entries(job)) for job in preview.jobs), done, before)


def _entries(job: Sequence[tuple[TablePreview, PlannedWindow]]) -> Iterator[tuple[SourceTable, Entry]]:
    for one, item in job:
        entry = one.backfiller.entry(item)
        if entry is not None:
            yield one.table, entry


def _unread(one: TablePreview) -> Tables:
    """Its windows that cannot be planned."""
    from airflow_provider_streams.spark.batch_spec import WindowFailure  # noqa: PLC0415 - Spark's side when used

    return Tables(
        failures={
            (str(one.table), item.window): WindowFailure(
                item.error_type, item.cause, item.verdict == "lost", item.retryable
            )
            for item in one.preview.having("lost", "failed")
        }
    )
