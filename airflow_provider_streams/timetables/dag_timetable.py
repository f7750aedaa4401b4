"""What the timetable of a DAG tells: how its runs tile time, and how it names their partitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_streams.airflow_features import core_timetable
from airflow_provider_streams.model.window.partition_key import KeyRule
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import (
    Calendar,
    Every,
    WindowSchedule,
    parse_schedule,
    zone_of,
)
from airflow_provider_streams.timetables.cron_schedule import CronSchedule


def schedule_of_timetable(timetable: Any, start: datetime | None = None) -> WindowSchedule | None:
    """How the runs of a timetable tile time; None: it does not tell.

    Args:
        timetable: a DAG's, as a DAG file or as Airflow's own processes have it.
        start: where one of its data intervals starts: those of one length are counted from there.
    """
    if timetable is None:
        return None
    core = core_timetable(timetable)
    if mappers := _mappers_of(core):
        found = {_schedule_of_mapper(one) for one in mappers} - {None}
        return found.pop() if len(found) == 1 else None  # an asset whose keys tell no time does not count
    told = core.serialize()
    if "window_schedule" in told:
        return parse_schedule(told["window_schedule"])
    if "expression" in told:
        return CronSchedule(told["expression"], str(told["timezone"]))
    delta = getattr(timetable, "delta", None) or getattr(core, "_delta", None)
    if isinstance(delta, timedelta) and start is not None and delta > timedelta(0):
        return Every.through(delta, start)
    return None


_PERIODS = {"Hour": "1h", "Day": "1d", "Week": "1w", "Month": "1mo", "Quarter": "3mo", "Year": "1y"}
"""Of Airflow's mappers `StartOf..Mapper`: which period a partition of theirs is."""


def _mappers_of(core: Any) -> list[Any]:
    """Of a timetable that waits for partitions of assets: the mapper of each asset."""
    default = getattr(core, "default_partition_mapper", None)
    assets = getattr(core, "asset_condition", None)
    if default is None or assets is None:
        return [] if default is None else [default]
    known = [*(key for key, _ in assets.iter_assets()), *assets.iter_asset_refs()]
    return [core.get_partition_mapper(name=getattr(one, "name", ""), uri=getattr(one, "uri", "")) for one in known]


def _naming(mapper: Any) -> Any:
    """The mapper that writes a run's key, within those that chain, spread or collect partitions, as in Airflow."""
    if chained := getattr(mapper, "mappers", None):
        return _naming(chained[-1])
    inner = getattr(mapper, "downstream_mapper", None) or getattr(mapper, "upstream_mapper", None)
    return mapper if inner is None else _naming(inner)


def _schedule_of_mapper(mapper: Any) -> WindowSchedule | None:
    """How the partitions tile time that a mapper makes of its assets' ones; None: it does not tell."""
    mapper = _naming(mapper)
    period = _PERIODS.get(type(mapper).__name__.removeprefix("StartOf").removesuffix("Mapper"))
    if period is None:
        return None
    told = mapper.serialize()
    zone = str(told.get("timezone", "UTC"))
    if period != "1h":
        return parse_schedule(f"{period} {zone}")
    if zone == "UTC":
        return parse_schedule(period)
    # by names without an offset, an hour that comes twice is one partition
    return CronSchedule("0 * * * *", zone) if "%z" in told.get("output_format", "") else Calendar(1, "h", zone)


def key_rule(timetable: Any) -> KeyRule | None:
    """How a timetable of a cron expression writes keys; None: it writes none, or is another one."""
    told = {} if timetable is None or _mappers_of(core := core_timetable(timetable)) else core.serialize()
    return KeyRule(told["key_format"], str(told["timezone"])) if "key_format" in told else None


def recent_key(timetable: Any) -> str | None:
    """An example of the keys of a timetable; None: it does not tell how it writes them."""
    window_schedule = schedule_of_timetable(timetable)
    return None if window_schedule is None else key_in(timetable, window_schedule.last_full_cell(datetime.now(UTC)))


def key_in(timetable: Any, window: Window) -> str | None:
    """What a timetable calls a window; None: the window is none of its partitions, or it does not tell."""
    window_schedule = schedule_of_timetable(timetable)
    if window_schedule is None or not window_schedule.is_cell(window):
        return None
    core = core_timetable(timetable)
    if mappers := _mappers_of(core):
        found = {_key_by(_naming(one), window) for one in mappers if _schedule_of_mapper(one) is not None}
        return found.pop() if len(found) == 1 else None
    rule = key_rule(timetable)
    return None if rule is None else rule.key(window)


def _key_by(mapper: Any, window: Window) -> str:
    clock = zone_of(str(mapper.serialize().get("timezone", "UTC")))
    return str(mapper.format(mapper.normalize(window.start.astimezone(clock))))
