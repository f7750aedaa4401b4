"""What Airflow itself knows of a DAG whose task reads for a reader: its schedule, its runs, whether it can be run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Any, Final

from airflow.exceptions import NotMapped
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.expandinput import NotFullyPopulated
from airflow.models.serialized_dag import SerializedDagModel
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.journal.reader_overview import ReadingTask
from airflow_provider_streams.model.window.window import Window, in_utc
from airflow_provider_streams.model.window.window_schedule import WindowSchedule
from airflow_provider_streams.timetables.dag_timetable import schedule_of_timetable

MOST_RUNS: Final = 5_000
_MARGIN, _DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """A run that a DAG's schedule has, whether it was made or not."""

    moment: datetime
    """Its partition or logical date."""
    window: Window
    """What it reads."""
    due: datetime
    """When the scheduler makes it."""


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A reading task as Airflow has it now."""

    ref: ReadingTask
    dag: Any
    task: Any
    is_paused: bool

    @property
    def is_backfill(self) -> bool:
        """It fills gaps of any span, and is no read of its run's window."""
        return not hasattr(self.task, "window") and hasattr(self.task, "start") and hasattr(self.task, "end")

    def conf(self, span: Window, select: str) -> dict[str, str] | None:
        """The parameters of a run that fills a span; None: the task does not take them from parameters."""
        given = {"start": span.to_json()["start"], "end": span.to_json()["end"], "select": select}
        taken = {name: value for name, value in given.items() if self._is_parameter(name)}
        if not {"start", "end"} <= taken.keys():
            return None
        fixed = self.task.select
        return taken if "select" in taken or fixed in (select, [select]) else None

    def _is_parameter(self, name: str) -> bool:
        text = str(getattr(self.task, name, ""))
        return f"params.{name}" in text.replace(f"params['{name}']", f"params.{name}") and name in self.dag.params

    def runs(self, span: Window, window_schedule: WindowSchedule | None) -> list[ScheduledRun]:
        """The runs of its schedule whose windows are in a span, in order; none if the task itself names its window.

        Args:
            span: of time.
            window_schedule: how its windows tile time, where the DAG's schedule does not show it.
        """
        if getattr(self.task, "window", None) is not None or not self.dag.timetable.periodic:
            return []
        cells = schedule_of_timetable(self.dag.timetable) or window_schedule
        around = Window(_back(span.start, self._zone), span.end)
        made = (_scheduled(info, cells) for info in self._infos(around.start, around.end))
        return list(islice((run for run in made if run and span.holds(run.window)), MOST_RUNS))

    def bounds(self, runs: Sequence[ScheduledRun]) -> tuple[datetime, datetime] | None:
        """Between which dates Airflow's backfill makes just these runs and those between them; None: it would not."""
        first, last = runs[0], runs[-1]
        dates = (
            (first.moment, last.moment),
            # partitions are asked for by the clock of the schedule's own zone
            (self._by_clock(first.moment), self._by_clock(last.moment)),
            # and schedules that name a run by where its interval starts by when it is due
            (first.due, last.due),
        )
        for begin, end in dates:
            moments = [_moment(info) for info in islice(self._infos(begin, end), MOST_RUNS)]
            if moments and (moments[0], moments[-1]) == (first.moment, last.moment):
                return begin, end
        return None

    def states(self, runs: Sequence[ScheduledRun]) -> dict[datetime, str]:
        """The state of each of these runs that was made."""
        is_partitioned = getattr(self.dag.timetable, "partitioned", False)  # Airflow 3.1 has no partitions
        date = DagRun.partition_date if is_partitioned else DagRun.logical_date
        asked = select(date, DagRun.state).where(
            DagRun.dag_id == self.ref.dag_id, date >= runs[0].moment, date <= runs[-1].moment
        )
        with create_session() as session:
            return {in_utc(moment): str(getattr(state, "value", state)) for moment, state in session.execute(asked)}

    def _infos(self, start: datetime, end: datetime) -> Iterable[Any]:
        return self.dag.iter_dagrun_infos_between(start, end)  # type: ignore[no-any-return]  # Airflow's

    def _by_clock(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone).replace(tzinfo=UTC)

    @property
    def _zone(self) -> tzinfo:
        zone: tzinfo = getattr(self.dag.timetable, "_timezone", UTC)
        return zone


def known_tasks(tasks: Iterable[ReadingTask]) -> Iterator[KnownTask]:
    """Those that Airflow still has, as they are now."""
    for ref in tasks:
        model = DagModel.get_current(ref.dag_id)
        if model is None or model.is_stale:
            continue
        dag = SerializedDagModel.get_dag(ref.dag_id)
        task = dag.task_dict.get(ref.task_id) if dag is not None else None
        if task is not None and _has_index(task, ref.map_index):
            yield KnownTask(ref, dag, _plain(task), bool(model.is_paused))


def _has_index(task: Any, map_index: int) -> bool:
    """Whether a command can name this instance: of a mapped task, one of those that the DAG's file lists."""
    if not getattr(task, "is_mapped", False):
        return map_index < 0
    try:
        count: int = task.get_parse_time_mapped_ti_count()
    except (NotFullyPopulated, NotMapped):
        return False
    return 0 <= map_index < count


def _plain(task: Any) -> Any:
    """What a mapped task's instances have in common."""
    if not getattr(task, "is_mapped", False):
        return task
    given = type("Common", (), {})()
    for name, value in task.partial_kwargs.items():
        setattr(given, name, value)
    return given


def _scheduled(info: Any, window_schedule: WindowSchedule | None) -> ScheduledRun | None:
    """None: it has no window, or one without a known end."""
    moment, due = _moment(info), in_utc(info.run_after)
    try:
        if getattr(info, "partition_date", None) is not None:
            after = None if window_schedule is None else window_schedule.after(moment)
            return None if after is None else ScheduledRun(moment, Window(moment, after), due)
        return ScheduledRun(moment, Window(info.data_interval.start, info.data_interval.end), due)
    except InvalidWindow:
        return None  # an empty interval


def _moment(info: Any) -> datetime:
    return in_utc(getattr(info, "partition_date", None) or info.logical_date)


def _back(moment: datetime, zone: tzinfo) -> datetime:
    """Schedules that name a run by its end have it later, none has it earlier than by their zone's difference."""
    first, last = datetime.min.replace(tzinfo=UTC) + 2 * _DAY, datetime.max.replace(tzinfo=UTC) - _DAY
    ahead = min(max(moment, first), last).astimezone(zone).utcoffset() or timedelta(0)
    return max(moment, first) - abs(ahead) - _MARGIN
