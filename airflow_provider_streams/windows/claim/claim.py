"""Claims a table for a reader: gathers the facts, decides, and applies the decision to the journal."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import (
    InvalidRequest,
    LandingMismatch,
    SinkError,
    TableOwnedByOther,
)
from airflow_provider_streams.lake.connections import check_connection, connection_of
from airflow_provider_streams.lake.registry import table_state
from airflow_provider_streams.model.sinks.landing import ROWS_GONE
from airflow_provider_streams.model.window.missing_rows import MissingWindows, OnMissing, not_reported
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.windows.claim.decision import (
    Decision,
    Facts,
    TableClaim,
    TableFacts,
    as_requested,
    check_mark,
    decide,
)
from airflow_provider_streams.windows.claim.landing_request import LandingRequest, begins_columns, mismatch, new_like
from airflow_provider_streams.windows.claim.overrides import Overrides
from airflow_provider_streams.windows.claim.plan_fits_table import Room

if TYPE_CHECKING:
    from airflow_provider_streams.journal.landings import StoredLanding
    from airflow_provider_streams.journal.store import Journal

_log = logging.getLogger(__name__)

_EVER: Final = datetime(1900, 1, 1, tzinfo=UTC)
"""Before the first window of any reader."""


def claim_table(
    journal: Journal,
    landing_request: LandingRequest,
    windows: Sequence[Window],
    overrides: Overrides,
    room: Room | None = None,
    *,
    missing: OnMissing = not_reported,
) -> TableClaim:
    """Make the request the reader's landing, or confirm that it is; and find out what its table lost.

    Args:
        journal: keeps landings.
        landing_request: what the reader is to land.
        windows: those to come, in order of time.
        overrides: `full_refresh` allows another landing, window schedule or basis.
        room: tells whether the table can take the rows of a new landing; None: it can.
        missing: called with covered windows that the table lost.

    Raises:
        LandingMismatch: the reader lands something else, and something was landed.
        WindowNotAligned: a window is no cell of the reader's window schedule.
        TableOwnedByOther, SinkError: another owner has the table, or it cannot be read.
        StreamsError: as `Room.check`.
    """
    while True:
        facts = gather(journal, landing_request, windows, overrides)
        try:
            claim = _apply(journal, facts, _decided(facts, room), missing)
        except TableOwnedByOther:
            # the landing is read before the table's mark: another run may have made both again in between
            now = journal.landing(landing_request.source.key, landing_request.reader)
            if overrides.full_refresh or now is None or (facts.stored is not None and now.id == facts.stored.id):
                raise
            continue
        if claim is not None:
            return claim


def preview_claim(
    journal: Journal,
    landing_request: LandingRequest,
    windows: Sequence[Window],
    overrides: Overrides,
    room: Room | None,
) -> Decision:
    """What `claim_table` would do. Nothing is changed, and a table that cannot be read has no terms.

    Raises:
        LandingMismatch, WindowNotAligned: as `claim_table`.
        TableOwnedByOther: as `claim_table`; or the table's writer would refuse it.
        InvalidRequest: its connection does not exist, or is not one of tables.
        StreamsError: as `Room.check`.
    """
    facts = gather(journal, landing_request, windows, overrides)
    decision = _decided(facts, room)
    facts.table.check_free()
    if decision.terms is not None:
        check_mark(facts.table, landing_request, decision.terms)
    return decision if facts.table.is_seen else replace(decision, terms=None)


def gather(journal: Journal, landing_request: LandingRequest, windows: Sequence[Window], overrides: Overrides) -> Facts:
    """The state of journal and table; the landing is read first."""
    key, reader = landing_request.source.key, landing_request.reader
    stored = journal.landing(key, reader)
    near = _span_to_see(journal, stored, windows)
    facts = Facts(landing_request, windows, overrides, stored, _table_facts(landing_request, near))
    if stored is None:
        return facts
    if near is not None and _span_to_see(journal, stored, windows) is None:  # other runs failed meanwhile
        facts = replace(facts, table=_table_facts(landing_request))
    last = journal.last_covered(key, reader)
    covered: tuple[Window, ...] = ()
    if last is not None and (facts.table.is_absent or begins_columns(stored, landing_request)):
        coverage = journal.coverage(key, reader, _EVER, last.window.end)
        covered = tuple(sorted(item.window for item in coverage.select("covered")))
    return replace(
        facts,
        is_covered=last is not None,
        is_landed=journal.is_landed(stored),
        holds_rows=journal.holds_rows(stored),
        covered=covered,
    )


def _span_to_see(journal: Journal, stored: StoredLanding | None, windows: Sequence[Window]) -> Window | None:
    """From when to when the table's windows matter; None: all do, for the landing may give way to another one."""
    if stored is None or not windows or not (journal.is_landed(stored) and journal.holds_rows(stored)):
        return None
    return Window(min(one.start for one in windows), max(one.end for one in windows))


