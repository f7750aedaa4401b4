"""What a run does to its reader's landing and table, decided from facts alone. Nothing is read or written here.

A run applies the decision (`claim.claim_table`); a dry run shows it (`claim.preview_claim`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from airflow_provider_streams.errors import InvalidRequest, LandingMismatch, StreamsError, TableOwnedByOther
from airflow_provider_streams.lake.table_properties import check_owner
from airflow_provider_streams.model.sinks.landing import Schema, TableMark, TableState, TableTerms
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.windows.claim.landing_request import (
    LandingRequest,
    begins_columns,
    decoded_as_requested,
    mismatch,
    new_landing,
    new_like,
    requested_payloads,
)
from airflow_provider_streams.windows.claim.overrides import Overrides

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import NewLanding, StoredLanding

_NO_TABLE_ID: Final = "none yet"
_NOT_BEGUN: Final = 0
"""The number of a landing that the journal does not have yet, so nothing was landed under it."""

Change = Literal["prove", "keep", "begin", "correct", "replace_empty"]
"""What becomes of the reader's landing.

`prove`: nothing, and its table stays as it is. `keep`: it is kept, and completed. `begin`: a new landing takes its
place. `correct`: the same, for the table as it is marked. `replace_empty`: the same, if it has no rows.
"""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The state of the requested table."""

    state: TableState | None = None
    """None: there is no table, or it was not seen."""
    is_seen: bool = False
    """Whether it could be read from here."""
    failure: StreamsError | None = None
    """Why it was not seen; None: there is no sink, or its kind cannot tell."""
    is_connected: bool = True
    """Whether the connection that the sink names exists, and is one of tables."""

    @property
    def is_absent(self) -> bool:
        """Whether there is no table."""
        return self.is_seen and self.state is None

    def check_free(self) -> None:
        """Check that the table does not hold data of an unknown owner, and that its connection exists.

        Raises:
            TableOwnedByOther, InvalidRequest: it does, or does not.
        """
        if self.failure is not None and (isinstance(self.failure, TableOwnedByOther) or not self.is_connected):
            raise self.failure


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that decides what a run may do to its reader's landing and table."""

    request: LandingRequest
    windows: Sequence[Window]
    """Those to read, in order of time."""
    overrides: Overrides
    stored: StoredLanding | None = None
    """What the reader has landed so far, by the journal."""
    table: TableFacts = TableFacts()
    is_covered: bool = False
    """Whether the stored landing has a covered window."""
    is_landed: bool = False
    """The same, or a run may still cover one."""
    holds_rows: bool = False
    """Whether the stored landing has a window with rows, or a run may still land some."""
    covered: tuple[Window, ...] = ()
    """Its covered windows, where the decision needs them."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a run does to the reader's landing, and what it requires of the table."""

    change: Change
    landing: StoredLanding | None = None
    """What the reader lands then; None: the read is only proven, or all windows are landed again."""
    terms: TableTerms | None = None
    """What it requires of the table; None: there is none."""
    new: NewLanding | None = None
    """What the journal stores, except to prove."""
    needs_room: bool = False
    """Whether rows of the new landing must be able to take the place of all that the table holds."""
    lost: tuple[Window, ...] = ()
    """Covered windows whose table is gone."""
    held: TableState | None = None
    """What the table holds of the reader's windows, to be compared with the journal; None: that is not known."""
    failure: StreamsError | None = None
    """Why a run cannot go on: it must read the table, and could not."""
    payloads: Mapping[str, Any] | None = None
    """What values and keys the reader lands from now on, once a window landed so; None: as before."""

    @property
    def is_begun(self) -> bool:
        """Whether the journal has that landing already."""
        return self.landing is not None and self.landing.id != _NOT_BEGUN

    @property
    def landing_id(self) -> int | None:
        """Of that landing; None: there is none."""
        return None if self.landing is None else self.landing.id

    @property
    def columns(self) -> Schema | None:
        """Of the table's rows; None: it takes any."""
        return None if self.landing is None else self.landing.columns

    def begun_again(self, request: LandingRequest) -> Decision:
        """The same if a run began a new landing, and all windows were missing."""
        terms = None if self.terms is None else TableTerms(no_mark(request), set_aside=True)
        return replace(self, landing=None, terms=terms)


