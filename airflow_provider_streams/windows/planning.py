"""Plan a window and pin the plan: whoever reads the window, and however often, reads that one."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import ChainOrder, PlanMismatch, TermsChanged, WindowNotReady
from airflow_provider_streams.model.basis import BasisName, Chained, Cuts, EventTime, PublishTime, RecordedCuts
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.landing import Landing
from airflow_provider_streams.model.plan import (
    DEFAULT_SPLIT_BYTES,
    Beside,
    OnLoss,
    OnUnproven,
    Plan,
    PlanRequest,
    Terms,
)
from airflow_provider_streams.model.row_filter import FieldFilter
from airflow_provider_streams.model.undecodable import Undecodable
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.singles import part_of_cut, part_of_life
from airflow_provider_streams.windows.fitting import Fitting
from airflow_provider_streams.windows.narrowing import narrowed_by_receipts
from airflow_provider_streams.windows.readiness import WindowQuestion, plan_request, with_recorded
from airflow_provider_streams.windows.redecoding import decoded_now
from airflow_provider_streams.windows.sightings import plan_with_sightings

if TYPE_CHECKING:
    from airflow_provider_streams.journal.chains import Chain
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)

_CHAIN_TRIES = 5
_ANY = Fitting(Landing())


@dataclass(frozen=True, slots=True)
class WindowRead:
    """One window to read, for whom, and how."""

    question: WindowQuestion
    reader: str
    on_loss: OnLoss = "fail"
    target_split_bytes: int = DEFAULT_SPLIT_BYTES
    on_unproven: OnUnproven = "land"
    undecodable: Undecodable = field(default_factory=Undecodable)

    @property
    def source_key(self) -> str:
        """The source's identity in the journal."""
        return self.question.source.key

    @property
    def basis(self) -> BasisName:
        """Its name."""
        return self.question.basis.name

    @property
    def terms(self) -> Terms:
        """What is asked, as far as it decides which rows the plan holds."""
        basis = self.question.basis
        if isinstance(basis, EventTime):
            how = (basis.max_lateness, basis.event_time, basis.unit, basis.rows)
            return Terms(basis.slack, None, self.on_loss, *how)
        slack = basis.slack if isinstance(basis, PublishTime) else None
        skew = basis.max_skew if isinstance(basis, RecordedCuts) else None
        cuts = basis.digest if isinstance(basis, Cuts) else None
        return Terms(slack, skew, self.on_loss, cuts=cuts)


def fresh_plan(
    journal: Journal, system: StreamSystem, read: WindowRead, *, replan: bool = False, fitting: Fitting = _ANY
) -> Plan:
    """A plan made now, pinned nowhere.

    Args:
        journal: knows cuts, sightings and chains.
        system: plans.
        read: which window.
        replan: an explicit act: it reads all anew, whatever receipts of earlier windows prove to hold nothing of this
            one; and takes the place of windows before it that a chain has left open.
        fitting: what its rows must have.

    Raises:
        LandingMismatch, Outgrown: as `Fitting.check`.
        WindowNotReady, DataLoss, AccessError, SystemUnavailable: as `StreamSystem.plan`.
        ChainOrder: basis `chained`, and this reader has gone on behind the window already.
        NoCutNearby: basis `append`, and no cut was recorded near enough to an edge.
    """
    request = _request(system, read)
    basis = read.question.basis
    if isinstance(basis, RecordedCuts):
        plan = _between_recorded_cuts(journal, system, request, basis.max_skew)
    elif isinstance(basis, Chained):
        chain = _checked_chain(journal, read, replan=replan)
        plan = plan_with_sightings(journal, system, _going_on(request, chain))
    else:
        between = _with_beside(journal, read.source_key, with_recorded(journal, request))
        plan = plan_with_sightings(journal, system, between)
        if isinstance(basis, EventTime) and not replan:
            how = {"lateness": basis.max_lateness, "slack": basis.slack}
            plan = narrowed_by_receipts(journal, read.source_key, plan, **how)
    plan = replace(plan, terms=read.terms)
    fitting.check(system, plan)
    return plan


