"""Windows that are planned and pinned, of one source or several, read in one job; each is recorded on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import FewerRows, InvalidRequest
from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.windows.reading import Entry, job_spec, noting_on, recordable
from airflow_provider_streams.windows.workplace import Workplace

if TYPE_CHECKING:
    from airflow_provider_streams.journal.runs import Started
    from airflow_provider_streams.spark.batch_spec import WindowFailure, WindowResult
    from airflow_provider_streams.spark.spec import JobSpec


def land_together(place: Workplace, entries: Sequence[Entry], *, fans_out: bool = False) -> list[WindowResult]:
    """Begin a run of each window, read all in one job, and record what became of each, in order.

    A window that may not begin, as others share time with it or its plan holds less, does not hold up the rest.

    Args:
        place: where.
        entries: the windows.
        fans_out: see `ChunkSpec`.

    Raises:
        StreamsError: what concerns all windows alike; recorded for each.
    """
    begun: dict[int, Started] = {}
    results: dict[int, WindowResult] = {}
    try:
        for number, entry in enumerate(entries):
            try:
                begun[number] = entry.begin.run(place.journal, entry.source_key, entry.plan)
            except (InvalidRequest, FewerRows) as error:
                results[number] = _failure(error)
        specs = [job_spec(place, entries[number], started) for number, started in begun.items()]
        read = _read(place, specs, fans_out=fans_out)
    except BaseException as error:
        with noting_on(error):
            for started in begun.values():
                place.journal.fail_run(started.run, type(error).__name__, recordable(error))
        raise
    for (number, started), result in zip(begun.items(), read, strict=True):
        _record(place, entries[number], started, result)
        results[number] = result
    return [results[number] for number in range(len(entries))]


def _failure(error: InvalidRequest | FewerRows) -> WindowFailure:
    from airflow_provider_streams.spark.batch_spec import WindowFailure  # noqa: PLC0415 - Spark's side when used

    return WindowFailure.of(error)


def _read(place: Workplace, specs: Sequence[JobSpec], *, fans_out: bool) -> list[WindowResult]:
    """Read them; all are of one connection, and so are their tables."""
    from airflow_provider_streams.spark.batch_spec import ChunkSpec  # noqa: PLC0415 - Spark's side when used
    from airflow_provider_streams.spark.sinks import connection_properties  # noqa: PLC0415

    if not specs:
        return []
    table, options = connection_properties(specs[0].sink), place.stream.options()
    chunk = ChunkSpec(tuple(replace(spec, table=table, options=options) for spec in specs), fans_out)
    results: list[WindowResult] = place.spark(chunk)
    return results


def _record(place: Workplace, entry: Entry, started: Started, result: WindowResult) -> None:
    if isinstance(result, Landed):
        entry.begin.finish(place.journal, entry.source_key, entry.plan, started.run, result)
        place.figures.covered(entry.source_key, entry.plan, result.receipt)
    else:
        place.journal.fail_run(started.run, result.error_type, result.message, lost=result.lost)