@dataclass(frozen=True, slots=True)
class TableClaim:
    """An applied decision: the reader may land, and under which landing."""

    landing_id: int | None
    """None: what is read is proven only, and the reader's table stays as it is."""
    terms: TableTerms | None
    """Whose table it must be; None: there is none."""
    payloads: Mapping[str, Any] | None = None
    """What values and keys the reader lands from now on, once a window landed so; None: as before."""

    @property
    def landing(self) -> None:
        """None: the journal has it. A `Decision` has the landing that the journal would get."""
        return

    @property
    def columns(self) -> Schema | None:
        """Of the table's rows; None: it takes any."""
        return None if self.terms is None else self.terms.columns


def decide(facts: Facts) -> Decision:
    """Decide what a run does.

    Raises:
        LandingMismatch: the reader lands something else, and something was landed.
        WindowNotAligned: a window is no cell of the reader's window schedule.
        TableOwnedByOther: the table is not the reader's.
        InvalidRequest: the table's connection does not exist, or is not one of tables.
    """
    stored, request = facts.stored, facts.request
    _check_fewer_rows(facts)
    if stored is None:
        _refuse_readers_table(facts)
        return _begin(facts, new_landing(request))
    if request.landing.sink is None and stored.target is not None:
        return Decision("prove")
    problem = mismatch(as_requested(stored, facts), request, facts.windows)
    if problem is not None:
        return _change(facts, stored, problem)
    if stored.target is None and request.landing.sink is not None:
        return _begin(facts, new_landing(request))  # it only proved windows so far, so no table has rows
    if facts.is_covered and facts.table.is_absent:
        return replace(_begin(facts, new_like(stored, request)), lost=facts.covered)
    return _keep(facts, stored)


def _check_fewer_rows(facts: Facts) -> None:
    sink = facts.request.landing.sink
    if facts.overrides.allow_fewer_rows and sink is not None and sink.apply is not None:
        raise InvalidRequest(
            f"{sink.asset_uri}: allow_fewer_rows=True is not possible where changes are applied, because those that "
            "were applied stay in the table. To apply all changes again, run the windows with full_refresh=True"
        )


def as_requested(stored: StoredLanding, facts: Facts) -> StoredLanding:
    """The landing to compare with the request: a window that is planned again may be decoded differently."""
    return decoded_as_requested(stored, facts.request) if facts.overrides.replan else stored


def _begin(
    facts: Facts, new: NewLanding, change: Change = "begin", table_id: str = _NO_TABLE_ID, *, needs_room: bool = False
) -> Decision:
    from airflow_provider_streams.journal.landings import StoredLanding  # noqa: PLC0415 - SQL when used

    landing = StoredLanding(_NOT_BEGUN, 0, new.landing, table_id, window_schedule=new.window_schedule, basis=new.basis)
    return Decision(change, landing, _terms(facts, landing, landing.earlier), new, needs_room)


def _change(facts: Facts, stored: StoredLanding, problem: InvalidRequest) -> Decision:
    """Another landing replaces the stored one: by override, or because that has no rows. Else the problem stays."""
    new = new_landing(facts.request)
    if facts.overrides.full_refresh:
        facts.table.check_free()
        check_mark(facts.table, facts.request, TableTerms(no_mark(facts.request), set_aside=True))
        return _begin(facts, new.in_place_of(stored), needs_room=True)
    if isinstance(facts.table.failure, InvalidRequest):
        raise facts.table.failure
    if not facts.is_landed and not _may_hold_rows(facts, stored):  # whatever failed before may be corrected
        return _begin(facts, new.instead_of(stored), "correct", stored.table_id)
    if isinstance(problem, LandingMismatch) and begins_columns(stored, facts.request) and _holds_no_rows(facts, stored):
        return _begin(facts, new.in_place_of(stored), "replace_empty", needs_room=True)
    raise problem


