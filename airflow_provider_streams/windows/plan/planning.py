"""Plan a window and pin the plan: every run of the window reads the pinned plan."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import ChainOutOfOrder, PlanMismatch, PlanOptionsChanged, WindowNotReady
from airflow_provider_streams.model.plan.plan import (
    DEFAULT_SPLIT_BYTES,
    NeighborCuts,
    OnLoss,
    OnUnproven,
    Plan,
    PlanRequest,
    Terms,
)
from airflow_provider_streams.model.plan.row_filter import FieldFilter
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.window.basis import BasisName, Chained, Cuts, EventTime, PublishTime, RecordedCuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.topic_parts import part_of_cut, part_of_incarnation
from airflow_provider_streams.windows.claim.plan_fits_table import RowRequirements
from airflow_provider_streams.windows.plan.payload_decoding import changes_before, decoded_now
from airflow_provider_streams.windows.plan.pruning_by_receipts import narrowed_by_receipts
from airflow_provider_streams.windows.plan.readiness import WindowQuestion, edges_of, plan_request, with_recorded
from airflow_provider_streams.windows.plan.tail_observations import plan_with_tail_observations

if TYPE_CHECKING:
    from airflow_provider_streams.journal.chained_windows import Chain
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)

_CHAIN_TRIES = 5
_ANY = RowRequirements(Landing())


@dataclass(frozen=True, slots=True)
class WindowRead:
    """The unit of work: a window of a source, for whom and how it is read, and the table that its rows land in."""

    question: WindowQuestion
    reader: str
    on_loss: OnLoss = "fail"
    target_split_bytes: int = DEFAULT_SPLIT_BYTES
    on_unproven: OnUnproven = "land"
    undecodable: DecodeErrorPolicy = field(default_factory=DecodeErrorPolicy)
    landing: Landing = field(default_factory=Landing)

    def __str__(self) -> str:
        return str(self.question.source)

    @property
    def window(self) -> Window:
        """Which window."""
        return self.question.window

    @property
    def target(self) -> str:
        """The URI of its table; empty: there is none."""
        return self.landing.sink.asset_uri if self.landing.sink is not None else ""

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
        """The arguments that decide which rows the plan holds."""
        basis = self.question.basis
        if isinstance(basis, EventTime):
            how = (basis.allowed_lateness, basis.event_time, basis.unit, basis.rows)
            return Terms(basis.slack, None, self.on_loss, *how)
        slack = basis.slack if isinstance(basis, PublishTime) else None
        skew = basis.max_skew if isinstance(basis, RecordedCuts) else None
        cuts = basis.digest if isinstance(basis, Cuts) else None
        return Terms(slack, skew, self.on_loss, cuts=cuts)


def fresh_plan(
    journal: Journal, system: StreamSystem, read: WindowRead, *, replan: bool = False, fitting: RowRequirements = _ANY
) -> Plan:
    """A plan made now, pinned nowhere.

    Args:
        journal: knows cuts, tail observations and chains.
        system: plans.
        read: which window.
        replan: an override: all ranges are read again, even if receipts of other windows prove that they hold nothing
            of this one; in a chain, the window takes the place of open windows before it.
        fitting: what its rows must have.

    Raises:
        LandingMismatch, SchemaOutgrown: as `RowRequirements.check`.
        WindowNotReady, DataLoss, AccessError, SystemUnavailable: as `StreamSystem.plan`.
        ChainOutOfOrder: basis `chained`, and this reader has already planned later windows.
        NoCutNearby: basis `append`, and no cut was recorded near enough to an edge.
        InvalidRequest: a field of the values has the name of a metadata column.
    """
    request = _request(journal, system, read)
    basis = read.question.basis
    if isinstance(basis, RecordedCuts):
        plan = _between_recorded_cuts(journal, system, request, basis.max_skew)
    elif isinstance(basis, Chained):
        chain = _checked_chain(journal, read, replan=replan)
        plan = plan_with_tail_observations(journal, system, _going_on(request, chain))
    else:
        between = _with_neighbors(journal, read.source_key, with_recorded(journal, request))
        plan = plan_with_tail_observations(journal, system, between)
        if isinstance(basis, EventTime) and not replan:
            how = {"lateness": basis.allowed_lateness, "slack": basis.slack}
            plan = narrowed_by_receipts(journal, read.source_key, plan, **how)
    plan = replace(plan, terms=read.terms)
    if plan.decoding is not None:
        declaration_of(plan.source.system).check_fields(plan.decoding)
    fitting.check(system, plan)
    return plan


def pinned_plan(
    journal: Journal, system: StreamSystem, read: WindowRead, *, replan: bool, fitting: RowRequirements = _ANY
) -> Plan:
    """The plan that every run of this window reads: the pinned one, else a fresh one, pinned now.

    A fresh plan whose rows the table cannot take is not pinned: the window keeps the plan that it has.

    Args:
        journal: keeps the pins.
        system: plans.
        read: which window.
        replan: an override: a fresh plan takes the pin's place. See `fresh_plan`.
        fitting: what its rows must have.

    Raises:
        LandingMismatch, SchemaOutgrown: as `RowRequirements.check`. The job checks a pinned plan, unless the table may
            be set aside.
        PlanOptionsChanged: a plan is pinned, and the options now contradict those under which it was.
        PlanMismatch: another run planned the window again meanwhile.
        StreamsError: as `fresh_plan`.
    """
    pinned = None if replan else journal.pinned(read.source_key, read.reader, read.question.window)
    if pinned is not None:
        _check_terms(read, pinned)
        is_earlier = journal.is_of_earlier_landing(read.source_key, pinned)
        plan = _for_landing(journal, system, read, pinned, fitting) if is_earlier else pinned
        if fitting.may_give_way:
            fitting.check(system, plan, journal.later_columns(read.source_key, plan))
        _log_changes(read, plan)
        return plan
    if isinstance(read.question.basis, Chained):
        return _pin_chained(journal, system, read, fitting, replan=replan)
    plan = fresh_plan(journal, system, read, replan=replan, fitting=fitting)
    return journal.replan(read.source_key, plan) if replan else journal.pin(read.source_key, plan)


def _for_landing(
    journal: Journal, system: StreamSystem, read: WindowRead, pinned: Plan, fitting: RowRequirements
) -> Plan:
    """A plan that was pinned for an earlier landing, with payloads as the reader lands them now; pinned so.

    A plan by event time is made again if that time is another one now, or is read from a payload that is.
    """
    plan = decoded_now(system, read.question.source, pinned)
    is_other_time = pinned.basis == "event" and pinned.terms is not None and pinned.terms.has_other_time(read.terms)
    if plan == pinned and not is_other_time:
        return pinned
    if pinned.basis == "event":
        plan = fresh_plan(journal, system, read, replan=True, fitting=fitting)
        return journal.replan(read.source_key, plan)
    return journal.decode_pinned(read.source_key, plan)


def _request(journal: Journal, system: StreamSystem, read: WindowRead) -> PlanRequest:
    return replace(
        plan_request(system, read.question, read.reader),
        on_loss=read.on_loss,
        on_unproven=read.on_unproven,
        target_split_bytes=read.target_split_bytes,
        changes_before=changes_before(journal, read.question.source, read.reader),
    )


def _with_neighbors(journal: Journal, source_key: str, request: PlanRequest) -> PlanRequest:
    """The request with the edges of the pinned windows next to it, for a system that cannot look a time up."""
    if request.basis != "event" or declaration_of(request.source.system).finds_times:
        return request
    try:
        before, after = journal.neighbors(source_key, request.reader, request.window)
    except PlanMismatch as error:
        # as long as cuts and watermarks are the same, its own edges equal those of the neighbor
        _log.warning("%s: a window next to %s is ignored: %s", request.source, request.window, error)
        return request
    edges = [_edges(plan) for plan in (before, after)]
    neighbors = NeighborCuts(
        edges[0][1],
        edges[1][0],
        before.source.incarnation if before else (),
        after.source.incarnation if after else (),
    )
    return replace(request, neighbors=neighbors)


def _edges(plan: Plan | None) -> tuple[Cut | None, Cut | None]:
    """The edges between which events without a time belong to a plan."""
    rows = plan.filter if plan else None
    stored = rows.stored if isinstance(rows, FieldFilter) else None
    return stored.edges if stored and stored.edges else (None, None)


def _check_terms(read: WindowRead, pinned: Plan) -> None:
    """Refuse options that contradict those under which the plan was pinned.

    Raises:
        PlanOptionsChanged: another basis or other cuts, or a loss that was accepted then and is not now.
    """
    source, window = read.question.source, read.question.window
    if pinned.basis != read.basis:
        raise PlanOptionsChanged(source, window, [f"basis {pinned.basis} instead of {read.basis}"])
    if pinned.terms is not None and pinned.terms.has_other_cuts(read.terms):
        raise PlanOptionsChanged(source, window, [f"other cuts than {read.question.basis}"])
    if pinned.losses and read.on_loss == "fail":
        lost = f"{len(pinned.losses)} losses accepted by on_loss='record', the first of {pinned.losses[0].shard}"
        raise PlanOptionsChanged(source, window, [f"{lost}: {pinned.losses[0].cause}"])
    if pinned.unproven and read.on_unproven == "fail":
        first = pinned.unproven[0]
        raise PlanOptionsChanged(source, window, [f"a start that is {first.verdict}, accepted by on_unproven='land'"])


def _log_changes(read: WindowRead, plan: Plan) -> None:
    """Log options that changed, and that count only when a window is planned."""
    source, window = read.question.source, read.question.window
    for change in plan.terms.changes(read.terms) if plan.terms else ():
        _log.warning(
            "%s: window %s was planned with %s, and is read so; replan=True makes a new plan", source, window, change
        )


# Basis `append`


def _between_recorded_cuts(journal: Journal, system: StreamSystem, request: PlanRequest, max_skew: timedelta) -> Plan:
    """The plan between the recorded cuts of a window's edges, with how much later these were sampled.

    Raises:
        WindowNotReady: the window has not ended, or no cut was recorded since.
        NoCutNearby: an edge's cut is further off than `max_skew`.
        SourceNotFound, SourceDeleted: a cut is missing, and can never be recorded.
    """
    edges = edges_of(journal, system, request.whole or request.source, request.window, max_skew)
    between = replace(
        request,
        start_cut=edges.start.cut,
        end_cut=edges.end.cut,
        start_incarnation=edges.start.incarnation,
        end_incarnation=edges.end.incarnation,
        cuts_taken=(edges.start.sampled_from, edges.end.sampled_to),
    )
    if request.whole is not None:
        between = _of_single(system, between)
    plan = plan_with_tail_observations(journal, system, between)
    return replace(plan, skew_seconds=edges.skew_seconds)


def _of_single(system: StreamSystem, request: PlanRequest) -> PlanRequest:
    """The request between recorded cuts of a whole source, for one of its topics or streams.

    One that the first cut does not have is read from its beginning. One that was made after the second cut holds
    nothing of the window: it begins and ends where it begins now.
    """
    source = request.source
    start, end = (part_of_cut(cut or Cut({}), source) for cut in (request.start_cut, request.end_cut))
    if not end:
        start = end = system.parse_cut(source, "earliest")
    incarnations = (part_of_incarnation(life, source) for life in (request.start_incarnation, request.end_incarnation))
    start_incarnation, end_incarnation = incarnations
    return replace(
        request, start_cut=start, end_cut=end, start_incarnation=start_incarnation, end_incarnation=end_incarnation
    )


# Basis `chained`


def _pin_chained(
    journal: Journal, system: StreamSystem, read: WindowRead, fitting: RowRequirements, *, replan: bool
) -> Plan:
    """A plan that starts where the window before it ends; made again when another run was quicker."""
    for _ in range(_CHAIN_TRIES):
        chain = _checked_chain(journal, read, replan=replan)
        request = _going_on(_request(journal, system, read), chain)
        plan = replace(plan_with_tail_observations(journal, system, request), terms=read.terms)
        fitting.check(system, plan)
        pinned = journal.pin_chained(read.source_key, plan, chain, replan=replan)
        if pinned is not None:
            return pinned
    raise WindowNotReady(read.question.source, read.question.window, "other runs of its chain keep being quicker")


def _checked_chain(journal: Journal, read: WindowRead, *, replan: bool) -> Chain:
    """The windows around this one, if it is its turn.

    Raises:
        ChainOutOfOrder: later windows were planned already.
        WindowNotReady: an earlier one is being read, or is not covered and must not be replaced by this one.
    """
    source, window = read.question.source, read.question.window
    chain = journal.chain(read.source_key, read.reader, window)
    if chain.later is not None:
        raise ChainOutOfOrder(source, read.reader, window, chain.later)
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
    return replace(
        request,
        start_cut=before.end_cut,
        start_incarnation=before.source.incarnation,
        cuts_taken=(before.observed_at, None),
    )
