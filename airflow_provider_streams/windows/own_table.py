"""Whether a reader's table is its own, there, and what the journal knows of it, before windows land."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_streams.errors import ForeignTable, InvalidRequest, SinkError
from airflow_provider_streams.model.landing import ROWS_GONE, TableMark, TableState, TableTerms
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.windows.ask import Ask, check_won, new_like

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import KeptLanding
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.windows.acts import Acts

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entered:
    """A reader may land, and under which landing."""

    landing_id: int | None
    """None: what is read is proven only, and the reader's table stays as it is."""
    terms: TableTerms | None
    """Whose table it must be; None: there is none."""
    payloads: Mapping[str, Any] | None = None
    """What values and keys the reader lands from now on, once a window landed so; None: as before."""


def own_table(ask: Ask) -> TableState | Literal["unseen"] | None:
    """The table, which is not somebody else's for good: looked at before the reader's landing changes.

    Returns:
        What it says of itself; None: there is none; `unseen`: it cannot be looked at from here.

    Raises:
        ForeignTable: it is; also `reland=True` does not change that.
    """
    from airflow_provider_streams.spark.sinks import can_look, table_state  # noqa: PLC0415 - where a table is

    sink = ask.landing.sink
    try:
        if sink is None or not can_look(sink):
            return "unseen"
        state = table_state(sink)
    except ForeignTable:
        raise
    except (SinkError, InvalidRequest):
        return "unseen"  # who lands there says why
    check_mark(state, ask, TableTerms(no_mark(ask), set_aside=True))
    return state


def check_mark(found: TableState | Literal["unseen"] | None, ask: Ask, terms: TableTerms) -> None:
    """See that a table which is there may be, or become, these terms', as its writer will.

    Raises:
        ForeignTable: it may not.
    """
    from airflow_provider_streams.lake.owner import check_owner  # noqa: PLC0415 - where a table is

    if found is not None and found != "unseen":
        check_owner(str(ask.landing.sink), found.mark, terms, "another place")


def mark_of(kept: KeptLanding, ask: Ask) -> TableMark:
    """Of the table of a reader's landing."""
    return TableMark(kept.table_id, ask.source.key, ask.reader)


def no_mark(ask: Ask) -> TableMark:
    """Of a table that the reader has not begun."""
    return TableMark("none yet", ask.source.key, ask.reader)


def may_hold_rows(kept: KeptLanding, ask: Ask) -> bool:
    """Whether the asked table has rows of this reader that the journal may not know: their task died after landing."""
    from airflow_provider_streams.spark.sinks import can_look, table_state  # noqa: PLC0415 - where a table is

    sink = ask.landing.sink
    is_kept = bool(ask.landing.to_json()["target"] == kept.target)
    if sink is None or not can_look(sink):
        return sink is not None and is_kept
    try:
        state = table_state(sink)
    except ForeignTable:
        return False
    except SinkError:
        return is_kept
    return state is not None and state.mark == mark_of(kept, ask) and bool(state.windows)


def is_gone(
    journal: Journal, kept: KeptLanding, ask: Ask, acts: Acts, standing: TableState | Literal["unseen"] | None
) -> bool:
    """Whether a reader's table is no more, so that it is landed anew: as `with_table`, for who only looks.

    Raises:
        ForeignTable: it is not that of the reader's landing.
    """
    mark = mark_of(kept, ask)
    if journal.last_covered(ask.source.key, ask.reader) is None:
        check_mark(standing, ask, TableTerms(mark, set_aside=acts.reland, earlier=kept.earlier))
        return False
    if standing is None or standing == "unseen":
        return standing is None
    if standing.mark != mark and not acts.reland:
        raise _other_table(kept)
    return False


def with_table(journal: Journal, kept: KeptLanding, ask: Ask, terms: TableTerms, windows: Sequence[Window]) -> Entered:
    """What the journal knows of the table, compared with the table."""
    from airflow_provider_streams.spark.sinks import can_look, table_state  # noqa: PLC0415 - where a table is

    sink = ask.landing.sink
    # the first window makes the table, and its writer looks whose it is
    if journal.last_covered(ask.source.key, ask.reader) is None:
        return Entered(kept.id, _that_now(journal, kept, ask, replace(terms, earlier=kept.earlier)))
    if sink is None or not can_look(sink):
        return Entered(kept.id, terms)
    state = table_state(sink)
    if state is None:
        return _without_table(journal, kept, ask, terms, windows)
    if state.mark != terms.mark:
        if not terms.set_aside:
            raise _other_table(kept)
        check_mark(state, ask, terms)  # our own of before may be set aside
        entered = Entered(kept.id, _that_now(journal, kept, ask, terms))
        state = TableState(terms.mark, frozenset())
        if windows:
            forget_removed(journal, ask, kept, state, Window(windows[0].start, windows[-1].end))
        return entered
    if windows:
        span = Window(windows[0].start, windows[-1].end)
        forget_removed(journal, ask, kept, state, span)
    # a newer landing may take its place while this one is read: that is not to be set aside
    return Entered(kept.id, replace(terms, set_aside=False))


def _that_now(journal: Journal, kept: KeptLanding, ask: Ask, terms: TableTerms) -> TableTerms:
    """With `reland`, what is in the table now may be set aside; not what a newer landing may put there meanwhile.

    Raises:
        ForeignTable: a newer landing has begun.
        SinkError: the table cannot be looked at.
    """
    from airflow_provider_streams.spark.sinks import can_look, table_state  # noqa: PLC0415 - where a table is

    sink = ask.landing.sink
    if not terms.set_aside or sink is None or not can_look(sink):
        return terms
    state = table_state(sink)
    now = journal.landing(ask.source.key, ask.reader)
    if now is not None and now.id != kept.id:
        raise ForeignTable(kept.target or "", "another run of its reader began to land all anew meanwhile")
    seen = () if state is None or state.mark.id in {terms.mark.id, *terms.earlier} else (state.mark.id,)
    return replace(terms, set_aside=False, earlier=(*terms.earlier, *seen))


def _without_table(
    journal: Journal, kept: KeptLanding, ask: Ask, terms: TableTerms, windows: Sequence[Window]
) -> Entered:
    _log.warning(
        "%s: the table %s is gone, so every window of reader %r is missing", ask.source, kept.target, ask.reader
    )
    anew = journal.land_as(ask.source.key, ask.reader, new_like(kept, ask), after=kept)
    check_won(anew, ask, windows)
    return Entered(anew.id, TableTerms(mark_of(anew, ask), None, terms.replace_overlaps))


def forget_removed(journal: Journal, ask: Ask, kept: KeptLanding, state: TableState, span: Window) -> None:
    """Windows that the journal has as covered, and that somebody took out of the table: they are missing again."""
    coverage = journal.coverage(ask.source.key, ask.reader, span.start, span.end)
    gone = coverage.missed_by(state.windows, tells_empty=state.tells_empty)
    if gone:
        _log.warning(
            "%s: %d windows are no longer in %s: they are to be read again", ask.source, len(gone), kept.target
        )
        journal.uncover(ask.source.key, ask.reader, kept.id, gone, ROWS_GONE)


def _other_table(kept: KeptLanding) -> ForeignTable:
    cause = "it is another reader's by now, was made under another journal, or was put back from a copy"
    return ForeignTable(kept.target or "", cause)
