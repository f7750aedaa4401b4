"""How a gap of a reader can be filled: by its own DAG through Airflow's API, as the viewer, or by a command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection

from airflow_provider_streams.journal.coverage_rollup import Piece
from airflow_provider_streams.journal.reader_overview import ReaderOverview, basis_of, tasks_of
from airflow_provider_streams.model.window.backfill import Select
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import WindowSchedule
from airflow_provider_streams.plugin import backfill_command
from airflow_provider_streams.plugin.access import Access
from airflow_provider_streams.plugin.dags import KnownTask, ScheduledRun, known_tasks
from airflow_provider_streams.systems.source_json import source_from_json

REPEATABLE: Final = ("publish", "append", "event")
"""Bases whose windows can be read in any order."""
CHAINED: Final = (
    "Windows of this reader begin where the one before ended, or between cuts that a user chose: clear their task runs "
    "to read them again."
)
UNKNOWN: Final = (
    "Airflow has no task any more that reads for this reader, and where its rows went is not known: run "
    "`airflow streams backfill` with --path."
)


@dataclass(frozen=True, slots=True)
class Gap:
    """Windows of a reader that a user wants to read."""

    one: ReaderOverview
    span: Window
    pieces: Sequence[Piece]
    """The windows."""
    is_exact: bool
    """Each piece is one window."""
    select: Select
    window_schedule: WindowSchedule | None


@dataclass(frozen=True, slots=True)
class Action:
    """A request to Airflow's own API, which the viewer's browser sends as the viewer."""

    kind: str
    """`backfill` or `dag_run`."""
    dag_id: str
    path: str
    body: dict[str, Any]
    runs: int
    """How many DAG runs it starts, at most."""
    again: int = 0
    """Of them, how many read windows that were not chosen."""
    left: int = 0
    """Chosen windows that it does not read: their runs are active, or ended well."""
    is_paused: bool = False


def how_to_fill(connection: Connection, gap: Gap, access: Access) -> dict[str, Any]:
    """`action`: what a button may do, or null; `hint`: why not; `command`: what a shell may do, or null."""
    basis = basis_of(connection, gap.one)
    if basis is not None and basis not in REPEATABLE:
        return {"action": None, "command": None, "hint": CHAINED}
    known = list(known_tasks(task for task in tasks_of(connection, gap.one) if task.dag_id in gap.one.by_dag))
    text = _command(gap, known, basis)
    action = _action(gap, known, access) if gap.pieces else "Nothing to read."
    if isinstance(action, Action):
        return {"action": asdict(action), "command": text, "hint": ""}
    return {"action": None, "command": text, "hint": action if text or known else UNKNOWN}


def _command(gap: Gap, known: Sequence[KnownTask], basis: str | None) -> str | None:
    wanted = backfill_command.WantedBackfill(gap.one, gap.span, gap.select, gap.window_schedule, basis)
    if known:
        return backfill_command.of_task(wanted, known[0].ref)
    return None if gap.one.source is None else backfill_command.of_source(wanted, source_from_json(gap.one.source))


def _action(gap: Gap, known: Sequence[KnownTask], access: Access) -> Action | str:
    """What a button may do; else why there is none."""
    if not known:
        return "Airflow has no DAG any more whose task reads for this reader."
    allowed = [task for task in known if access.may_run(task.ref.dag_id)]
    if not allowed:
        return f"Starting runs of {known[0].ref.dag_id} is not among your rights."
    for task in allowed:
        if task.is_backfill and (conf := task.conf(gap.span, gap.select)) is not None:
            path = f"api/v2/dags/{quote(task.ref.dag_id, safe='')}/dagRuns"
            body = {"logical_date": None, "conf": conf}
            return Action("dag_run", task.ref.dag_id, path, body, 1, is_paused=task.is_paused)
    readers = [task for task in allowed if not task.is_backfill]
    if not readers:
        return "The task that reads for this reader fills a span of its own, and takes none from parameters."
    return _airflow_backfill(gap, readers[0])


def _airflow_backfill(gap: Gap, task: KnownTask) -> Action | str:
    if gap.select in ("lost", "late"):
        return f"A plain run does not read {gap.select} windows as they want to be read: the command does."
    if not gap.is_exact:
        return "These are too many windows for a DAG run each: the command reads many in one Spark job."
    wanted = {piece.window for piece in gap.pieces}
    planned = task.runs(gap.span, gap.window_schedule)
    chosen = [run for run in planned if run.window in wanted]
    if not chosen:
        return f"The schedule of {task.ref.dag_id} has no runs for these windows."
    between = [run for run in planned if chosen[0].moment <= run.moment <= chosen[-1].moment]
    bounds = task.bounds(chosen)
    if bounds is None:
        return f"Airflow's backfill does not reach just these windows of {task.ref.dag_id}."
    return _with_runs(gap, task, bounds, chosen, between)


def _with_runs(
    gap: Gap,
    task: KnownTask,
    bounds: tuple[datetime, datetime],
    chosen: Sequence[ScheduledRun],
    between: Sequence[ScheduledRun],
) -> Action | str:
    states = task.states(between)
    # where no other runs are between them, runs that ended well run again: their windows are missing
    every = gap.select == "all" or len(chosen) == len(between)
    takes = (None, "failed", "success") if every else (None, "failed")
    started = [run for run in between if states.get(run.moment) in takes]
    own = {run.window for run in chosen}
    mine = sum(run.window in own for run in started)
    if not mine:
        return (
            "Airflow has runs for these windows that are at work, or ended well: clear their tasks, or use the command."
        )
    body = {
        "dag_id": task.ref.dag_id,
        "from_date": bounds[0].isoformat(),
        "to_date": bounds[1].isoformat(),
        "reprocess_behavior": "completed" if every else "failed",
        "max_active_runs": task.dag.max_active_runs,
    }
    left = sum(piece.windows for piece in gap.pieces) - mine
    return Action(
        "backfill", task.ref.dag_id, "api/v2/backfills", body, len(started), len(started) - mine, left, task.is_paused
    )
