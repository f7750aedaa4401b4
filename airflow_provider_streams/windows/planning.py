"""Plan a window and pin the plan: whoever reads the window, and however often, reads that one."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import ChainOrder, TermsChanged, WindowNotReady
from airflow_provider_streams.model.basis import BasisName, Chained, PublishTime, RecordedCuts
from airflow_provider_streams.model.plan import DEFAULT_SPLIT_BYTES, OnLoss, OnUnproven, Plan, PlanRequest, Terms
from airflow_provider_streams.windows.readiness import WindowQuestion, plan_request
from airflow_provider_streams.windows.sightings import plan_with_sightings

if TYPE_CHECKING:
    from airflow_provider_streams.journal.chains import Chain
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)

_CHAIN_TRIES = 5


@dataclass(frozen=True, slots=True)
class WindowRead:
    """One window to read, for whom, and how."""

    question: WindowQuestion
    reader: str
    on_loss: OnLoss = "fail"
    target_split_bytes: int = DEFAULT_SPLIT_BYTES
    on_unproven: OnUnproven = "land"

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
        slack = basis.slack if isinstance(basis, PublishTime) else None
        skew = basis.max_skew if isinstance(basis, RecordedCuts) else None
        return Terms(slack, skew, self.on_loss)


def fresh_plan(journal: Journal, system: StreamSystem, read: WindowRead) -> Plan:
    """A plan made now, pinned nowhere.

    Raises:
        WindowNotReady, DataLoss, AccessError, SystemUnavailable: as `StreamSystem.plan`.
        ChainOrder: basis `chained`, and this reader has gone on behind the window already.
        NoCutNearby: basis `append`, and no cut was recorded near enough to an edge.
    """
    request = _request(system, read)
    basis = read.question.basis
    if isinstance(basis, RecordedCuts):
        plan = _between_recorded_cuts(journal, system, request, basis.max_skew)
    elif isinstance(basis, Chained):
        chain = _checked_chain(journal, read, replan=False)
        plan = plan_with_sightings(journal, system, _going_on(request, chain))
    else:
        plan = plan_with_sightings(journal, system, request)
    return replace(plan, terms=read.terms)


def pinned_plan(journal: Journal, system: StreamSystem, read: WindowRead, *, replan: bool) -> Plan:
    """The plan that every run of this window reads: the pinned one, else a fresh one, pinned now.

    Args:
        journal: keeps the pins.
        system: plans.
        read: which window.
        replan: an explicit act: a fresh plan takes the pin's place.

    Raises:
        TermsChanged: it is pinned, and what is asked now contradicts the terms under which it was.
        StreamsError: as `fresh_plan`.
    """
    pinned = None if replan else journal.pinned(read.source_key, read.reader, read.question.window)
    if pinned is not None:
        _compare_terms(read, pinned)
        return pinned
    if isinstance(read.question.basis, Chained):
        return _pin_chained(journal, system, read, replan=replan)
    plan = fresh_plan(journal, system, read)
    return journal.replan(read.source_key, plan) if replan else journal.pin(read.source_key, plan)


def _request(system: StreamSystem, read: WindowRead) -> PlanRequest:
    return replace(
        plan_request(system, read.question, read.reader),
        on_loss=read.on_loss,
        on_unproven=read.on_unproven,
        target_split_bytes=read.target_split_bytes,
    )


def _compare_terms(read: WindowRead, pinned: Plan) -> None:
    """What was asked when the plan was pinned still stands; where that is no longer asked, it is told or refused.

    Raises:
        TermsChanged: it has another basis, or leaves out what may no longer be left out.
    """
    source, window = read.question.source, read.question.window
    if pinned.basis != read.basis:
        raise TermsChanged(source, window, [f"basis {pinned.basis} instead of {read.basis}"])
    if pinned.losses and read.on_loss == "fail":
        lost = f"{len(pinned.losses)} losses accepted by on_loss='record', the first of {pinned.losses[0].shard}"
        raise TermsChanged(source, window, [f"{lost}: {pinned.losses[0].cause}"])
    if pinned.unproven and read.on_unproven == "fail":
        first = pinned.unproven[0]
        raise TermsChanged(source, window, [f"a start that is {first.verdict}, accepted by on_unproven='land'"])
    for change in pinned.terms.changes(read.terms) if pinned.terms else ():
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

    edges = recorded_edges(journal, request.source, request.window, max_skew)
    between = replace(
        request,
        start_cut=edges.start.cut,
        end_cut=edges.end.cut,
        start_identity=edges.start.identity,
        end_identity=edges.end.identity,
    )
    plan = plan_with_sightings(journal, system, between)
    return replace(plan, skew_seconds=edges.skew_seconds)


# Basis `chained`


def _pin_chained(journal: Journal, system: StreamSystem, read: WindowRead, *, replan: bool) -> Plan:
    """A plan that goes on where the window before it ends; made again when another run was quicker."""
    for _ in range(_CHAIN_TRIES):
        chain = _checked_chain(journal, read, replan=replan)
        request = _going_on(_request(system, read), chain)
        plan = replace(plan_with_sightings(journal, system, request), terms=read.terms)
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
