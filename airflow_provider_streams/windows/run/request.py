"""What a task reads: which windows of which source, for whom, how, and into which table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Self

from airflow_provider_streams.errors import (
    AccessError,
    InvalidRequest,
    InvalidWindow,
    JournalError,
    ReadStalled,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.model.plan.plan import DEFAULT_SPLIT_BYTES, OnLoss, OnUnproven
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.sinks.placeholders import SourceTable
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.backfill import Limits, Selection
from airflow_provider_streams.model.window.basis import Basis, Chained, Cuts, PublishTime, event_time_of
from airflow_provider_streams.model.window.coverage import Coverage, RunRef, WindowState
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import WindowSchedule, schedule_through
from airflow_provider_streams.windows.claim.landing_defaults import schedule_of
from airflow_provider_streams.windows.claim.landing_request import LandingRequest
from airflow_provider_streams.windows.claim.overrides import Overrides
from airflow_provider_streams.windows.plan.planning import WindowRead
from airflow_provider_streams.windows.plan.readiness import WindowQuestion

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal


@dataclass(frozen=True, slots=True)
class OneWindow:
    """A single window, read again if it is covered."""

    window: Window
    is_own: Callable[[RunRef], bool] | None = None
    """Whether a run is an earlier try of this task: a table that such a run covered is not read again."""

    limits: ClassVar[Limits] = Limits(max_bytes=1 << 62, max_windows=500)
    """One job reads the window of all tables, unless they are more than this: each holds a file open meanwhile."""
    lookback: ClassVar[timedelta | None] = None
    select: ClassVar[tuple[str, ...]] = ()

    @property
    def span(self) -> Window:
        """From when to when."""
        return self.window

    def cells(self, window_schedule: WindowSchedule | None) -> Sequence[Window]:  # noqa: ARG002 - any schedule
        """The windows that may be read, in order of time."""
        return (self.window,)

    def chosen(self, coverage: Coverage) -> Sequence[WindowState]:  # noqa: ARG002 - whatever is covered
        """The windows to read."""
        return (WindowState(self.window, "missing"),)

    def is_wanted(self, coverage: Coverage, *, is_gone: bool) -> bool:
        """Whether the window must be read into a table; one whose source is gone cannot be read again."""
        runs = [one.run for one in coverage.select("covered") if one.window == self.window and one.run is not None]
        return not any(is_gone or (self.is_own is not None and self.is_own(run)) for run in runs)

    def fails_with(self, error: StreamsError) -> bool:  # noqa: ARG002 - with any
        """Whether an error in planning one window is the table's."""
        return True


