"""What a window is planned with: the request to a system's planner."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.stream.tail_observation import Incarnation, TailObservation
from airflow_provider_streams.model.window.basis import SLACK, BasisName, EventTime
from airflow_provider_streams.model.window.window import EARLIEST, LATEST, Window, earlier, later

OnLoss = Literal["fail", "record"]

OnUnproven = Literal["land", "fail"]
"""What becomes of a window that may lack events removed before the source was first observed."""

DEFAULT_SPLIT_BYTES = 64 * 1024 * 1024

_MOST_BYTES = 1 << 63


@dataclass(frozen=True, slots=True)
class RecordedBounds:
    """Basis `event`: recorded cuts around a window, for a system that cannot look up a time."""

    start: Cut | None
    """Sampled before anything of the window can have been stored; None: none was."""
    since: Cut
    """Sampled at the window's start: an event without a time belongs to the window if it is after this cut .."""
    until: Cut
    """.. and before this one, sampled at the window's end."""
    end: Cut
    """Sampled when all events of the window that are not late were stored."""
    start_incarnation: Incarnation = ()
    end_incarnation: Incarnation = ()


@dataclass(frozen=True, slots=True)
class NeighborCuts:
    """Basis `event`: where the pinned windows before and after one meet it, for events without a time."""

    start: Cut | None = None
    """Where those of the window before it end; None: that was not planned."""
    end: Cut | None = None
    """Where those of the window after it begin; None: as above."""
    start_incarnation: Incarnation = ()
    end_incarnation: Incarnation = ()


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a system's planner resolves; what the journal knows (`start_cut`, `end_cut`, ..) is already filled in."""

    source: Source
    window: Window
    reader: str
    basis: BasisName = "publish"
    slack: timedelta = SLACK
    start_cut: Cut | None = None
    """Given by the bases `cuts`, `append` and `chained`; None: resolved from the window, or the head."""
    end_cut: Cut | None = None
    """Given by the bases `cuts` and `append`; None: resolved from the window, or the tail."""
    start_incarnation: Incarnation = ()
    """The incarnation of the source that the start is a cut of; empty: not known, for example of users' own cuts."""
    end_incarnation: Incarnation = ()
    """The same of the end."""
    event: EventTime = field(default_factory=EventTime)
    """Basis `event`: its options, except for `slack`, which is above."""
    around: RecordedBounds | None = None
    """Basis `event`: where the stream has no watermarks."""
    neighbors: NeighborCuts = field(default_factory=NeighborCuts)
    on_loss: OnLoss = "fail"
    on_unproven: OnUnproven = "land"
    first_seen: TailObservation | None = None
    """The newest tail observation of the source that is not later than `seen_before`; else the first of all.

    None: the source was never observed."""
    seen_later: tuple[TailObservation, ...] = ()
    """Those after it, in order: all up to `seen_until`, and the first one after that."""
    cuts_taken: tuple[datetime | None, datetime | None] = (None, None)
    """When the start and the end were cuts of the tail; None: not known, so the window's own times count."""
    named_before: tuple[str, ...] = ()
    """The topics or streams of the reader's last plan, of a source whose system lists them."""
    target_split_bytes: int = DEFAULT_SPLIT_BYTES
    whole: Source | None = None
    """The source that this one is a topic or stream of: its recorded cuts and tail observations count as well."""
    changes_before: ChangeFormat | None = None
    """Of database changes: what the reader's former window pinned. Its columns stay; None: there is none."""
    with_schemas: bool = True
    """Whether the plan says how payloads are decoded; a request for positions alone does not need it."""

    def __post_init__(self) -> None:
        if self.slack < timedelta(0):
            raise InvalidRequest(f"slack must not be negative, got {self.slack}")
        # a float from an option may be nan, which no comparison finds
        if not 0 < self.target_split_bytes < _MOST_BYTES:
            raise InvalidRequest(f"target_split_bytes must be positive, got {self.target_split_bytes}")
        if self.basis == "publish":
            self.check_years(self.slack)

    def check_years(self, wider: timedelta) -> None:
        """Check that the calendar has such times.

        Raises:
            InvalidRequest: the window, wider on both sides, leaves the calendar.
        """
        room = min(self.window.start - EARLIEST, LATEST - self.window.end)
        if room < wider:
            raise InvalidRequest(f"window {self.window}, {wider} wider on both sides, leaves the years 1 to 9999")

    @property
    def stored(self) -> Window:
        """When the window's events that are not late were stored, by their producers' clocks."""
        if self.basis != "event":
            return self.window
        return Window(earlier(self.window.start, self.slack), later(self.window.end, self.event.allowed_lateness))

    @property
    def seen_before(self) -> datetime:
        """A tail observation that is not later is before all events of the window."""
        if self.basis in ("publish", "event"):
            return earlier(self.stored.start, self.slack)
        return self.cuts_taken[0] or self.window.start

    @property
    def seen_until(self) -> datetime:
        """A tail observation that is not earlier shows nothing of the window's events, except those removed by then."""
        return LATEST if self.basis == "chained" else self.cuts_taken[1] or self.stored.end

    @property
    def tail_observations(self) -> tuple[TailObservation, ...]:
        """What was observed of the source, in order."""
        return (*([self.first_seen] if self.first_seen else []), *self.seen_later)
