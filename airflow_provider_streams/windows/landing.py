"""Whether a reader may land what it is asked to, where, and on which grid."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import InvalidRequest, WindowsOverlap
from airflow_provider_streams.model.landing import TableTerms
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.ask import (
    Ask,
    asked_payloads,
    check_won,
    decoded_as_asked,
    mismatch,
    new_landing,
    new_like,
    off_grid,
    other_basis,
    other_landing,
)
from airflow_provider_streams.windows.fitting import Fitting
from airflow_provider_streams.windows.own_table import (
    Entered,
    check_mark,
    is_gone,
    mark_of,
    may_hold_rows,
    no_mark,
    own_table,
    with_table,
)
from airflow_provider_streams.windows.table import foresee

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import KeptLanding
    from airflow_provider_streams.journal.store import Journal

_log = logging.getLogger(__name__)


def enter(
    journal: Journal,
    ask: Ask,
    windows: Sequence[Window],
    acts: Acts,
    before_anew: Callable[[], None] = lambda: None,
) -> Entered:
    """Make what is asked the reader's landing, or see that it is; and that its table still holds what we know of.

    Args:
        journal: keeps landings.
        ask: what the reader is to land.
        windows: those to come, in order of time.
        acts: `reland` allows another landing, grid or basis.
        before_anew: called before the reader lands that from then on; raises where it cannot. See `fitting.check_room`.

    Raises:
        LandingMismatch: the reader lands something else, and something was landed.
        OffGrid: a window is no cell of the reader's grid.
        ForeignTable, SinkError: the table is somebody else's, or cannot be looked at.
        StreamsError: as `before_anew`.
    """
    kept = journal.landing(ask.source.key, ask.reader)
    if _proves_only(kept, ask):
        return Entered(None, None)
    asked = kept if kept is None or not acts.replan else decoded_as_asked(kept, ask)
    problem = None if asked is None else mismatch(asked, ask, windows)
    if kept is not None and problem is not None and not acts.reland:
        kept, problem = _corrected(journal, kept, ask, problem), None
    if problem is not None:
        own_table(ask)
        before_anew()
    kept = _landing(journal, kept, ask, anew=problem is not None)
    check_won(decoded_as_asked(kept, ask) if acts.replan else kept, ask, windows)
    if ask.landing.sink is None:
        return Entered(kept.id, None)
    terms = TableTerms(
        mark_of(kept, ask), kept.columns, replace_overlaps=acts.overlap == "replace", set_aside=acts.reland
    )
    entered = with_table(journal, kept, ask, terms, windows)
    is_other = kept.landing is not None and decoded_as_asked(kept, ask) != kept
    return replace(entered, payloads=asked_payloads(ask)) if is_other else entered


def check(
    journal: Journal, ask: Ask, windows: Sequence[Window], acts: Acts, before_anew: Callable[[], None]
) -> KeptLanding | None:
    """As `enter`, for who only looks: nothing is changed, and without a sink only basis and grid count.

    Returns:
        What would be the reader's landing; None: it has none yet, or the read is only proven.

    Raises:
        LandingMismatch, OffGrid: as `enter`.
        ForeignTable: the table is another reader's, or holds data and nobody knows whose.
        StreamsError: as `before_anew`.
    """
    kept = journal.landing(ask.source.key, ask.reader)
    standing = own_table(ask)
    if kept is None:
        check_mark(standing, ask, TableTerms(no_mark(ask), set_aside=acts.reland))
        return None
    proves_only = _proves_only(kept, ask)
    asked = decoded_as_asked(kept, ask) if acts.replan else kept
    of_table = None if proves_only else other_landing(asked, ask)
    problem = of_table or other_basis(asked, ask) or off_grid(asked, ask, windows)
    new = new_landing(ask)
    if problem is not None and acts.reland:
        before_anew()
    elif problem is not None:
        if journal.is_landed(kept) or may_hold_rows(kept, ask):
            raise problem
        check_mark(standing, ask, TableTerms(mark_of(kept, ask), earlier=new.instead_of(kept).earlier))
    if proves_only:
        return None
    if problem is None:
        begun = _NOT_BEGUN if is_gone(journal, kept, ask, acts, standing) else kept.id
        return replace(kept, id=begun, grid=kept.grid or new.grid)
    return replace(kept, id=_NOT_BEGUN, landing=new.landing, columns=None, grid=new.grid, basis=new.basis)


_NOT_BEGUN: Final = 0
"""The number of a landing that is none yet, so nothing was landed under it."""


def land_anew(journal: Journal, ask: Ask, entered: Entered) -> None:
    """Another landing of the same ask, for rows that the table of `entered` cannot take; unless that is no more.

    Every window is missing then, and the table is set aside when the first one lands, whoever lands it.
    """
    kept = journal.landing(ask.source.key, ask.reader)
    if kept is not None and kept.id == entered.landing_id:
        _log.warning(
            "%s: the table %s of reader %r cannot take the columns of now: all windows are landed anew",
            ask.source,
            kept.target,
            ask.reader,
        )
        journal.land_as(ask.source.key, ask.reader, new_like(kept, ask).in_place_of(kept), after=kept)


def fitting_of(ask: Ask, entered: Entered, acts: Acts) -> Fitting:
    """What rows must have that are to land."""
    return Fitting(ask.landing, entered.terms.columns if entered.terms else None, acts.reland)


def fitting_foreseen(ask: Ask, foreseen: KeptLanding | None, acts: Acts) -> Fitting:
    """As `fitting_of`, for who only looks, see `check`. Under a landing that is none yet any rows fit."""
    columns = None if foreseen is None or foreseen.id == _NOT_BEGUN else foreseen.columns
    return Fitting(ask.landing, columns, acts.reland)


def refuse_overlaps(
    journal: Journal, ask: Ask, window: Window, acts: Acts, foreseen: KeptLanding | None = None
) -> None:
    """See before a window is planned that no covered one shares time with it; a run's start looks again.

    Args:
        journal: knows what is covered.
        ask: what the reader is to land.
        window: the one to come.
        acts: what may give way.
        foreseen: for who only looks, see `check`; None: after `enter` the journal knows all.

    Raises:
        WindowsOverlap: some do, and shall stay.
    """
    if acts.overlap == "replace" or ask.landing.sink is None:
        return
    known = foresee(journal, ask.source.key, ask.reader, window, landing=foreseen).select("covered")
    covered = [item.window for item in known if item.run is not None and item.window != window]
    if covered:
        raise WindowsOverlap(ask.source, window, covered)


def _proves_only(kept: KeptLanding | None, ask: Ask) -> bool:
    return ask.landing.sink is None and kept is not None and kept.target is not None


def _landing(journal: Journal, kept: KeptLanding | None, ask: Ask, *, anew: bool) -> KeptLanding:
    """The landing that counts from now on. A reader that only proved so far may begin to land: nothing lies there."""
    new = new_landing(ask)
    begins = kept is not None and kept.landing is not None and kept.target is None and ask.landing.sink is not None
    if kept is not None and anew:
        new = new.in_place_of(kept)
    if kept is None or anew or begins:
        return journal.land_as(ask.source.key, ask.reader, new, after=kept)
    return journal.adopt_landing(ask.source.key, ask.reader, new) or kept


def _corrected(journal: Journal, kept: KeptLanding, ask: Ask, problem: InvalidRequest) -> KeptLanding:
    """What is asked in place of a landing that nothing was landed under: whatever failed before may be mended."""
    corrected = None
    if not may_hold_rows(kept, ask):
        corrected = journal.correct_landing(ask.source.key, ask.reader, kept, new_landing(ask).instead_of(kept))
    if corrected is None:
        raise problem
    return corrected
