"""Keep a reader's table in order: only what is covered and nobody lands now is rewritten, only what nobody needs goes.

Whose a table is, it says itself; the journal must know it by the same mark, and at the same place. So neither a copy of
a table, nor one that was landed under another journal, is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import ForeignTable, InvalidRequest, RowsDiffer
from airflow_provider_streams.lake.compaction import Compacted, compact
from airflow_provider_streams.lake.upkeep import check_expiry, compactable, expirable
from airflow_provider_streams.model.landing import TableState
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.window import Window

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.lake.expiry import Expired

LONGEST_RUN = timedelta(days=7)
"""What has been running for longer was killed, and nobody ran it again."""

_CLOCKS_APART = timedelta(minutes=10)
"""So far may the clocks of store, journal and this machine be."""


def compact_table(
    journal: Journal,
    sink: Sink,
    file_bytes: int,
    *,
    dry_run: bool = False,
    told: Callable[[Compacted, int], None] = lambda _done, _of: None,
) -> Compacted:
    """Rewrite the small files of covered windows; see `lake.compaction.compact`.

    Raises:
        InvalidRequest: there is no table, or one that is not compacted.
        ForeignTable: it is not one of this journal's.
        RowsDiffer: windows do not hold what they should; the others are compacted.
        SinkError: as `compact`.
    """
    state = owned_table(journal, sink)
    table = compactable(sink, state.mark)
    busy = _busy(journal, state)
    covered = _covered(journal, state)
    free = {window: rows for window, rows in covered.items() if not any(window.overlaps(other) for other in busy)}
    done = compact(table, free, file_bytes, dry_run=dry_run, told=told)
    done.left |= dict.fromkeys(sorted(covered.keys() - free.keys()), "a run is landing it")
    if done.differing:
        first = "; ".join(f"window {window}: {why}" for window, why in sorted(done.differing.items())[:3])
        raise RowsDiffer(
            sink.asset_uri,
            f"{len(done.differing)} windows do not hold what they should, and stay as they are: {first}. "
            f"{len(done.windows)} others are done. Did somebody else change the table? Clearing the task that reads "
            "such a window puts it right",
        )
    return done


def expire_table(journal: Journal, sink: Sink, keep: timedelta, *, dry_run: bool = False) -> tuple[datetime, Expired]:
    """Let go of what was replaced, or left over, so long ago; see `lake.expiry`. Runs that have not ended count, too.

    Returns:
        Up to which moment, and what went.

    Raises:
        InvalidRequest: there is no table; or so little is kept that somebody may need what goes.
        ForeignTable: the table is not one of this journal's.
        SinkError: it cannot be looked at.
    """
    check_expiry(sink, keep)
    state = owned_table(journal, sink)
    begun = [since - _CLOCKS_APART for since in _busy(journal, state).values()]
    before = min([datetime.now(UTC) - keep, *begun])
    return before, expirable(sink, state.mark).expire(before, dry_run=dry_run)


def owned_table(journal: Journal, sink: Sink) -> TableState:
    """What a table of one of this journal's readers says of itself.

    Raises:
        InvalidRequest: there is none, or its kind cannot tell.
        ForeignTable: it is nobody's, or no longer, or was copied from elsewhere.
        SinkError: it cannot be looked at.
    """
    from airflow_provider_streams.spark.sinks import can_look, table_state  # noqa: PLC0415 - where a table is

    if not can_look(sink):
        raise InvalidRequest(f"{sink.asset_uri}: a table of kind {sink.kind!r} does not say what it holds")
    state = table_state(sink)
    if state is None:
        raise InvalidRequest(f"{sink.asset_uri} is no table of any reader: nothing was landed there yet")
    kept = journal.landing(state.mark.source, state.mark.reader)
    if kept is None or kept.table_id != state.mark.id or kept.target != sink.asset_uri:
        where = "no table of it" if kept is None else kept.target or "no table"
        raise ForeignTable(
            sink.asset_uri,
            f"it says that it belongs to {state.mark}, and the journal here knows {where}: it was landed under another "
            "journal or before reland=True, set aside, or copied. Nothing was touched",
        )
    return state


def _covered(journal: Journal, state: TableState) -> Mapping[Window, int | None]:
    """The windows of a table that the journal has as covered, and how many rows each has; None: nobody counted."""
    if not state.windows:
        return {}
    span = (min(window.start for window in state.windows), max(window.end for window in state.windows))
    known = journal.coverage(state.mark.source, state.mark.reader, *span).select("covered")
    return {one.window: one.written for one in known if one.run is not None and one.window in state.windows}


def _busy(journal: Journal, state: TableState) -> Mapping[Window, datetime]:
    """The windows that runs are landing now, and since when."""
    known = journal.running(state.mark.source, state.mark.reader)
    oldest = datetime.now(UTC) - LONGEST_RUN
    return {window: since for window, since in known.items() if since > oldest}
