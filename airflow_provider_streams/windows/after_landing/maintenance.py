"""Maintains a reader's table: compacts covered windows that no run is landing, and deletes files that are not needed.

The journal must know a table by the mark in it, at the same place. So neither a copy of a table, nor one that was
landed under another journal, is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import InvalidRequest, RowsDiffer, TableOwnedByOther
from airflow_provider_streams.lake.compaction import Compacted, compact
from airflow_provider_streams.lake.registry import check_compaction, check_expiry, table_state, writer_of
from airflow_provider_streams.model.sinks.landing import TableState
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.window.window import Window

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.lake.snapshot_expiry import Expired

LONGEST_RUN = timedelta(days=7)
"""A run that has been running for longer was killed, and never run again."""

_CLOCKS_APART = timedelta(minutes=10)
"""How far the clocks of store, journal and this machine may differ."""


def compact_table(
    journal: Journal,
    sink: Sink,
    file_bytes: int,
    *,
    dry_run: bool = False,
    on_progress: Callable[[Compacted, int], None] = lambda _done, _of: None,
) -> Compacted:
    """Rewrite the small files of covered windows; see `lake.compaction.compact`.

    Raises:
        InvalidRequest: there is no table, or one that is not compacted.
        TableOwnedByOther: it is not one of this journal's.
        RowsDiffer: windows do not hold what they should; the others are compacted.
        SinkError: as `compact`.
    """
    state = owned_table(journal, sink)
    check_compaction(sink)
    table = writer_of(sink).compactable(sink, state.mark)
    busy = _busy(journal, state)
    covered = _covered(journal, state)
    free = {window: rows for window, rows in covered.items() if not any(window.overlaps(other) for other in busy)}
    done = compact(table, free, file_bytes, dry_run=dry_run, on_progress=on_progress)
    done.left |= dict.fromkeys(sorted(covered.keys() - free.keys()), "a run is landing it")
    if done.differing:
        first = "; ".join(f"window {window}: {why}" for window, why in sorted(done.differing.items())[:3])
        raise RowsDiffer(
            sink.asset_uri,
            f"windows that do not hold what they should stay as they are: {first}. "
            f"Of the others, {len(done.windows)} are done. Did another program change the table? Clear the task that "
            "reads such a window to repair it",
        )
    return done


def expire_table(journal: Journal, sink: Sink, keep: timedelta, *, dry_run: bool = False) -> tuple[datetime, Expired]:
    """Delete what was replaced, or left over, before a time; see `lake.snapshot_expiry`.

    What a run that has not ended may need is kept.

    Returns:
        That time, and what was deleted.

    Raises:
        InvalidRequest: there is no table; or so little is kept that readers may need what is deleted.
        TableOwnedByOther: the table is not one of this journal's.
        SinkError: it cannot be read.
    """
    check_expiry(sink, keep)
    state = owned_table(journal, sink)
    begun = [since - _CLOCKS_APART for since in _busy(journal, state).values()]
    before = min([datetime.now(UTC) - keep, *begun])
    return before, writer_of(sink).expire(sink, state.mark, before, dry_run=dry_run)


def owned_table(journal: Journal, sink: Sink) -> TableState:
    """The state of a table of one of this journal's readers.

    Raises:
        InvalidRequest: there is none, or its kind cannot tell.
        TableOwnedByOther: it has no owner, or another one, or was copied from elsewhere.
        SinkError: it cannot be read.
    """
    state = table_state(sink)
    if state == "unseen":
        raise InvalidRequest(f"{sink.asset_uri}: a table of kind {sink.kind!r} does not say what it holds")
    if state is None:
        raise InvalidRequest(f"{sink.asset_uri} is no table of any reader: nothing was landed there yet")
    kept = journal.landing(state.mark.source, state.mark.reader)
    if kept is None or kept.table_id != state.mark.id or kept.target != sink.asset_uri:
        where = "no table of it" if kept is None else kept.target or "no table"
        raise TableOwnedByOther(
            sink.asset_uri,
            f"it says that it belongs to {state.mark}, and the journal here knows {where}: it was landed under another "
            "journal or before full_refresh=True, set aside, or copied. Nothing was changed",
        )
    return state


def _covered(journal: Journal, state: TableState) -> Mapping[Window, int | None]:
    """The covered windows of a table, and how many rows each has; None: they were not counted."""
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