@dataclass(frozen=True, slots=True)
class WindowsOfSpan:
    """The windows of a span of time that a selection picks, many in one job.

    Raises:
        InvalidRequest: late rows are to be read, without a time by which they may be late.
    """

    span: Window
    selection: Selection
    length: timedelta | str | None = None
    """Of a window; None: as the reader's windows are."""
    lookback: timedelta | None = None
    """How long after a window's end its late rows may be stored; None: late rows are not looked for."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if "late" in self.selection.select and self.lookback is None:
            raise InvalidRequest(
                "select='late' reads windows again as far as their late rows were stored: say how late that may be "
                "with lookback=.."
            )

    @property
    def select(self) -> tuple[str, ...]:
        """The names of the selection."""
        return tuple(sorted(self.selection.select))

    def cells(self, window_schedule: WindowSchedule | None) -> Sequence[Window]:
        """The windows that may be read, in order of time."""
        return [] if window_schedule is None else list(window_schedule.cells(self.span.start, self.span.end))

    def chosen(self, coverage: Coverage) -> Sequence[WindowState]:
        """The windows to read."""
        return self.selection.of(coverage, self.span)

    def is_wanted(self, coverage: Coverage, *, is_gone: bool) -> bool:  # noqa: ARG002 - covered rows stay
        """Whether a part of the span must be read into a table."""
        known = coverage.windows
        return not all(one.state == "covered" for one in known) and any(map(self.selection.takes, known))

    def fails_with(self, error: StreamsError) -> bool:
        """Whether an error in planning one window is the table's: its other windows would meet it again."""
        if isinstance(error, SystemUnavailable):
            return not isinstance(error, ReadStalled)
        return isinstance(error, AccessError | SourceNotFound | JournalError)  # a window that is not ready waits


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The windows that a task reads, for whom, how, and where their rows go.

    Raises:
        InvalidRequest: a basis whose windows need an order, for a span; late rows of many tables.
    """

    source: Source
    reader: str
    windows: OneWindow | WindowsOfSpan
    task: TaskInstanceKey
    landing: Landing = field(default_factory=Landing)
    basis: Basis = field(default_factory=PublishTime)
    window_schedule: WindowSchedule | None = None
    """How the reader's windows tile time; None: the caller does not know."""
    on_loss: OnLoss = "fail"
    on_unproven: OnUnproven = "land"
    undecodable: DecodeErrorPolicy = field(default_factory=DecodeErrorPolicy)
    target_split_bytes: int = DEFAULT_SPLIT_BYTES
    overrides: Overrides = field(default_factory=Overrides)
    tables: Sink | None = None
    """A sink with placeholders: each topic or stream has a table, and `landing` is what the tables have in common."""
    whole: Source | None = None
    """See `PlanRequest`."""

    def __post_init__(self) -> None:
        if isinstance(self.windows, WindowsOfSpan):
            check_any_order(self.basis)
        if self.tables is not None and self.windows.lookback is not None:
            raise InvalidRequest(
                "late rows are looked for in one topic or stream at a time: leave out lookback, or name one, and its "
                "table"
            )

    @property
    def landing_request(self) -> LandingRequest:
        """What the reader is to land."""
        return LandingRequest(
            self.source,
            self.reader,
            self.landing,
            self.basis.name,
            self.window_schedule,
            event_time_of(self.basis),
            is_scheduled=isinstance(self.windows, OneWindow),
        )

    def of_table(self, table: SourceTable) -> Self:
        """The request of one topic or stream."""
        landing = Landing(table.sink, self.landing.transform, self.landing.columns)
        return replace(self, source=table.source, landing=landing, tables=None, whole=self.source)

    def read_of(self, window: Window) -> WindowRead:
        """One of its windows."""
        return WindowRead(
            WindowQuestion(self.source, window, self.basis, self.whole),
            self.reader,
            self.on_loss,
            self.target_split_bytes,
            self.on_unproven,
            self.undecodable,
            self.landing,
        )

    def coverage(self, journal: Journal, span: Window | None = None) -> Coverage:
        """What the journal knows of a span; None: the span of all windows."""
        span = span or self.windows.span
        return journal.coverage(self.source.key, self.reader, span.start, span.end, self.window_schedule)

    def with_schedule(self, journal: Journal, sources: Iterable[Source]) -> Self:
        """The same with the schedule of its windows: the requested one, else one of the sources' own.

        Raises:
            InvalidWindow: none is requested, and nothing was read yet; or a new one has no whole window in the span.
        """
        if self.window_schedule is not None or isinstance(self.windows, OneWindow):
            return self
        found = (schedule_of(journal, source.key, self.reader) for source in sources)
        known, length, span = next(filter(None, found), None), self.windows.length, self.windows.span
        if length is not None:
            own, known = known, schedule_through(length, span.start)
            if str(known) != str(own) and next(known.cells(span.start, span.end), None) is None:
                raise InvalidWindow(  # it would become the reader's
                    f"no whole window of {known} is in {span}, the first one is {known.cell(span.start)}"
                )
        if known is None:
            raise InvalidWindow(
                f"reader {self.reader!r} of {self.source} has no window schedule yet: say how long its windows are, "
                "with window_length='1h', or '1d Europe/Berlin'"
            )
        return replace(self, window_schedule=known)


def check_any_order(basis: Basis) -> None:
    """Refuse a basis whose windows cannot be read in any order.

    Raises:
        InvalidRequest: it is one.
    """
    if isinstance(basis, Cuts | Chained):
        raise InvalidRequest(
            "a backfill reads windows of time, in any order: its basis cannot be Chained() or Cuts(..)"
        )