def _keep(facts: Facts, stored: StoredLanding) -> Decision:
    request, table = facts.request, facts.table
    new = new_landing(request)
    kept = Decision("keep", landing := stored.filled(new), new=new)
    terms = _terms(facts, landing, () if facts.is_covered else landing.earlier)
    if terms is None:
        return kept
    held = None
    if facts.is_covered and table.state is not None:
        held = table.state if table.state.mark == terms.mark else TableState(terms.mark, frozenset())
        if held is not table.state and not facts.overrides.full_refresh:
            cause = "it is another reader's by now, was made under another journal, or was put back from a copy"
            raise TableOwnedByOther(landing.target or "", cause)
        check_mark(table, request, terms)
    must_see = facts.is_covered or facts.overrides.full_refresh
    return replace(
        kept,
        terms=_only_found(terms, table),
        held=held,
        failure=table.failure if must_see else None,
        payloads=requested_payloads(request) if decoded_as_requested(landing, request) != landing else None,
    )


def _terms(facts: Facts, landing: StoredLanding, earlier: tuple[str, ...]) -> TableTerms | None:
    if facts.request.landing.sink is None:
        return None
    overrides = facts.overrides
    return TableTerms(
        mark_of(landing, facts.request),
        landing.columns,
        replace_overlaps=overrides.overlap == "replace",
        set_aside=overrides.full_refresh,
        earlier=earlier,
    )


def _only_found(terms: TableTerms, table: TableFacts) -> TableTerms:
    """With `full_refresh`, the present rows may be set aside, but not what a newer landing puts there later."""
    if not terms.set_aside or not table.is_seen:
        return terms
    found = (
        () if table.state is None or table.state.mark.id in {terms.mark.id, *terms.earlier} else (table.state.mark.id,)
    )
    return replace(terms, set_aside=False, earlier=(*terms.earlier, *found))


def _refuse_readers_table(facts: Facts) -> None:
    """A new reader is refused another reader's table, before the journal stores its landing.

    A table whose owner is not known is no mistyped name: its window is recorded as failed, and can be filled later.
    """
    state, request = facts.table.state, facts.request
    if facts.table.failure is not None and not facts.table.is_connected:
        raise facts.table.failure
    if state is not None and (state.mark.source, state.mark.reader) != (request.source.key, request.reader):
        check_mark(facts.table, request, TableTerms(no_mark(request)))


def _may_hold_rows(facts: Facts, stored: StoredLanding) -> bool:
    """Whether the table may have rows of this reader that the journal lacks: their task died after landing."""
    table, request = facts.table, facts.request
    if isinstance(table.failure, TableOwnedByOther) or request.landing.sink is None:
        return False
    if not table.is_seen:
        return bool(request.landing.to_json()["target"] == stored.target)
    return table.state is not None and table.state.mark == mark_of(stored, request) and bool(table.state.windows)


def _holds_no_rows(facts: Facts, stored: StoredLanding) -> bool:
    """Whether only windows without rows were landed, by the journal and by the table."""
    table = facts.table
    if not table.is_seen or facts.holds_rows:
        return False
    return table.state is None or (
        table.state.mark == mark_of(stored, facts.request) and table.state.windows <= set(facts.covered)
    )


def check_mark(table: TableFacts, request: LandingRequest, terms: TableTerms) -> None:
    """Check that an existing table may be written under these terms, as its writer will.

    Raises:
        TableOwnedByOther: it may not.
    """
    if table.state is not None:
        check_owner(str(request.landing.sink), table.state.mark, terms, "another place")


def mark_of(stored: StoredLanding, request: LandingRequest) -> TableMark:
    """The mark of the table of a landing."""
    return TableMark(stored.table_id, request.source.key, request.reader)


def no_mark(request: LandingRequest) -> TableMark:
    """The mark of a table that the reader has not begun."""
    return TableMark(_NO_TABLE_ID, request.source.key, request.reader)
