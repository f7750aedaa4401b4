"""A window's edges become recorded cuts, or an error that says why that is not possible now, or at all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_provider_streams.errors import NoCutNearby, WindowNotReady
from airflow_provider_streams.journal.evidence.recorded_cuts import RecordedCut
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan import PlanRequest, RecordedBounds
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.window import Window


@dataclass(frozen=True, slots=True)
class Edges:
    """The recorded cuts of a window's start and end, and how much later than these they were sampled."""

    start: RecordedCut
    end: RecordedCut
    skew_seconds: tuple[float, float]


def recorded_edges(journal: Journal, source: Source, window: Window, max_skew: timedelta) -> Edges:
    """`[cut(start), cut(end))`: everything acknowledged before an edge is before its cut.

    What was acknowledged between the edge and the end of the sampling (the skew) may be before it as well. Then it is
    in the earlier one of the two windows, and only there.

    Raises:
        WindowNotReady: nothing was recorded at or after the window's end.
        NoCutNearby: an edge was recorded later than `max_skew` after it, or its entry was pruned.
    """
    start = journal.cut_at(source.key, window.start)
    end = journal.cut_at(source.key, window.end)
    if start is not None:
        _check(source, window.start, start, max_skew)
    if start is None or end is None:
        raise WindowNotReady(source, window, _waiting(journal, source))
    _check(source, window.end, end, max_skew)
    skews = (start.skew(window.start).total_seconds(), end.skew(window.end).total_seconds())
    return Edges(start, end, skews)


def recorded_around(journal: Journal, request: PlanRequest) -> RecordedBounds | None:
    """The recorded cuts around a window of event time; None: there is none after it yet.

    All events of the window that are not late are between them: they were stored after the start's sampling, and
    before the end's.

    Raises:
        NoCutNearby: an entry at which a window ends was pruned.
    """
    key, stored = (request.whole or request.source).key, request.stored
    end = journal.cut_at(key, stored.end)
    since, until = (journal.cut_at(key, edge) for edge in (request.window.start, request.window.end))
    if since is None or until is None or end is None:
        return None
    start = journal.cut_before(key, stored.start)
    return RecordedBounds(
        None if start is None else start.cut,
        since.cut,
        until.cut,
        end.cut,
        () if start is None else start.incarnation,
        end.incarnation,
    )


def _check(source: Source, edge: datetime, found: RecordedCut, max_skew: timedelta) -> None:
    skew = found.skew(edge)
    if skew <= max_skew:
        return
    cause = "nothing was recorded before" if found.sequence == 1 else "no recorder ran in between"
    raise NoCutNearby(
        source,
        edge.isoformat(),
        f"the first one sampled at or after it ended at {found.sampled_to.isoformat()}, {skew} later, as {cause}; "
        f"max_skew is {max_skew}",
    )


def _waiting(journal: Journal, source: Source) -> str:
    last = journal.recorded_cuts(source.key, 1)
    if not last:
        return "no cut of it was ever recorded: run RecordCutsOperator for it, or `airflow streams cuts record` by hand"
    return (
        "no cut was recorded at or after its end; the last one is of "
        f"{last[0].sampled_from.isoformat()}, by {last[0].recorder!r}"
    )
