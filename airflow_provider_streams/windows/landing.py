"""Whether a reader may land what it is asked to, where, and on which grid; and whether its table is what we know."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from airflow_provider_streams.errors import (
    ForeignTable,
    InvalidRequest,
    LandingMismatch,
    OffGrid,
    SinkError,
    WindowsOverlap,
)
from airflow_provider_streams.model.basis import Basis, BasisLike
from airflow_provider_streams.model.grid import Grid, parse_grid
from airflow_provider_streams.model.landing import ROWS_GONE, Landing, TableMark, TableState, TableTerms
from airflow_provider_streams.model.payload import payload_from
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.sources import payloads_of
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.fitting import Fitting
from airflow_provider_streams.windows.table import foresee

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import KeptLanding, NewLanding
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.source import Source

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a reader is asked to land."""

    source: Source
    reader: str
    landing: Landing
    basis: str
    grid: Grid | None = None
    """How its windows tile time; None: whoever asks does not know."""
    event_time: Mapping[str, str] | None = None
    """Basis `event`: see `event_time_of`."""

    def __post_init__(self) -> None:
        # what is decoded is what the source says, whoever put the landing together
        said = payloads_of(self.source)
        decoded = replace(self.landing, value=said.get("value"), key=said.get("key"))
        object.__setattr__(self, "landing", decoded)


@dataclass(frozen=True, slots=True)
class Entered:
    """A reader may land, and under which landing."""

    landing_id: int | None
    """None: what is read is proven only, and the reader's table stays as it is."""
    terms: TableTerms | None
    """Whose table it must be; None: there is none."""
    payloads: Mapping[str, Any] | None = None
    """What values and keys the reader lands from now on, once a window landed so; None: as before."""


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
    asked = kept if kept is None or not acts.replan else _decoded_as_asked(kept, ask)
    problem = None if asked is None else _mismatch(asked, ask, windows)
    if kept is not None and problem is not None and not acts.reland:
        kept, problem = _corrected(journal, kept, ask, problem), None
    if problem is not None:
        _own_table(ask)
        before_anew()
    kept = _landing(journal, kept, ask, anew=problem is not None)
    _check_won(_decoded_as_asked(kept, ask) if acts.replan else kept, ask, windows)
    if ask.landing.sink is None:
        return Entered(kept.id, None)
    terms = TableTerms(
        _mark(kept, ask), kept.columns, replace_overlaps=acts.overlap == "replace", set_aside=acts.reland
    )
    entered = _with_table(journal, kept, ask, terms, windows)
    is_other = kept.landing is not None and _decoded_as_asked(kept, ask) != kept
    return replace(entered, payloads=_payloads(ask)) if is_other else entered


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
    standing = _own_table(ask)
    if kept is None:
        _check_mark(standing, ask, TableTerms(_no_mark(ask), set_aside=acts.reland))
        return None
    proves_only = _proves_only(kept, ask)
    asked = _decoded_as_asked(kept, ask) if acts.replan else kept
    of_table = None if proves_only else _other_landing(asked, ask)
    problem = of_table or _other_basis(asked, ask) or _off_grid(asked, ask, windows)
    new = _new(ask)
    if problem is not None and acts.reland:
        before_anew()
    elif problem is not None:
        if journal.is_landed(kept) or _may_hold_rows(kept, ask):
            raise problem
        _check_mark(standing, ask, TableTerms(_mark(kept, ask), earlier=new.instead_of(kept).earlier))
    if proves_only:
        return None
    if problem is None:
        is_gone = _is_gone(journal, kept, ask, acts, standing)
        return replace(kept, id=_NOT_BEGUN if is_gone else kept.id, grid=kept.grid or new.grid)
    return replace(kept, id=_NOT_BEGUN, landing=new.landing, columns=None, grid=new.grid, basis=new.basis)


_NOT_BEGUN: Final = 0
"""The number of a landing that is none yet, so nothing was landed under it."""


def _is_gone(
    journal: Journal, kept: KeptLanding, ask: Ask, acts: Acts, standing: TableState | Literal["unseen"] | None
) -> bool:
    """Whether a reader's table is no more, so that it is landed anew: as `_with_table`, for who only looks.

    Raises:
        ForeignTable: it is not that of the reader's landing.
    """
    mark = _mark(kept, ask)
    if journal.last_covered(ask.source.key, ask.reader) is None:
        _check_mark(standing, ask, TableTerms(mark, set_aside=acts.reland, earlier=kept.earlier))
        return False
    if standing is None or standing == "unseen":
        return standing is None
    if standing.mark != mark and not acts.reland:
        raise _other_table(kept)
    return False


def _other_table(kept: KeptLanding) -> ForeignTable:
    cause = "it is another reader's by now, was made under another journal, or was put back from a copy"
    return ForeignTable(kept.target or "", cause)


def _own_table(ask: Ask) -> TableState | Literal["unseen"] | None:
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
    _check_mark(state, ask, TableTerms(_no_mark(ask), set_aside=True))
    return state


