"""When a window's end is certain: the question, its answer, and the predicates that sensors and triggers share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_streams.errors import WindowNotReady
from airflow_provider_streams.model.basis import (
    Basis,
    Cuts,
    EventTime,
    PublishTime,
    RecordedCuts,
    basis_from_json,
    basis_to_json,
)
from airflow_provider_streams.model.plan import PlanRequest
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.window import Window

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer; `reason` says what is still missing."""

    ready: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WindowQuestion:
    """Is this window's end certain?"""

    source: Source
    window: Window
    basis: Basis = field(default_factory=PublishTime)

    @property
    def not_before(self) -> datetime:
        """The first moment at which the answer can be yes; nothing has to be asked earlier."""
        return self.basis.not_before(self.window)

    def wait(self, now: datetime) -> Readiness | None:
        """Not ready, while time alone says so; None once the system must be asked."""
        if now >= self.not_before:
            return None
        return Readiness(ready=False, reason=f"it is certain at {self.not_before.isoformat()} at the earliest")

    def to_json(self) -> dict[str, Any]:
        """Window and basis as plain JSON values."""
        return {"window": str(self.window), "basis": basis_to_json(self.basis)}

    @classmethod
    def from_json(cls, source: Source, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(source, Window.parse(data["window"]), basis_from_json(data["basis"]))


def plan_request(system: StreamSystem, question: WindowQuestion, reader: str) -> PlanRequest:
    """What a planner is asked about a window, with the user's cuts parsed by its system."""
    basis = question.basis
    request = PlanRequest(question.source, question.window, reader, basis=basis.name)
    if isinstance(basis, PublishTime | EventTime):
        return replace(request, slack=basis.slack)
    if not isinstance(basis, Cuts):
        return request
    return replace(
        request,
        start_cut=None if basis.start is None else system.parse_cut(question.source, basis.start),
        end_cut=None if basis.end is None else system.parse_cut(question.source, basis.end),
    )


def ask_planner(system: StreamSystem, question: WindowQuestion) -> Readiness:
    """Ready when the system can plan the window now; whether its start was trimmed is the read's business."""
    if waiting := question.wait(datetime.now(UTC)):
        return waiting
    try:
        system.plan(replace(plan_request(system, question, "readiness"), on_loss="record"))
    except WindowNotReady as not_ready:
        return Readiness(ready=False, reason=not_ready.reason)
    return Readiness(ready=True)


def ask_journal(journal: Journal, question: WindowQuestion, basis: RecordedCuts) -> Readiness:
    """Ready when the cuts of both edges are recorded; the system is not asked at all.

    Raises:
        NoCutNearby: an edge's cut can never be near enough.
    """
    from airflow_provider_streams.journal.append import recorded_edges  # noqa: PLC0415 - SQL when used

    if waiting := question.wait(datetime.now(UTC)):
        return waiting
    try:
        recorded_edges(journal, question.source, question.window, basis.max_skew)
    except WindowNotReady as not_ready:
        return Readiness(ready=False, reason=not_ready.reason)
    return Readiness(ready=True)
