"""When a window's end is certain: the question, its answer, and the predicates that sensors and triggers share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_streams.errors import WindowNotReady
from airflow_provider_streams.model.basis import MAX_SKEW, BasisLike, Cuts
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
    basis: BasisLike = "publish"
    slack: timedelta = timedelta(seconds=60)
    max_skew: timedelta = MAX_SKEW
    """Basis `append`: how much later than an edge its cut may be recorded."""

    @property
    def not_before(self) -> datetime:
        """The first moment at which the answer can be yes; nothing has to be asked earlier."""
        if isinstance(self.basis, Cuts) or self.basis == "event":
            return datetime.fromtimestamp(0, UTC)  # events may carry any time
        return self.window.end + self.slack if self.basis == "publish" else self.window.end

    def wait(self, now: datetime) -> Readiness | None:
        """Not ready, while time alone says so; None once the system must be asked."""
        if now >= self.not_before:
            return None
        return Readiness(ready=False, reason=f"it is certain at {self.not_before.isoformat()} at the earliest")

    def to_json(self) -> dict[str, Any]:
        """Basis, window and slack as plain JSON values."""
        return {"window": str(self.window), **terms_to_json(self.basis, self.slack, self.max_skew)}

    @classmethod
    def from_json(cls, source: Source, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        basis = data["basis"]
        if isinstance(basis, Mapping):
            basis = Cuts(basis["start"], basis["end"])
        return cls(
            source,
            Window.parse(data["window"]),
            basis,
            timedelta(seconds=data["slack_seconds"]),
            timedelta(seconds=data["max_skew_seconds"]),
        )


def terms_to_json(basis: BasisLike, slack: timedelta, max_skew: timedelta) -> dict[str, Any]:
    """A question's JSON values, but for the window."""
    plain: Any = {"start": _plain(basis.start), "end": _plain(basis.end)} if isinstance(basis, Cuts) else basis
    return {"basis": plain, "slack_seconds": slack.total_seconds(), "max_skew_seconds": max_skew.total_seconds()}


def plan_request(system: StreamSystem, question: WindowQuestion, reader: str) -> PlanRequest:
    """What a planner is asked about a window, with the user's cuts parsed by its system."""
    basis = question.basis
    if not isinstance(basis, Cuts):
        return PlanRequest(question.source, question.window, reader, basis=basis, slack=question.slack)
    return PlanRequest(
        question.source,
        question.window,
        reader,
        basis="cuts",
        slack=question.slack,
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


def ask_journal(journal: Journal, question: WindowQuestion) -> Readiness:
    """Basis `append`: ready when the cuts of both edges are recorded; the system is not asked at all.

    Raises:
        NoCutNearby: an edge's cut can never be near enough.
    """
    from airflow_provider_streams.journal.append import recorded_edges  # noqa: PLC0415 - SQL when used

    if waiting := question.wait(datetime.now(UTC)):
        return waiting
    try:
        recorded_edges(journal, question.source, question.window, question.max_skew)
    except WindowNotReady as not_ready:
        return Readiness(ready=False, reason=not_ready.reason)
    return Readiness(ready=True)


def _plain(cut: str | Mapping[str, str] | None) -> str | dict[str, str] | None:
    return dict(cut) if isinstance(cut, Mapping) else cut