def _mark(kept: KeptLanding, ask: Ask) -> TableMark:
    """Of the table of a reader's landing."""
    return TableMark(kept.table_id, ask.source.key, ask.reader)


def _no_mark(ask: Ask) -> TableMark:
    """Of a table that the reader has not begun."""
    return TableMark("none yet", ask.source.key, ask.reader)


def _check_mark(found: TableState | Literal["unseen"] | None, ask: Ask, terms: TableTerms) -> None:
    """See that a table which is there may be, or become, these terms', as its writer will.

    Raises:
        ForeignTable: it may not.
    """
    from airflow_provider_streams.lake.owner import check_owner  # noqa: PLC0415 - where a table is

    if found is not None and found != "unseen":
        check_owner(str(ask.landing.sink), found.mark, terms, "another place")


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
        journal.land_as(ask.source.key, ask.reader, _new_like(kept, ask).in_place_of(kept), after=kept)


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


def kept_landing(journal: Journal, source_key: str, reader: str) -> Landing | None:
    """What a reader lands, so that it can be asked for again; None: nothing yet, or nowhere."""
    from airflow_provider_streams.spark.sinks import sink_from_json  # noqa: PLC0415 - where a table is

    kept = journal.landing(source_key, reader)
    if kept is None or kept.landing is None or kept.landing["sink"] is None:
        return None
    columns = kept.landing["columns"]
    sink = sink_from_json(kept.landing["sink"])
    return Landing(
        sink,
        kept.landing["transform"],
        None if columns is None else tuple(columns),
        payload_from(kept.landing.get("value")),
        payload_from(kept.landing.get("key")),
    )


def basis_of(
    journal: Journal, source: Source, reader: str, given: BasisLike | None, refined: Mapping[str, Any]
) -> Basis:
    """How times become cuts for a reader: as is asked now; what that leaves open, as its windows that stand were asked.

    Args:
        journal: knows the reader's landing and plans.
        source: what it reads.
        reader: whose windows.
        given: a basis, which leaves nothing open; or its name; None: the reader's own, or its system's.
        refined: what is said of it beside its name.

    Raises:
        InvalidRequest: not a basis of this system, or what is said of it belongs to another.
    """
    declared = declaration_of(source.system)
    if isinstance(given, Basis):
        return declared.basis(given, refined)
    kept = journal.landing(source.key, reader)
    own = kept.basis if kept is not None else None
    name: Any = given or own or declared.basis().name
    said = kept_event_time(kept) if name == own else {}
    # the landing does not tell slack, lateness and skew: they may change between two windows
    last = journal.last_terms(source.key, reader, name)
    return declared.basis(name, {**(last.lengths if last else {}), **said, **refined})


def grid_of(journal: Journal, source_key: str, reader: str) -> Grid | None:
    """How a reader's windows tile time; None: not known."""
    kept = journal.landing(source_key, reader)
    return None if kept is None or kept.grid is None else parse_grid(kept.grid)


def _proves_only(kept: KeptLanding | None, ask: Ask) -> bool:
    return ask.landing.sink is None and kept is not None and kept.target is not None


def _landing(journal: Journal, kept: KeptLanding | None, ask: Ask, *, anew: bool) -> KeptLanding:
    """The landing that counts from now on. A reader that only proved so far may begin to land: nothing lies there."""
    new = _new(ask)
    begins = kept is not None and kept.landing is not None and kept.target is None and ask.landing.sink is not None
    if kept is not None and anew:
        new = new.in_place_of(kept)
    if kept is None or anew or begins:
        return journal.land_as(ask.source.key, ask.reader, new, after=kept)
    return journal.adopt_landing(ask.source.key, ask.reader, new) or kept


def _check_won(kept: KeptLanding, ask: Ask, windows: Sequence[Window]) -> None:
    """Of several runs that would begin a reader's landing at the same moment, one does; those of other asks end here.

    Raises:
        LandingMismatch, OffGrid: the landing that counts by now is not what is asked.
    """
    problem = _mismatch(kept, ask, windows)
    if problem is not None:
        raise problem


def _corrected(journal: Journal, kept: KeptLanding, ask: Ask, problem: InvalidRequest) -> KeptLanding:
    """What is asked in place of a landing that nothing was landed under: whatever failed before may be mended."""
    corrected = None
    if not _may_hold_rows(kept, ask):
        corrected = journal.correct_landing(ask.source.key, ask.reader, kept, _new(ask).instead_of(kept))
    if corrected is None:
        raise problem
    return corrected


def _may_hold_rows(kept: KeptLanding, ask: Ask) -> bool:
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
    return state is not None and state.mark == _mark(kept, ask) and bool(state.windows)


def _new(ask: Ask) -> NewLanding:
    from airflow_provider_streams.journal.landings import NewLanding  # noqa: PLC0415 - SQL when used

    landing = {**ask.landing.to_json(), **({"event_time": dict(ask.event_time)} if ask.event_time else {})}
    return NewLanding(landing, None if ask.grid is None else str(ask.grid), _lasting(ask.basis))


