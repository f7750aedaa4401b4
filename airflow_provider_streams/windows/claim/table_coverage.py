"""Which covered windows a reader's table holds. Nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from airflow_provider_streams.errors import InvalidRequest, SinkError, TableOwnedByOther
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.lake.registry import sink_from_json, table_state
from airflow_provider_streams.model.sinks.landing import ROWS_GONE, TableMark, TableState, TableTerms
from airflow_provider_streams.model.window.coverage import Coverage, WindowState
from airflow_provider_streams.model.window.window import utc_text
from airflow_provider_streams.model.window.window_schedule import WindowSchedule, parse_schedule

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import StoredLanding
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.sinks.sink import Sink
    from airflow_provider_streams.model.window.window import Window

TableStatus = Literal["ours", "earlier", "absent", "foreign", "unseen"]


@dataclass(frozen=True, slots=True)
class TableView:
    """The state of a reader's table, as far as it can be read from here."""

    target: str
    status: TableStatus
    """`ours`: the reader's; `earlier`: it holds an earlier landing of the reader; `absent`: it does not exist;
    `foreign`: it holds data of another or an unknown owner; `unseen`: it cannot be read from here."""
    cause: str = ""
    gone: tuple[Window, ...] = ()
    """Covered windows of the span that it does not hold."""
    changes: str = ""
    """Which changes of the span it reflects; empty: they are its rows."""

    def __str__(self) -> str:
        said = f"table {self.target}"
        if self.cause:
            said += f": {self.cause}"
        if self.changes:
            said += f"\n   {self.changes}"
        if self.gone:
            first = ", ".join(map(str, self.gone[:3])) + (", .." if len(self.gone) > 3 else "")  # noqa: PLR2004
            said += f"\n   {counted(len(self.gone), 'covered window')} no longer in it: {first}"
        return said

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "target": self.target,
            "status": self.status,
            "cause": self.cause,
            "gone": [window.to_json() for window in self.gone],
            "changes": self.changes,
        }


def compare(journal: Journal, source_key: str, reader: str, coverage: Coverage) -> tuple[Coverage, TableView | None]:
    """The coverage without the windows that the table lost, and the state of the table.

    A table that cannot be read from here changes nothing. None: the reader has no table.
    """
    kept = journal.landing(source_key, reader)
    if kept is None or kept.target is None:
        return coverage, None
    mark = TableMark(kept.table_id, source_key, reader)
    try:
        sink = sink_from_json(kept.landing["sink"])
        earlier = () if journal.last_covered(source_key, reader) else kept.earlier
        status, state = _status(sink, TableTerms(mark, earlier=earlier))
        cause = _CAUSES[status]
    except TableOwnedByOther as error:
        status, state, cause = "foreign", TableState(mark, frozenset()), str(error).removeprefix(f"{error.target}: ")
    except (SinkError, InvalidRequest) as error:
        return coverage, TableView(kept.target, "unseen", f"it cannot be looked at from here: {error}")
    gone = () if state is None else coverage.missed_by(state.windows, tells_empty=state.tells_empty)
    # without the reader's table nothing is covered, not even what a chain read with a window after this span
    lost = gone if status in ("ours", "unseen") else [item.window for item in coverage.select("covered")]
    seen = coverage.without(lost, ROWS_GONE)
    changes = reflected(seen) if sink.apply is not None else ""
    return seen, TableView(kept.target, status, cause, gone, changes)


def reflected(coverage: Coverage) -> str:
    """Which changes of a span a table reflects to which covered windows were applied, in words. Pure."""
    covered = sorted(item.window for item in coverage.select("covered"))
    if not covered:
        return "it reflects no change of this span"
    holes, reached = [], covered[0].start
    for window in covered:
        if window.start > reached:
            holes.append(f"{utc_text(reached)} to {utc_text(window.start)}")
        reached = max(reached, window.end)
    first = f"it reflects all changes from {utc_text(covered[0].start)} to {utc_text(reached)}"
    more = ", .." if len(holes) > _SHOWN else ""
    return first + (f"; holes: {', '.join(holes[:_SHOWN])}{more}" if holes else "")


_SHOWN: Final = 5


def foresee(
    journal: Journal,
    source_key: str,
    reader: str,
    span: Window,
    *,
    landing: StoredLanding | None,
    window_schedule: WindowSchedule | None = None,
) -> Coverage:
    """The coverage of a span if a run began now; see `Journal.coverage`.

    Args:
        journal: knows windows and the reader's table.
        source_key: the source.
        reader: whose windows.
        span: from when to when.
        landing: what would be landed, see `windows.claim.claim.preview_claim`; None: the journal has the claimed one.
        window_schedule: how blank time is shown.
    """
    found = journal.coverage(source_key, reader, span.start, span.end, window_schedule, landing=landing)
    if landing is None:
        return found
    seen, _ = compare(journal, source_key, reader, found)
    return _without_misaligned(found, seen, landing, window_schedule)


def _without_misaligned(
    found: Coverage, seen: Coverage, landing: StoredLanding, window_schedule: WindowSchedule | None
) -> Coverage:
    """Without windows that the table lost and that the window schedule does not have: its cells are missing instead."""
    if landing.window_schedule is None:
        return seen
    tiles = parse_schedule(landing.window_schedule)
    lost = {item.window for item in found.select("covered")} - {item.window for item in seen.select("covered")}
    off = {window for window in lost if not tiles.is_cell(window)}
    if not off:
        return seen
    known = [one for one in seen.windows if one.window not in off and one != WindowState(one.window, "missing")]
    return Coverage.of(known, seen.span.start, seen.span.end, window_schedule)


_CAUSES: dict[TableStatus, str] = {
    "ours": "",
    "earlier": "it holds what was landed before full_refresh=True; the first window that lands sets that aside",
    "absent": "it does not exist, or is empty without an owner; the next run or backfill makes it the reader's",
    "foreign": "it is another reader's, or was made under another journal; nothing lands there",
    "unseen": "it cannot be looked at from here",
}


def _status(sink: Sink, terms: TableTerms) -> tuple[TableStatus, TableState | None]:
    """The table's status, and its state as the reader's table; None: it cannot be read."""
    state = table_state(sink)
    if state == "unseen":
        return "unseen", None
    if state is None:
        return "absent", TableState(terms.mark, frozenset())
    if state.mark != terms.mark:
        return "earlier" if terms.may_be_set_aside(state.mark) else "foreign", TableState(terms.mark, frozenset())
    return "ours", state
