"""A timetable of Airflow whose data intervals are the cells of a window schedule, whatever happens in between.

Airflow counts an interval of a plain `timedelta` from the one before. When a DAG was paused, it counts from 1970 or
from the present moment, and every later interval has other edges.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import pendulum
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable

from airflow_provider_streams.model.window.window import in_utc
from airflow_provider_streams.model.window.window_schedule import parse_schedule

if TYPE_CHECKING:
    from airflow.timetables.base import TimeRestriction

    from airflow_provider_streams.model.window.window import Window


class WindowScheduleTimetable(Timetable):
    """Starts a run when a cell of a window schedule has ended; the cell is the run's data interval.

    Args:
        window_schedule: its text, as `parse_schedule` takes it.

    Raises:
        InvalidWindow: it is none.
    """

    def __init__(self, window_schedule: str) -> None:
        self._schedule = parse_schedule(window_schedule)
        self.description = f"Windows of {self._schedule}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WindowScheduleTimetable) and other.serialize() == self.serialize()

    def __hash__(self) -> int:
        return hash(self.summary)

    @property
    def summary(self) -> str:
        """What Airflow's pages show."""
        return str(self._schedule)

    def serialize(self) -> dict[str, Any]:
        """As Airflow stores it."""
        return {"window_schedule": str(self._schedule)}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Self:
        """The reverse of `serialize`."""
        return cls(data["window_schedule"])

    def infer_manual_data_interval(self, *, run_after: pendulum.DateTime) -> DataInterval:
        """Of a run by hand: the last cell that has ended."""
        return _interval(self._schedule.last_full_cell(in_utc(run_after)))

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The next cell; without catchup none that is older than the last one that has ended."""
        start = self._start(last_automated_data_interval, restriction)
        if start is None or (restriction.latest is not None and start > restriction.latest):
            return None
        found = _interval(self._schedule.cell(start))
        return DagRunInfo.interval(start=found.start, end=found.end)

    def _start(self, last: DataInterval | None, restriction: TimeRestriction) -> datetime | None:
        starts = [] if last is None else [self._after(last)]
        if restriction.earliest is not None:
            starts.append(self._edge_from(in_utc(restriction.earliest)))
        if not restriction.catchup:
            starts.append(self._schedule.last_full_cell(datetime.now(UTC)).start)
        return max(starts, default=None)

    def _after(self, last: DataInterval) -> datetime:
        """Where the cell after a run's starts; a run of another timetable may have ended within a cell."""
        edge = self._schedule.before(in_utc(last.end))
        return edge if edge > last.start else self._schedule.after(edge)

    def _edge_from(self, moment: datetime) -> datetime:
        edge = self._schedule.before(moment)
        return edge if edge == moment else self._schedule.after(edge)


def _interval(cell: Window) -> DataInterval:
    return DataInterval(pendulum.instance(cell.start), pendulum.instance(cell.end))
