"""Whether a reader may land what it is asked to, where, and on which grid."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from airflow_provider_streams.errors import InvalidRequest, PlanMismatch, WindowsOverlap
from airflow_provider_streams.model.landing import TableState, TableTerms
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
from airflow_provider_streams.windows.fitting import Fitting, check_rows
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
from airflow_provider_streams.windows.redecoding import decoded_now
from airflow_provider_streams.windows.table import foresee

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import KeptLanding
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.plan import Plan
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a reader would land under, if a run began now."""

    landing: KeptLanding | None = None
    """None: it has none yet, or the read is only proven."""
    terms: TableTerms | None = None
    """What its table would be held to; None: there is none, or nobody can look at it from here."""

    @property
    def is_begun(self) -> bool:
        """Whether the journal has that landing already."""
        return self.landing is not None and self.landing.id != _NOT_BEGUN

    def anew(self, ask: Ask) -> Foreseen:
        """The same where all windows would be landed anew."""
        return Foreseen(None, None if self.terms is None else TableTerms(no_mark(ask), set_aside=True))


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
) -> Foreseen:
    """As `enter`, for who only looks: nothing is changed, and without a sink only basis and grid count.

    Raises:
        LandingMismatch, OffGrid: as `enter`.
        ForeignTable: the table is another reader's, or holds data and nobody knows whose.
        StreamsError: as `before_anew`.
    """
    kept = journal.landing(ask.source.key, ask.reader)
    standing = own_table(ask)
    if kept is None:
        terms = TableTerms(no_mark(ask), set_aside=acts.reland)
        check_mark(standing, ask, terms)
        return Foreseen(None, _where_seen(standing, terms))
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
        return Foreseen()
    if problem is None and not is_gone(journal, kept, ask, acts, standing):
        terms = TableTerms(mark_of(kept, ask), kept.columns, set_aside=acts.reland)
        return Foreseen(replace(kept, grid=kept.grid or new.grid), _where_seen(standing, terms))
    # a landing that is only corrected keeps its mark
    mark = no_mark(ask) if problem is None or acts.reland else mark_of(kept, ask)
    terms = TableTerms(mark, set_aside=acts.reland)
    if problem is None:
        return Foreseen(replace(kept, id=_NOT_BEGUN, grid=kept.grid or new.grid), _where_seen(standing, terms))
    other = replace(kept, id=_NOT_BEGUN, landing=new.landing, columns=None, grid=new.grid, basis=new.basis)
    return Foreseen(other, _where_seen(standing, terms))


def _where_seen(standing: TableState | Literal["unseen"] | None, terms: TableTerms) -> TableTerms | None:
    return None if standing == "unseen" else terms


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


def fitting_foreseen(ask: Ask, foreseen: Foreseen, acts: Acts) -> Fitting:
    """As `fitting_of`, for who only looks, see `check`. Under a landing that is none yet any rows fit."""
    columns = foreseen.landing.columns if foreseen.landing is not None and foreseen.is_begun else None
    return Fitting(ask.landing, columns, acts.reland)


def check_landable(journal: Journal, system: StreamSystem, ask: Ask, foreseen: Foreseen, plan: Plan) -> None:
    """See that the job which reads a plan could land its rows, as far as plan and table tell. Nothing is changed.

    Args:
        journal: knows for which landing it was pinned.
        system: knows its columns.
        ask: what the reader is to land.
        foreseen: under which landing.
        plan: what was planned for that, or is pinned.

    Raises:
        InvalidRequest, SinkError: it could not.
        StreamsError: the system does not tell how payloads become columns.
    """
    key = ask.source.key
    if _is_pinned(journal, key, plan):
        if _would_begin(ask, foreseen) or journal.is_of_earlier_landing(key, plan):
            plan = decoded_now(system, ask.source, plan)  # as who reads it will
        elif not fitting_foreseen(ask, foreseen, Acts()).is_met(system, plan, journal.later_columns(key, plan)):
            return  # of such a window alone the job says so
    check_rows(system, plan, ask.landing, foreseen.terms)


def _is_pinned(journal: Journal, source_key: str, plan: Plan) -> bool:
    try:
        return plan == journal.pinned(source_key, plan.reader, plan.window)
    except PlanMismatch:
        return False  # what is pinned cannot be read any more, and is planned anew


def _would_begin(ask: Ask, foreseen: Foreseen) -> bool:
    """Whether a run would make its reader a new landing; one that only proved so far lands nowhere yet."""
    lands = foreseen.is_begun and foreseen.landing is not None and foreseen.landing.target is not None
    return ask.landing.sink is not None and not lands


def refuse_overlaps(journal: Journal, ask: Ask, window: Window, acts: Acts, foreseen: Foreseen | None = None) -> None:
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
    landing = None if foreseen is None else foreseen.landing
    known = foresee(journal, ask.source.key, ask.reader, window, landing=landing).select("covered")
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