def _table_facts(landing_request: LandingRequest, near: Window | None = None) -> TableFacts:
    sink = landing_request.landing.sink
    try:
        check_connection(connection_of(sink))
    except InvalidRequest as error:
        return TableFacts(failure=error, is_connected=False)
    try:
        state = table_state(sink, near)
    except (SinkError, InvalidRequest) as error:
        return TableFacts(failure=error)
    return TableFacts() if state == "unseen" else TableFacts(state, is_seen=True)


def _decided(facts: Facts, room: Room | None) -> Decision:
    """See `decide`; a refusal suggests a full refresh only if the table can take it."""
    try:
        decision = decide(facts)
    except LandingMismatch as problem:
        raise problem if room is None else problem.with_relanding(room.relanding()) from None
    if decision.needs_room and room is not None:
        room.check()
    return decision


def _apply(journal: Journal, facts: Facts, decision: Decision, missing: OnMissing) -> TableClaim | None:
    """Change the journal as decided; None: another run changed the reader's landing meanwhile, so decide again."""
    if decision.landing is None:
        return TableClaim(None, None)
    stored = _store(journal, facts, decision)
    if stored is None:
        return None
    if decision.lost:  # else another run that found the table gone has reported them
        _report(facts, decision.lost, missing, is_table_gone=True)
    if problem := mismatch(as_requested(stored, facts), facts.request, facts.windows):  # another run began its landing
        raise problem
    if stored != decision.landing:
        return None
    if decision.failure is not None:
        raise decision.failure
    _uncover_removed(journal, facts, decision, missing)
    return TableClaim(stored.id, decision.terms, decision.payloads)


def _store(journal: Journal, facts: Facts, decision: Decision) -> StoredLanding | None:
    """The landing in the journal: one of several runs decides it. None: the stored one was replaced meanwhile."""
    key, reader, stored, new = facts.request.source.key, facts.request.reader, facts.stored, decision.new
    if new is None:
        return stored
    if decision.change == "begin" or stored is None:
        return journal.land_as(key, reader, new, after=stored)
    if decision.change == "correct":
        return journal.correct_landing(key, reader, stored, new)
    if decision.change == "replace_empty":
        return journal.replace_empty_landing(key, reader, stored, new)
    return journal.adopt_landing(key, reader, new)


def _uncover_removed(journal: Journal, facts: Facts, decision: Decision, missing: OnMissing) -> None:
    """Covered windows whose rows were removed from the table are missing again."""
    held, key, reader = decision.held, facts.request.source.key, facts.request.reader
    if held is None or decision.landing is None or not facts.windows:
        return
    coverage = journal.coverage(key, reader, facts.windows[0].start, facts.windows[-1].end)
    gone = coverage.missed_by(held.windows, tells_empty=held.tells_empty)
    if gone:
        is_set_aside = held is not facts.table.state  # as was asked for
        _report(facts, tuple(sorted(gone)), not_reported if is_set_aside else missing, is_table_gone=False)
        journal.uncover(key, reader, decision.landing.id, gone, ROWS_GONE)


def _report(facts: Facts, windows: tuple[Window, ...], missing: OnMissing, *, is_table_gone: bool) -> None:
    target = facts.stored.target if facts.stored is not None else None
    found = MissingWindows(
        facts.request.source, facts.request.reader, target or "", windows, is_table_gone=is_table_gone
    )
    _log.warning("%s", found)
    missing(found)


def start_new_landing(journal: Journal, landing_request: LandingRequest, claim: TableClaim | Decision) -> None:
    """Begin a landing of the same request, for rows that the claimed table cannot take.

    Every window is missing then, and the table is set aside when the first one lands. If another run has replaced the
    claimed landing already, nothing is done.
    """
    kept = journal.landing(landing_request.source.key, landing_request.reader)
    if kept is not None and kept.id == claim.landing_id:
        _log.warning(
            "%s: the table %s of reader %r cannot take the new columns: all windows are landed again",
            landing_request.source,
            kept.target,
            landing_request.reader,
        )
        journal.land_as(
            landing_request.source.key,
            landing_request.reader,
            new_like(kept, landing_request).in_place_of(kept),
            after=kept,
        )
