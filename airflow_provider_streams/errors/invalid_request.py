"""Errors of requests that cannot be carried out as given, or not yet."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_streams.errors.base import StreamsError, as_sentence, listed


class InvalidRequest(StreamsError, ValueError):
    """The request cannot be carried out as given."""


class InvalidName(InvalidRequest):
    """A name that this system cannot have, or that this package does not read."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"{name!r:.600} cannot be read: {reason}")


class InvalidWindow(InvalidRequest):
    """A span of time that is not a window."""


class WindowNotAligned(InvalidWindow):
    """A window that is no cell of its reader's window schedule."""

    def __init__(
        self,
        source: object,
        reader: str,
        window: object,
        window_schedule: object,
        cell: object,
        *,
        moved_to: object = None,
    ) -> None:
        self.source, self.reader, self.window, self.window_schedule = source, reader, window, window_schedule
        self.moved_to = moved_to
        super().__init__(
            f"{source}: window {window} is not one that reader {reader!r} lands: its window schedule is "
            f"{window_schedule!s}, so the window there is {cell}. {self._moved()}"
            "Read that one, read under another reader into another table, or land all windows of this reader again "
            "(full_refresh=True)."
        )

    def _moved(self) -> str:
        """What happened, if the DAG's own windows have the same length and other edges now."""
        if self.moved_to is None:
            return ""
        return (
            f"The DAG's runs tile time by {self.moved_to!s} now, and so will all later ones: after a pause, Airflow "
            "counts a schedule of a timedelta from 1970 or from the present moment. To go on, give the DAG "
            f"schedule=window_timetable('{self.window_schedule!s}'), which keeps the windows through every pause; "
            "a backfill reads those that were left out. Or: "
        )


class WindowsOverlap(InvalidRequest):
    """A window shares time with covered ones of the same table: its rows would be there twice."""

    def __init__(self, source: object, window: object, covered: Sequence[object]) -> None:
        self.source, self.window, self.covered = source, window, tuple(covered)
        shown = ", ".join(map(str, covered[:5])) + (", .." if len(covered) > 5 else "")  # noqa: PLR2004
        super().__init__(
            f"{source}: window {window} shares time with {len(covered)} that the table already holds: {shown}. Nothing "
            "was read. Read one of those instead. Or set overlap='replace': this removes them from the table as a "
            "whole. The parts of them outside this window are then missing."
        )


FULL_REFRESH_HINT = (
    "land all windows again (full_refresh=True sets aside what the table holds, and every window is missing again)"
)


class LandingMismatch(InvalidRequest):
    """A reader lands something else than it did before: a table of two shapes.

    Args:
        source: what is read.
        reader: the one that lands it.
        kept: what the reader landed so far.
        asked: what it is to land now.
        differences: between the two.
        hint: a way to go on, the first one that is offered.
        refresh: how to land all windows again; empty: the table cannot take that.
    """

    def __init__(
        self,
        source: object,
        reader: str,
        kept: object,
        asked: object,
        differences: Sequence[str],
        *,
        hint: str = "",
        refresh: str = FULL_REFRESH_HINT,
    ) -> None:
        self.source, self.reader, self.kept, self.asked = source, reader, kept, asked
        self.differences, self.hint = tuple(differences), hint
        *some, last = [one for one in (hint, "take another reader for the other one", refresh) if one]
        super().__init__(
            f"{source}: {listed(differences)} Reader {reader!r} lands in {kept}, and is asked for {asked}. All "
            f"windows of a reader have one landing: {', '.join(some)}{', or ' * bool(some)}{last}."
        )

    def with_relanding(self, words: str) -> LandingMismatch:
        """The same, with other words for `refresh`."""
        return LandingMismatch(
            self.source, self.reader, self.kept, self.asked, self.differences, hint=self.hint, refresh=words
        )


class ChainOutOfOrder(InvalidRequest):
    """A chained window that comes before windows already planned or read: its rows would be there twice."""

    def __init__(self, source: object, reader: str, window: object, later: object) -> None:
        self.source, self.reader, self.window, self.later = source, reader, window, later
        super().__init__(
            f"{source}: basis 'chained' reads windows in order, and reader {reader!r} has gone on to {later} already. "
            f"So no event is left for {window}. Set max_active_runs=1. For other windows, take "
            "another reader and another table."
        )


class NoCutNearby(InvalidRequest):
    """No cut was recorded near enough to a window's edge."""

    def __init__(self, source: object, moment: object, detail: str) -> None:
        self.source, self.moment = source, moment
        super().__init__(
            f"{source}: no recorded cut is near enough to {moment}: {as_sentence(detail)} No event is lost. Raise "
            "max_skew, which moves this edge for the windows before and after it, or read between your own Cuts(start, "
            "end)."
        )


class MissingDependency(InvalidRequest):
    """An optional client is not installed."""

    foreseeable = True

    def __init__(self, module: str, extra: str) -> None:
        self.module, self.extra = module, extra
        super().__init__(
            f"The Python module {module!r} is needed here. "
            f"Install it with: pip install 'airflow-provider-streams[{extra}]'"
        )


class WindowNotReady(StreamsError):
    """The window's end is not certain yet."""

    retryable = True

    def __init__(self, source: object, window: object, reason: str) -> None:
        self.source, self.window, self.reason = source, window, reason
        super().__init__(
            f"{source}: window {window} cannot be read yet: {as_sentence(reason)} "
            "Wait for it with WindowReadySensor, or retry later."
        )