def _decoded_as_asked(kept: KeptLanding, ask: Ask) -> KeptLanding:
    """Windows that are planned anew may be decoded otherwise, and so is what comes; columns may only grow, as ever.

    Not those by a decoded field: an event that is undecodable for one of two windows, and not for the other, has two
    times, and would be in both or in none.
    """
    is_tied = kept.landing is None or "event_time" in kept_event_time(kept)
    return kept if is_tied or kept.landing is None else replace(kept, landing={**kept.landing, **_payloads(ask)})


def _payloads(ask: Ask) -> dict[str, Any]:
    said = ask.landing.to_json()
    return {what: said[what] for what in ("value", "key")}


def _mismatch(kept: KeptLanding, ask: Ask, windows: Sequence[Window]) -> InvalidRequest | None:
    return _other_landing(kept, ask) or _other_basis(kept, ask) or _off_grid(kept, ask, windows)


def _other_landing(kept: KeptLanding, ask: Ask) -> LandingMismatch | None:
    if kept.landing is None or kept.target is None:
        return None
    asked = ask.landing.to_json()
    names = {"target": "table", "columns": "columns", "transform": "transform", "value": "values", "key": "keys"}
    tied = " (its windows are by a field of theirs)" if "event_time" in kept_event_time(kept) else ""
    found = {
        part: f"{name} {_shown(asked[part])} instead of {_shown(kept.landing.get(part))}{tied * (part == 'value')}"
        for part, name in names.items()
        if asked[part] != kept.landing.get(part)
    }
    if not found:
        return None
    hint = _PLANNED_ANEW if found.keys() <= {"value", "key"} and not tied else ""  # see `_decoded_as_asked`
    return LandingMismatch(ask.source, ask.reader, kept.target, ask.landing, list(found.values()), hint=hint)


_PLANNED_ANEW: Final = (
    "plan the window anew with replan=True, if its rows then have all columns of the table, of the same types (the "
    "reader decodes so from then on)"
)


def _other_basis(kept: KeptLanding, ask: Ask) -> LandingMismatch | None:
    """Windows of two bases do not tile. A user's own positions may fill a hole: they are an act by themselves."""
    basis = _lasting(ask.basis)
    if basis is None or kept.basis is None:
        return None
    asked, before = (basis, ask.event_time or {}), (kept.basis, kept_event_time(kept))
    if asked == before:
        return None
    difference = [f"basis {_told(*asked)} instead of {_told(*before)}"]
    return LandingMismatch(ask.source, ask.reader, kept.target or "no table", ask.landing, difference)


def kept_event_time(kept: KeptLanding | None) -> Mapping[str, str]:
    """Which time of an event counts for a reader by event time, see `event_time_of`; empty: the broker's."""
    landing = kept.landing if kept is not None else None
    found: Mapping[str, str] = (landing or {}).get("event_time", {})
    return found


def _told(basis: str, event_time: Mapping[str, str]) -> str:
    return " ".join([repr(basis), *(f"{name}={value!r}" for name, value in event_time.items())])


def _lasting(basis: str) -> str | None:
    return None if basis == "cuts" else basis


def _off_grid(kept: KeptLanding, ask: Ask, windows: Sequence[Window]) -> OffGrid | None:
    if kept.grid is None:
        return None
    grid = parse_grid(kept.grid)
    for window in windows:
        if not grid.is_cell(window):
            return OffGrid(ask.source, ask.reader, window, grid, grid.cell(window.start))
    return None


def _with_table(journal: Journal, kept: KeptLanding, ask: Ask, terms: TableTerms, windows: Sequence[Window]) -> Entered:
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
        _check_mark(state, ask, terms)  # our own of before may be set aside
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
    anew = journal.land_as(ask.source.key, ask.reader, _new_like(kept, ask), after=kept)
    _check_won(anew, ask, windows)
    return Entered(anew.id, TableTerms(_mark(anew, ask), None, terms.replace_overlaps))


def _new_like(kept: KeptLanding, ask: Ask) -> NewLanding:
    from airflow_provider_streams.journal.landings import NewLanding  # noqa: PLC0415 - SQL when used

    new = _new(ask)
    return NewLanding(new.landing, kept.grid or new.grid, kept.basis or new.basis)


def forget_removed(journal: Journal, ask: Ask, kept: KeptLanding, state: TableState, span: Window) -> None:
    """Windows that the journal has as covered, and that somebody took out of the table: they are missing again."""
    coverage = journal.coverage(ask.source.key, ask.reader, span.start, span.end)
    gone = coverage.missed_by(state.windows, tells_empty=state.tells_empty)
    if gone:
        _log.warning(
            "%s: %d windows are no longer in %s: they are to be read again", ask.source, len(gone), kept.target
        )
        journal.uncover(ask.source.key, ask.reader, kept.id, gone, ROWS_GONE)


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        arguments = ", ".join(f"{name}={text!r}" for name, text in value.items() if name != "format")
        return f"{value['format']} {arguments}".rstrip()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
