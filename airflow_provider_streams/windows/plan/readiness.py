"""When a window's end is certain, or a cut recorded: the questions that sensors, triggers and planners share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_streams.errors import SourceDeleted, SourceNotFound, StreamsError, WindowNotReady
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import (
    SLACK,
    Basis,
    Cuts,
    EventTime,
    PublishTime,
    RecordedCuts,
    basis_from_json,
    basis_to_json,
)
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.explicit_cuts import start_of
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.topic_parts import part_of_around

if TYPE_CHECKING:
    from airflow_provider_streams.journal.evidence.recorded_edges import Edges
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem


@dataclass(frozen=True, slots=True)
class WindowQuestion:
    """Is this window's end certain?"""

    source: Source
    window: Window
    basis: Basis = field(default_factory=PublishTime)
    whole: Source | None = None
    """See `PlanRequest`."""

    @property
    def not_before(self) -> datetime:
        """The first moment at which the answer can be yes; nothing has to be asked earlier."""
        return self.basis.not_before(self.window)

    def early(self, now: datetime) -> str:
        """Why time alone says that it is not certain; empty once the system must be asked."""
        return "" if now >= self.not_before else f"it is certain at {self.not_before.isoformat()} at the earliest"

    def yes(self) -> Readiness:
        """The answer that it is."""
        return Readiness(ready=True, facts={"window": self.window.to_json()})

    def not_ready(self, because: str) -> Readiness:
        """The answer that it is not."""
        because = f"window {self.window} of {self.source}: {because}"
        return Readiness(ready=False, because=because, not_before=self.not_before)

    def to_json(self) -> dict[str, Any]:
        """Window and basis as plain JSON values."""
        return {"window": str(self.window), "basis": basis_to_json(self.basis)}

    @classmethod
    def from_json(cls, source: Source, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(source, Window.parse(data["window"]), basis_from_json(data["basis"]))


def plan_request(system: StreamSystem, question: WindowQuestion, reader: str) -> PlanRequest:
    """What a planner is asked about a window, with the user's cuts parsed by its system."""
    basis, request = question.basis, timed_request(question, reader)
    if not isinstance(basis, Cuts):
        return request
    return replace(
        request,
        start_cut=start_of(system, question.source, basis.start),
        end_cut=None if basis.end is None else system.parse_cut(question.source, basis.end),
    )


def timed_request(question: WindowQuestion, reader: str) -> PlanRequest:
    """The same without a user's cuts."""
    basis = question.basis
    slack = basis.slack if isinstance(basis, PublishTime | EventTime) else SLACK
    event = basis if isinstance(basis, EventTime) else EventTime()
    request = PlanRequest(question.source, question.window, reader, basis=basis.name, slack=slack, event=event)
    return replace(request, whole=question.whole)


def with_recorded(journal: Journal, request: PlanRequest) -> PlanRequest:
    """The request with the recorded cuts around a window of event time, for a system that cannot look a time up.

    Raises:
        NoCutNearby: one of them was pruned.
    """
    from airflow_provider_streams.journal.evidence.recorded_edges import recorded_around  # noqa: PLC0415 - SQL when used

    if request.basis != "event" or declaration_of(request.source.system).finds_times:
        return request
    around = recorded_around(journal, request)
    if around is not None and request.whole is not None:
        around = part_of_around(around, request.source)
    return replace(request, around=around)


def check_planned(system: StreamSystem, question: WindowQuestion, journal: Journal | None = None) -> None:
    """See that the system can plan the window now; whether its start was trimmed is the read's business.

    Raises:
        WindowNotReady: it cannot.
    """
    request = replace(plan_request(system, question, "readiness"), on_loss="record", with_schemas=False)
    system.plan(request if journal is None else with_recorded(journal, request))


def check_recorded(journal: Journal, system: StreamSystem, question: WindowQuestion, basis: RecordedCuts) -> None:
    """See that the cuts of both edges are recorded; see `edges_of`."""
    edges_of(journal, system, question.source, question.window, basis.max_skew)


def edges_of(journal: Journal, system: StreamSystem, source: Source, window: Window, max_skew: timedelta) -> Edges:
    """The recorded cuts of a window's edges. Of a source that does not exist no cut can be waited for.

    Raises:
        WindowNotReady: one is not recorded yet.
        NoCutNearby: an edge's cut can never be near enough.
        SourceNotFound: one is not recorded, as there is no such source.
        SourceDeleted: one is not recorded, as there is no such source any more, or only one that was made again.
    """
    from airflow_provider_streams.journal.evidence.recorded_edges import recorded_edges  # noqa: PLC0415 - SQL when used

    try:
        return recorded_edges(journal, source, window, max_skew)
    except WindowNotReady:
        _check_exists(journal, system, source, window)
        raise


def _check_exists(journal: Journal, system: StreamSystem, source: Source, window: Window) -> None:
    """See that the source of the last cut is still there; other trouble is left to the recorder and the read."""
    last = next(iter(journal.recorded_cuts(source.key, 1)), None)
    try:
        system.tail(source)
        other = system.other_incarnation(source, last.incarnation) if last else None
    except SourceNotFound as error:
        if last:
            raise SourceDeleted(source, window, last.sampled_from) from error
        raise
    except StreamsError:
        return
    if last and other:
        raise SourceDeleted(source, window, last.sampled_from, other.found)


def cut_recorded(journal: Journal, source: Source, moment: datetime) -> Readiness:
    """Is a cut recorded that was sampled at or after a time?

    Raises:
        NoCutNearby: it may have been pruned.
    """
    if datetime.now(UTC) < moment:
        return Readiness(ready=False, because=f"{moment.isoformat()} is to come", not_before=moment)
    found = journal.cut_at(source.key, moment)
    if found is None:
        return Readiness(ready=False, because=f"no cut of {source} was recorded at or after {moment.isoformat()}")
    facts = {
        "cut": found.cut.to_json(),
        "sampled_from": found.sampled_from.isoformat(),
        "sampled_to": found.sampled_to.isoformat(),
        "skew_seconds": round(found.skew(moment).total_seconds(), 3),
        "recorder": found.recorder,
    }
    return Readiness(ready=True, facts=facts)