def pinned_plan(
    journal: Journal, system: StreamSystem, read: WindowRead, *, replan: bool, fitting: Fitting = _ANY
) -> Plan:
    """The plan that every run of this window reads: the pinned one, else a fresh one, pinned now.

    A fresh one whose rows the table cannot take is not pinned: the window keeps the plan that it has.

    Args:
        journal: keeps the pins.
        system: plans.
        read: which window.
        replan: an explicit act: a fresh plan takes the pin's place. See `fresh_plan`.
        fitting: what its rows must have.

    Raises:
        LandingMismatch, Outgrown: as `Fitting.check`. Of a pinned plan the job sees it, unless the table may give way.
        TermsChanged: it is pinned, and what is asked now contradicts the terms under which it was.
        PlanMismatch: the window was planned anew meanwhile.
        StreamsError: as `fresh_plan`.
    """
    pinned = None if replan else journal.pinned(read.source_key, read.reader, read.question.window)
    if pinned is not None:
        _check_terms(read, pinned)
        is_earlier = journal.is_of_earlier_landing(read.source_key, pinned)
        plan = _for_landing(journal, system, read, pinned, fitting) if is_earlier else pinned
        if fitting.may_give_way:
            fitting.check(system, plan, journal.later_columns(read.source_key, plan))
        _tell_changes(read, plan)
        return plan
    if isinstance(read.question.basis, Chained):
        return _pin_chained(journal, system, read, fitting, replan=replan)
    plan = fresh_plan(journal, system, read, replan=replan, fitting=fitting)
    return journal.replan(read.source_key, plan) if replan else journal.pin(read.source_key, plan)


def _for_landing(journal: Journal, system: StreamSystem, read: WindowRead, pinned: Plan, fitting: Fitting) -> Plan:
    """A plan that was pinned for an earlier landing, with payloads as the reader lands them now; pinned so.

    One by event time is planned anew where that is another time, or where it is read from what is decoded otherwise.
    """
    plan = decoded_now(system, read.question.source, pinned)
    is_other_time = pinned.basis == "event" and pinned.terms is not None and pinned.terms.has_other_time(read.terms)
    if plan == pinned and not is_other_time:
        return pinned
    if pinned.basis == "event":
        plan = fresh_plan(journal, system, read, replan=True, fitting=fitting)
        return journal.replan(read.source_key, plan)
    return journal.decode_pinned(read.source_key, plan)


def _request(system: StreamSystem, read: WindowRead) -> PlanRequest:
    return replace(
        plan_request(system, read.question, read.reader),
        on_loss=read.on_loss,
        on_unproven=read.on_unproven,
        target_split_bytes=read.target_split_bytes,
    )


def _with_beside(journal: Journal, source_key: str, request: PlanRequest) -> PlanRequest:
    """The request with the edges of the windows that are pinned beside it, for a system that cannot look a time up."""
    if request.basis != "event" or declaration_of(request.source.system).finds_times:
        return request
    try:
        before, behind = journal.beside(source_key, request.reader, request.window)
    except PlanMismatch as error:
        # as far as cuts and watermarks are what they were, its own edges are those that the other one has
        _log.warning("%s: a window beside %s is not looked at: %s", request.source, request.window, error)
        return request
    edges = [_edges(plan) for plan in (before, behind)]
    beside = Beside(
        edges[0][1], edges[1][0], before.source.identity if before else (), behind.source.identity if behind else ()
    )
    return replace(request, beside=beside)


def _edges(plan: Plan | None) -> tuple[Cut | None, Cut | None]:
    """Between which events without a time are a plan's."""
    rows = plan.filter if plan else None
    stored = rows.stored if isinstance(rows, FieldFilter) else None
    return stored.edges if stored and stored.edges else (None, None)


def _check_terms(read: WindowRead, pinned: Plan) -> None:
    """What was asked when the plan was pinned still stands; some of it may no longer be asked otherwise.

    Raises:
        TermsChanged: it has another basis or other cuts, or leaves out what may no longer be left out.
    """
    source, window = read.question.source, read.question.window
    if pinned.basis != read.basis:
        raise TermsChanged(source, window, [f"basis {pinned.basis} instead of {read.basis}"])
    if pinned.terms is not None and pinned.terms.has_other_cuts(read.terms):
        raise TermsChanged(source, window, [f"other cuts than {read.question.basis}"])
    if pinned.losses and read.on_loss == "fail":
        lost = f"{len(pinned.losses)} losses accepted by on_loss='record', the first of {pinned.losses[0].shard}"
        raise TermsChanged(source, window, [f"{lost}: {pinned.losses[0].cause}"])
    if pinned.unproven and read.on_unproven == "fail":
        first = pinned.unproven[0]
        raise TermsChanged(source, window, [f"a start that is {first.verdict}, accepted by on_unproven='land'"])


