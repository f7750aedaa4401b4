"""Windows of database changes whose rows have columns that their plans lack are pinned with these, and read again.

A plan knows the columns of a few messages. Where a reader meets another one, its window fails before it lands anything,
so each row is landed once, with all columns.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import StreamsError, UnplannedColumns
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.systems.change_sampling import MOST_ROUNDS, plan_with_columns
from airflow_provider_streams.windows.run.job_landing import PinnedWindow, land_together

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.spark.job.outcomes import WindowFailure, WindowResult
    from airflow_provider_streams.windows.run.window_context import WindowContext

_log = logging.getLogger(__name__)


def land_unplanned(
    window_context: WindowContext,
    entries: Sequence[PinnedWindow],
    results: Sequence[WindowResult],
    *,
    fans_out: bool = False,
) -> list[tuple[PinnedWindow, WindowResult]]:
    """Land those windows again that have unplanned columns, with these.

    Args:
        window_context: journal, stream and Spark.
        entries: the windows.
        results: what `land_together` made of each.
        fans_out: see `JobSpec`.

    Returns:
        Each window as it was read last, and what became of it, in order.

    Raises:
        StreamsError: as `land_together`.
    """
    read, results = list(entries), list(results)
    for _ in range(MOST_ROUNDS):
        met = {number: error for number, result in enumerate(results) if (error := _unplanned(result)) is not None}
        again: list[int] = []
        for number, error in met.items():
            alike = [met[other].columns for other in met if _reader(read[other]) == _reader(read[number])]
            wider = _wider(window_context.journal, read[number], [error.columns, *alike])
            if isinstance(wider, PinnedWindow):
                read[number] = wider
                again.append(number)
            elif wider is not None:
                results[number] = wider
        if not again:
            break
        found = land_together(window_context, [read[number] for number in again], fans_out=fans_out)
        for number, result in zip(again, found, strict=True):
            results[number] = result
    return list(zip(read, results, strict=True))


def _reader(entry: PinnedWindow) -> tuple[str, str]:
    return entry.source_key, entry.read.reader


def _unplanned(result: WindowResult) -> UnplannedColumns | None:
    error = None if isinstance(result, Landed) or result.error_type != UnplannedColumns.__name__ else result.exception
    return error if isinstance(error, UnplannedColumns) else None


def _wider(journal: Journal, entry: PinnedWindow, columns: Sequence[str]) -> PinnedWindow | WindowFailure | None:
    """The window, pinned with more columns; why it cannot be; or None: it has them.

    Windows of one reader have one table. So a window also gets the columns that were met in the others.
    """
    from airflow_provider_streams.spark.job.outcomes import WindowFailure  # noqa: PLC0415 - Spark's side when used

    try:
        plan = entry.plan
        for one in columns:
            plan = plan_with_columns(plan, parse_columns(one))
        if plan == entry.plan:
            return None
        if last := journal.last_changes(*_reader(entry)):
            plan = plan_with_columns(plan, last.row)
        plan = journal.decode_pinned(entry.source_key, plan)
    except StreamsError as problem:
        return WindowFailure.of(problem)
    _log.info("%s, window %s is read again, with more columns: %s", entry.read, plan.window, ", ".join(columns))
    return replace(entry, plan=plan)
