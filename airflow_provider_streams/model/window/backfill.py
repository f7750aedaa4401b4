"""A backfill before it reads: which windows, in which jobs, and what that will cost. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args

from airflow_provider_streams.errors import DataLoss, InvalidRequest, StreamsError, WindowNotReady
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.bin_packing import packed
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.plan.plan_summary import by_remark, bytes_text, note_lines, table_lines
from airflow_provider_streams.model.window.coverage import Coverage, RunRef, WindowState, stretches
from airflow_provider_streams.model.window.window import Window, utc_text

Select = Literal["missing", "failed", "lost", "late", "all"]
"""Which windows a backfill reads.

| select | windows |
|---|---|
| `missing` | all that are not covered; lost ones only if a loss is accepted |
| `failed` | those that were tried and failed, or whose run was killed |
| `lost` | those whose events the stream no longer held |
| `late` | covered ones of which rows appeared after they were read |
| `all` | every window, also covered ones |

A window that another task is reading at this moment is left to it.
"""

SELECTS: tuple[Select, ...] = get_args(Select)

MAX_BYTES: Final = 4 * 1024**3
"""Stored bytes that one Spark job reads."""
MAX_WINDOWS: Final = 200
"""Windows that one Spark job reads."""
NOMINAL_BYTES_PER_SECOND: Final = 50e6
"""Assumed where no covered window shows how fast reading is."""
JOB_SECONDS: Final = 10.0
"""What starting one Spark job takes, roughly."""

Verdict = Literal["ok", "unproven", "part lost", "lost", "failed", "not ready"]

_MAX_LINES = 50
_MAX_SPANS = 5


def parse_select(select: str | Iterable[str]) -> frozenset[Select]:
    """One name, or several.

    Raises:
        InvalidRequest: an unknown one, or none.
    """
    names = [select] if isinstance(select, str) else list(select)
    unknown = [name for name in names if name not in SELECTS]
    if unknown or not names:
        raise InvalidRequest(f"select must be one or several of {', '.join(SELECTS)}; got {select!r}")
    return frozenset(names)  # type: ignore[arg-type]  # checked above


@dataclass(frozen=True, slots=True)
class Selection:
    """The rule that picks windows.

    Args:
        select: see `Select`.
        accepts_loss: lost windows can be covered after all, with what is left of them.
        is_own: whether a run is an earlier try of this backfill, which goes on with its windows.
        is_alive: whether a run that has not ended is still at work. One that is not was killed.
    """

    select: frozenset[Select]
    accepts_loss: bool = False
    is_own: Callable[[RunRef], bool] = lambda run: False  # noqa: ARG005 - the first try
    is_alive: Callable[[RunRef], bool] = lambda run: False  # noqa: ARG005 - a guess: reading twice does no harm

    def of(self, coverage: Coverage, span: Window) -> tuple[WindowState, ...]:
        """The chosen windows that are wholly in a span, in order of time."""
        return tuple(item for item in coverage.windows if span.holds(item.window) and self.takes(item))

    def takes(self, item: WindowState) -> bool:
        """Whether one window is chosen."""
        own = item.run is not None and self.is_own(item.run)
        if item.state == "covered":
            return ("all" in self.select and not own) or ("late" in self.select and bool(item.late_rows))
        if item.state == "running" and item.run is not None and not own and self.is_alive(item.run):
            return False
        return own or bool(self.select & self._names(item))

    def _names(self, item: WindowState) -> set[Select]:
        """By which names a window that is not covered is chosen."""
        if item.state == "lost":
            return {"lost", "all", "missing"} if self.accepts_loss else {"lost", "all"}
        if item.state in ("failed", "running"):
            return {"failed", "missing", "all"}
        # one that was read and then planned again: a try at its late rows that did not come to reading
        return {"missing", "all", "late"} if item.attempts else {"missing", "all"}


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """One chosen window, planned."""

    window: Window
    state: str
    """What the journal said of it before."""
    verdict: Verdict
    bytes: int = 0
    tasks: int = 0
    fingerprint: str = ""
    cause: str = ""
    """Why it cannot be read, or not whole."""
    error: StreamsError | None = field(default=None, compare=False, repr=False)
    """Why it cannot be planned."""
    remarks: tuple[str, ...] = ()
    """Of its plan."""

    @classmethod
    def of(cls, item: WindowState, plan: Plan) -> PlannedWindow:
        """A window that can be read."""
        verdict, causes = _verdict(plan)
        cause = (causes[0] if causes else "") + (f" and {len(causes) - 1} more" if len(causes) > 1 else "")
        return cls(
            item.window,
            item.state,
            verdict,
            plan.estimate.bytes,
            len(plan.splits),
            plan.fingerprint,
            cause,
            remarks=plan.remarks,
        )

    @classmethod
    def failed(cls, item: WindowState, error: StreamsError) -> PlannedWindow:
        """A window that cannot be planned."""
        if isinstance(error, WindowNotReady):
            return cls(item.window, item.state, "not ready", cause=error.reason)
        verdict: Verdict = "lost" if isinstance(error, DataLoss) else "failed"
        return cls(item.window, item.state, verdict, cause=str(error), error=error)

    @property
    def is_readable(self) -> bool:
        """Whether there is a plan to read."""
        return self.verdict in ("ok", "unproven", "part lost")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **self.window.to_json(),
            **{name: getattr(self, name) for name in ("state", "verdict", "bytes", "tasks", "fingerprint", "cause")},
            "remarks": list(self.remarks),
        }


def _verdict(plan: Plan) -> tuple[Verdict, list[str]]:
    """Of a plan that can be read, and why it is not `ok`."""
    if plan.losses:
        return "part lost", [f"{loss.shard}: {loss.cause}" for loss in plan.losses]
    causes = [f"{part.shard}: {part.verdict}" for part in plan.unproven]
    return ("unproven" if causes else "ok"), causes


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one Spark job reads.

    Raises:
        InvalidRequest: a limit that is not positive.
    """

    max_bytes: int = MAX_BYTES
    max_windows: int = MAX_WINDOWS

    def __post_init__(self) -> None:
        if self.max_bytes <= 0 or self.max_windows <= 0:
            raise InvalidRequest(f"max_bytes and max_windows must be positive, got {self}")

    def pack(self, windows: Iterable[PlannedWindow]) -> Iterator[list[PlannedWindow]]:
        """Jobs in order of time. A window that is larger than a job's limit has one of its own."""
        return packed(windows, lambda item: item.bytes, self.max_bytes, self.max_windows)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a backfill would read."""

    span: Window
    select: tuple[str, ...]
    windows: tuple[PlannedWindow, ...]
    limits: Limits = field(default_factory=Limits)
    horizon: datetime | None = None
    """The oldest time the stream can still serve; None: not known, or nothing was removed."""
    bytes_per_second: float | None = None
    """How fast this reader's windows were read so far; None: none was."""

    @property
    def readable(self) -> tuple[PlannedWindow, ...]:
        """The windows that will be read."""
        return tuple(item for item in self.windows if item.is_readable)

    @property
    def jobs(self) -> tuple[list[PlannedWindow], ...]:
        """The Spark jobs that will read them, one after the other."""
        return tuple(self.limits.pack(self.readable))

    @property
    def bytes(self) -> int:
        """Stored bytes to read."""
        return sum(item.bytes for item in self.readable)

    @property
    def tasks(self) -> int:
        """Spark tasks that read them."""
        return sum(item.tasks for item in self.readable)

    @property
    def minutes(self) -> float:
        """How long it will take, roughly."""
        return (self.bytes / (self.bytes_per_second or NOMINAL_BYTES_PER_SECOND) + len(self.jobs) * JOB_SECONDS) / 60

    @property
    def remarks(self) -> dict[str, list[Window]]:
        """What a person should know of the plans, and of which windows it is true."""
        return by_remark((item.window, item.remarks) for item in self.windows)

    def having(self, *verdicts: Verdict) -> tuple[PlannedWindow, ...]:
        """The windows of these verdicts."""
        return tuple(item for item in self.windows if item.verdict in verdicts)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; windows by their text `start/end`, readable ones first."""
        return {
            **self.span.to_json(),
            "select": list(self.select),
            "windows": [str(item.window) for item in self.readable],
            "bytes": self.bytes,
            "tasks": self.tasks,
            "jobs": len(self.jobs),
            "minutes": round(self.minutes, 1),
            "horizon": utc_text(self.horizon) if self.horizon else None,
            "beyond_horizon": [str(item.window) for item in self.having("lost", "part lost")],
            "unproven": [str(item.window) for item in self.having("unproven")],
            "not_ready": [str(item.window) for item in self.having("not ready")],
            "failed": [str(item.window) for item in self.having("failed")],
            "remarks": {remark: _spans(windows) for remark, windows in self.remarks.items()},
            "details": [item.to_json() for item in self.windows],
        }

    def as_text(self) -> str:
        """A table for logs and terminals, and its sums."""
        lines = [f"backfill of {self.span}, select {' and '.join(self.select)}"]
        if self.windows:
            lines += _table(self.windows)
        lines += note_lines(self.remarks, _spans)
        lines.append(
            f" total {counted(len(self.readable), 'window')}, {bytes_text(self.bytes)}, {counted(self.tasks, 'task')}, "
            f"{counted(len(self.jobs), 'Spark job')}, about {self.minutes:.1f} minutes"
        )
        for verdict, what in _LEFT_OUT.items():
            if found := self.having(verdict):
                lines.append(f" {len(found):,} {what}: {_spans([item.window for item in found])}")
        if self.horizon is not None:
            lines.append(f" oldest time the stream still serves: {self.horizon.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")
        return "\n".join(lines)


_LEFT_OUT: Final[dict[Verdict, str]] = {
    "unproven": "of them unproven: more may have been stored",
    "part lost": "of them only in part, the rest is beyond the horizon",
    "lost": "beyond the horizon, cannot be read",
    "failed": "cannot be planned",
    "not ready": "not ready yet, left for later",
}


def _table(windows: Sequence[PlannedWindow]) -> Iterator[str]:
    telling = [item for item in windows if item.verdict != "ok"]
    shown = set(telling[:_MAX_LINES]) | set(windows[: max(0, _MAX_LINES - len(telling))])
    rows = [
        (str(item.window), item.state, bytes_text(item.bytes), str(item.tasks), item.verdict, item.cause)
        for item in windows
        if item in shown
    ]
    yield from table_lines([("window", "was", "bytes", "tasks", "verdict", ""), *rows])
    if len(windows) > len(shown):
        yield f" .. and {counted(len(windows) - len(shown), 'more window')}"


def _spans(windows: Sequence[Window]) -> str:
    """Windows that touch, as one stretch of time."""
    spans = stretches(windows)
    shown = ", ".join(map(str, spans[:_MAX_SPANS]))
    return shown if len(spans) <= _MAX_SPANS else f"{shown} and {len(spans) - _MAX_SPANS} more"


def reading_speed(windows: Sequence[WindowState]) -> float | None:
    """Bytes per second of the covered windows so far, without Spark's start; None: not known.

    Windows that were read at the same moment count their time once. A read hardly longer than a start does not count.
    """
    size, seconds = 0, 0.0
    for read, took in _read_together(windows):
        if took > 2 * JOB_SECONDS:
            size, seconds = size + read, seconds + took - JOB_SECONDS
    return size / seconds if size else None


def _read_together(windows: Sequence[WindowState]) -> Iterator[tuple[int, float]]:
    """Bytes and seconds of each stretch of time in which windows were read without a pause."""
    runs = sorted(
        (item.run.started, item.run.finished, item.bytes)
        for item in windows
        if item.state == "covered" and item.run and item.run.started and item.run.finished
    )
    size, begun, until = 0, None, datetime.min.replace(tzinfo=UTC)
    for started, finished, more in runs:
        if begun is None or started > until:
            if begun is not None:
                yield size, (until - begun).total_seconds()
            size, begun = 0, started
        size, until = size + more, max(until, finished)
    if begun is not None:
        yield size, (until - begun).total_seconds()