def _tell_changes(read: WindowRead, plan: Plan) -> None:
    """What is asked otherwise now, and counts only for windows that are planned."""
    source, window = read.question.source, read.question.window
    for change in plan.terms.changes(read.terms) if plan.terms else ():
        _log.warning(
            "%s: window %s was planned with %s, and is read so; replan=True plans it anew", source, window, change
        )


# Basis `append`


def _between_recorded_cuts(journal: Journal, system: StreamSystem, request: PlanRequest, max_skew: timedelta) -> Plan:
    """The plan between the recorded cuts of a window's edges, marked with how much later these were sampled.

    Raises:
        WindowNotReady: the window has not ended, or no cut was recorded since.
        NoCutNearby: an edge's cut is further off than `max_skew`.
    """
    from airflow_provider_streams.journal.append import recorded_edges  # noqa: PLC0415 - SQL when used

    edges = recorded_edges(journal, request.whole or request.source, request.window, max_skew)
    between = replace(
        request,
        start_cut=edges.start.cut,
        end_cut=edges.end.cut,
        start_identity=edges.start.identity,
        end_identity=edges.end.identity,
    )
    if request.whole is not None:
        between = _of_single(system, between)
    plan = plan_with_sightings(journal, system, between)
    return replace(plan, skew_seconds=edges.skew_seconds)


def _of_single(system: StreamSystem, request: PlanRequest) -> PlanRequest:
    """The request between recorded cuts of a whole, for one topic or stream of it.

    One that is new to the first cut is read from its beginning. One that was made after the second one holds nothing of
    the window: it begins and ends where it begins now.
    """
    source = request.source
    start, end = (part_of_cut(cut or Cut({}), source) for cut in (request.start_cut, request.end_cut))
    if not end:
        start = end = system.parse_cut(source, "earliest")
    lives = (part_of_life(life, source) for life in (request.start_identity, request.end_identity))
    start_life, end_life = lives
    return replace(request, start_cut=start, end_cut=end, start_identity=start_life, end_identity=end_life)


# Basis `chained`


def _pin_chained(journal: Journal, system: StreamSystem, read: WindowRead, fitting: Fitting, *, replan: bool) -> Plan:
    """A plan that goes on where the window before it ends; made again when another run was quicker."""
    for _ in range(_CHAIN_TRIES):
        chain = _checked_chain(journal, read, replan=replan)
        request = _going_on(_request(system, read), chain)
        plan = replace(plan_with_sightings(journal, system, request), terms=read.terms)
        fitting.check(system, plan)
        pinned = journal.pin_chained(read.source_key, plan, chain, replan=replan)
        if pinned is not None:
            return pinned
    raise WindowNotReady(read.question.source, read.question.window, "other runs of its chain keep being quicker")


def _checked_chain(journal: Journal, read: WindowRead, *, replan: bool) -> Chain:
    """What lies around the window, if it is its turn.

    Raises:
        ChainOrder: later windows were planned already.
        WindowNotReady: an earlier one is not covered yet, and this one shall not take its place, or it is being read.
    """
    source, window = read.question.source, read.question.window
    chain = journal.chain(read.source_key, read.reader, window)
    if chain.later is not None:
        raise ChainOrder(source, read.reader, window, chain.later)
    if chain.open and not replan:
        left = f"the window {chain.open[0]} before it is not covered yet, and a chain is read in order"
        raise WindowNotReady(
            source, window, f"{left}; run that one again, or read both as one with replan=True on this one"
        )
    if chain.running:
        raise WindowNotReady(
            source, window, f"the window {chain.running[0]} before it is being read; if that was killed, run it again"
        )
    return chain


def _going_on(request: PlanRequest, chain: Chain) -> PlanRequest:
    if chain.before is None:
        return request
    before = chain.before.plan
    return replace(request, start_cut=before.end_cut, start_identity=before.source.identity)
