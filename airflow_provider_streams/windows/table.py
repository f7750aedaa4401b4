"""What a reader's table holds of the windows that the journal has as covered. Looks, and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_streams.errors import ForeignTable, InvalidRequest, SinkError
from airflow_provider_streams.model.coverage import Coverage, WindowState
from airflow_provider_streams.model.grid import Grid, parse_grid
from airflow_provider_streams.model.landing import ROWS_GONE, TableMark, TableState, TableTerms

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import KeptLanding
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.sink import Sink
    from airflow_provider_streams.model.window import Window

Standing = Literal["ours", "earlier", "absent", "foreign", "unseen"]


@dataclass(frozen=True, slots=True)
class TableView:
    """A reader's table, seen from here."""

    target: str
    standing: Standing
    """`ours`: the reader's; `earlier`: it holds what the reader landed before it began anew; `absent`: not there;
    `foreign`: it holds data of somebody else, or of nobody that it names; `unseen`: nobody can tell from here."""
    cause: str = ""
    gone: tuple[Window, ...] = ()
    """Windows of the span that the journal has as covered, and that it does not hold."""

    def __str__(self) -> str:
        said = f"table {self.target}"
        if self.cause:
            said += f": {self.cause}"
        if self.gone:
            first = ", ".join(map(str, self.gone[:3])) + (", .." if len(self.gone) > 3 else "")  # noqa: PLR2004
            said += f"\n   it no longer holds {len(self.gone)} windows that were covered: {first}"
        return said

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "target": self.target,
            "standing": self.standing,
            "cause": self.cause,
            "gone": [window.to_json() for window in self.gone],
        }


def compare(journal: Journal, source_key: str, reader: str, coverage: Coverage) -> tuple[Coverage, TableView | None]:
    """The coverage as the table bears it out: what it does not hold is not covered; and what was seen of the table.

    A table that cannot be looked at from here changes nothing. None: the reader has no table.
    """
    from airflow_provider_streams.spark.sinks import sink_from_json  # noqa: PLC0415 - where a table is

    kept = journal.landing(source_key, reader)
    if kept is None or kept.target is None or kept.landing is None:
        return coverage, None
    mark = TableMark(kept.table_id, source_key, reader)
    try:
        sink = sink_from_json(kept.landing["sink"])
        earlier = () if journal.last_covered(source_key, reader) else kept.earlier
        standing, state = _standing(sink, TableTerms(mark, earlier=earlier))
        cause = _CAUSES[standing]
    except ForeignTable as error:
        standing, state, cause = "foreign", TableState(mark, frozenset()), str(error).removeprefix(f"{error.target}: ")
    except (SinkError, InvalidRequest) as error:
        return coverage, TableView(kept.target, "unseen", f"it cannot be looked at from here: {error}")
    gone = () if state is None else coverage.missed_by(state.windows, tells_empty=state.tells_empty)
    # of no table of ours nothing is covered, also not what a chain read with a window behind this span
    lost = gone if standing in ("ours", "unseen") else [item.window for item in coverage.select("covered")]
    return coverage.without(lost, ROWS_GONE), TableView(kept.target, standing, cause, gone)


def foresee(
    journal: Journal,
    source_key: str,
    reader: str,
    span: Window,
    *,
    landing: KeptLanding | None,
    grid: Grid | None = None,
) -> Coverage:
    """What the journal would know of a span if a run began now; see `Journal.coverage`.

    Args:
        journal: knows windows and the reader's table.
        source_key: the source.
        reader: whose windows.
        span: from when to when.
        landing: what would be landed, see `windows.landing.check`; None: what the journal knows is all.
        grid: how blank time is shown.
    """
    found = journal.coverage(source_key, reader, span.start, span.end, grid, landing=landing)
    if landing is None:
        return found
    seen, _ = compare(journal, source_key, reader, found)
    return _without_off_grid(found, seen, landing, grid)


def _without_off_grid(found: Coverage, seen: Coverage, landing: KeptLanding, grid: Grid | None) -> Coverage:
    """Without windows that the table lost and the reader's grid has not: the cells there are missing instead."""
    if landing.grid is None:
        return seen
    tiles = parse_grid(landing.grid)
    lost = {item.window for item in found.select("covered")} - {item.window for item in seen.select("covered")}
    off = {window for window in lost if not tiles.is_cell(window)}
    if not off:
        return seen
    known = [one for one in seen.windows if one.window not in off and one != WindowState(one.window, "missing")]
    return Coverage.of(known, seen.span.start, seen.span.end, grid)


_CAUSES: dict[Standing, str] = {
    "ours": "",
    "earlier": "it holds what was landed before reland=True; the first window that lands sets that aside",
    "absent": "it is not there, or is empty and nobody's; the next run or backfill makes it the reader's",
    "foreign": "it is another reader's, or was made under another journal; nothing lands there",
    "unseen": "it cannot be looked at from here",
}


def _standing(sink: Sink, terms: TableTerms) -> tuple[Standing, TableState | None]:
    """How it stands, and what it says of itself as a table of ours; None: nobody can tell."""
    from airflow_provider_streams.spark.sinks import can_look, table_state  # noqa: PLC0415 - where a table is

    if not can_look(sink):
        return "unseen", None
    state = table_state(sink)
    if state is None:
        return "absent", TableState(terms.mark, frozenset())
    if state.mark != terms.mark:
        return "earlier" if terms.gives_way(state.mark) else "foreign", TableState(terms.mark, frozenset())
    return "ours", state
