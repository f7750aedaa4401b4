"""What an Airflow run says about time: its window, and the partition keys of the windows that it announces."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from airflow_provider_streams.airflow_features import core_timetable
from airflow_provider_streams.model.window.partition_key import KEY_FORMAT, PartitionKeys
from airflow_provider_streams.model.window.window import Window, in_utc
from airflow_provider_streams.timetables.dag_timetable import key_in, key_rule, recent_key, schedule_of_timetable
from airflow_provider_streams.windows.plan.airflow_run_window import RunFacts

_BY_HAND = {"manual", "operator_triggered", "asset_materialization"}
"""Types of runs whose time someone else chose than the timetable or a backfill."""


def run_facts(context: Mapping[str, Any]) -> RunFacts:
    """What a run says about time, its DAG's timetable included."""
    dag_run = context.get("dag_run")
    is_manual = str(getattr(dag_run, "run_type", "")).rpartition(".")[2].lower() in _BY_HAND
    names = ("partition_date", "data_interval_start", "data_interval_end", "logical_date")
    partition, start, end, logical_date, run_after = (
        None if moment is None else in_utc(moment)
        for moment in (*(context.get(name) for name in names), getattr(dag_run, "run_after", None))
    )
    timetable = getattr(context.get("dag"), "timetable", None)
    # where a manual run's interval starts says nothing of the others'
    window_schedule = schedule_of_timetable(timetable, None if is_manual else start)
    return RunFacts(
        partition,
        start,
        end,
        window_schedule,
        is_manual,
        getattr(core_timetable(timetable), "partitioned", False) if timetable is not None else False,
        context.get("partition_key") or None,
        recent_key(timetable) if partition is None and start is None else None,
        logical_date,
        run_after,
    )


def partition_keys(
    context: Mapping[str, Any], window: Window | None = None, key_format: str | None = KEY_FORMAT
) -> PartitionKeys:
    """The keys of the windows that a run announces.

    Args:
        context: the run's.
        window: the one that the run reads; None: it reads others than its own.
        key_format: of windows that are no partitions of the DAG's own timetable; None: they have no keys.
    """
    facts = run_facts(context)
    own = window if facts.partition_key is None else _own_window(facts, window)
    timetable = getattr(context.get("dag"), "timetable", None)
    return PartitionKeys(own, facts.partition_key, partial(key_in, timetable), key_format, key_rule(timetable))


def _own_window(facts: RunFacts, window: Window | None) -> Window | None:
    """The window that a run's key names: the timetable decides; if it does not tell, the one that the run reads.

    A run may read another one, as `window=` says, or many.
    """
    date, window_schedule = facts.partition_date, facts.window_schedule
    if date is None:
        return window
    if window_schedule is None:
        return window if window is not None and window.start == date else None
    start = window_schedule.start_of_partition(date)
    cell = window_schedule.cell(start)
    return cell if cell.start == start else None
