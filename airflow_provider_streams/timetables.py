"""How Airflow's timetables tile time: a run's window reaches from its partition to the next one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from functools import cache, cached_property, lru_cache, partial
from typing import Any, NamedTuple

from airflow_provider_streams.airflow_features import Feature, core_timetable, has
from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.partition_key import KEY_FORMAT, KeyRule, PartitionKeys
from airflow_provider_streams.model.window.window import EPOCH, Window, in_utc
from airflow_provider_streams.model.window.window_schedule import (
    Calendar,
    Every,
    WindowSchedule,
    parse_schedule,
    zone_of,
)
from airflow_provider_streams.windows.plan.airflow_run_window import RunFacts

_SEARCH = 2
_LONGEST = timedelta(days=9 * 366)
"""Longer than that no cron expression waits for its next tick: a 29th of February on one weekday comes in 40 years."""
_MOMENT = timedelta(microseconds=1)
_CRON_FIELDS = 5
_NO_WINDOWS = ("@once", "@continuous")
"""Presets of Airflow without ticks."""
_BY_HAND = {"manual", "operator_triggered", "asset_materialization"}
"""Types of runs whose time someone else chose than the timetable or a backfill."""
_MOST_TICKS = 5_000
"""So many ticks of a window schedule are remembered: three days of minutes."""


@dataclass(frozen=True)
class CronSchedule(WindowSchedule):
    """Cells between two ticks of a cron expression in a time zone, computed by Airflow's own rule.

    Args:
        expression: five fields, or a preset like `@daily`.
        zone: the name of a time zone, or an offset in seconds, as Airflow writes them.

    Raises:
        InvalidWindow: not an expression, or no such zone.
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.expression in _NO_WINDOWS:
            raise InvalidWindow(f"{self.expression!r} makes no windows: write '@hourly', or a length like '15m'")
        try:
            self._timetable.validate()
        except Exception as error:
            raise InvalidWindow(f"cron {self.expression!r} in {self.zone} is no window schedule: {error}") from error

    def __str__(self) -> str:
        return f"cron {self.expression} {self.zone}"

    def before(self, moment: datetime) -> datetime:
        """See `WindowSchedule`."""
        return _walk_of(self).before(in_utc(moment))

    def after(self, moment: datetime) -> datetime:
        """See `WindowSchedule`."""
        return _walk_of(self).after(in_utc(moment))

    def _before(self, moment: datetime) -> datetime:
        ticks = self._settling(moment)
        return ticks[bisect_right(ticks, moment) - 1] if ticks else self._last(moment)

    def _after(self, moment: datetime) -> datetime:
        ticks = self._settling(moment)
        return ticks[bisect_right(ticks, moment)] if ticks else self._next(moment)

    def _settling(self, moment: datetime) -> Sequence[datetime]:
        """The ticks over a change of clocks, if the moment is among those that only going from tick to tick finds."""
        for begin, end, change in _unsettled(self, moment.year):
            if begin <= moment < end and moment < (ticks := _ticks_over(self, change))[-1]:
                return ticks
        return ()

    def _last(self, moment: datetime) -> datetime:
        """Found by going forward: where clocks change, Airflow's way back is not the way forth."""
        reach = max(self._next(moment) - moment, timedelta(minutes=1))
        while (tick := self._after(self._back(moment, reach))) > moment:
            reach *= _SEARCH
            if reach > _LONGEST:
                raise InvalidWindow(f"{self} has no tick before {moment.isoformat()}")
        while (following := self._next(tick)) <= moment:
            tick = following
        return tick

    def _back(self, moment: datetime, reach: timedelta) -> datetime:
        try:
            return moment - reach
        except OverflowError as error:
            raise InvalidWindow(f"{self} has no tick before {moment.isoformat()}: time starts in year 1") from error

    def _next(self, moment: datetime) -> datetime:
        """When a scheduler that ran at this moment would run next."""
        import pendulum  # noqa: PLC0415 - Airflow's own
        from airflow.timetables.base import DataInterval, TimeRestriction  # noqa: PLC0415 - only where there is one

        try:
            last = DataInterval.exact(pendulum.instance(moment.astimezone(UTC)))
            catch_up = TimeRestriction(None, None, catchup=True)
            following = self._timetable.next_dagrun_info(last_automated_data_interval=last, restriction=catch_up)
        except (ValueError, OverflowError) as error:
            raise InvalidWindow(f"{self} has no tick after {moment.isoformat()}: {error}") from error
        if following is None:
            raise InvalidWindow(f"{self} has no tick after {moment.isoformat()}")
        return datetime.fromtimestamp(following.run_after.timestamp(), UTC)

    @cached_property
    def _timetable(self) -> Any:
        from airflow.timetables.trigger import CronTriggerTimetable  # noqa: PLC0415 - only where there is one

        return CronTriggerTimetable(self.expression, timezone=_clock_of(self.zone))


class _Walk:
    """The ticks of a window schedule that were computed last, each from the one before.

    Who goes on asks Airflow once for each.

    Args:
        window_schedule: whose cells are the same from wherever they are asked for.
    """

    def __init__(self, window_schedule: CronSchedule) -> None:
        self._schedule = window_schedule
        self._ticks: tuple[datetime, ...] = ()
        """In a row. Replaced as a whole: threads that go different ways ask more often, and nothing else."""

    def before(self, moment: datetime) -> datetime:
        """As `WindowSchedule.before`."""
        ticks = self._around(moment)
        if not ticks:
            self._ticks = ticks = (self._schedule._before(moment), self._schedule._after(moment))  # noqa: SLF001 - its own module's
        return ticks[bisect_right(ticks, moment) - 1]

    def after(self, moment: datetime) -> datetime:
        """As `WindowSchedule.after`."""
        ticks = self._around(moment)
        if not ticks or moment == ticks[-1]:
            self._ticks = ticks = (*ticks[1 - _MOST_TICKS :], self._schedule._after(moment))  # noqa: SLF001 - as above
        return ticks[bisect_right(ticks, moment)]

    def _around(self, moment: datetime) -> tuple[datetime, ...]:
        """Those that are known, if the moment is among them."""
        ticks = self._ticks
        return ticks if ticks and ticks[0] <= moment <= ticks[-1] else ()


@lru_cache(maxsize=16)
def _walk_of(window_schedule: CronSchedule) -> _Walk:
    return _Walk(window_schedule)


@cache
def _clock_of(zone: str) -> Any:
    """The zone as Airflow has it, which takes an offset for one only once that is made one."""
    import pendulum  # noqa: PLC0415 - Airflow's own

    return pendulum.timezone(int(zone) if zone.lstrip("-").isdigit() else zone)


class Change(NamedTuple):
    """A change of clocks."""

    at: datetime
    jump: timedelta
    """How far, in either direction."""


@lru_cache(maxsize=256)
def _changes_of(zone: str, year: int) -> Sequence[Change]:
    if not MINYEAR < year < MAXYEAR:  # no room to look around
        return []
    clock, found = _clock_of(zone), []

    def offset(moment: datetime) -> timedelta:
        return moment.astimezone(clock).utcoffset() or timedelta(0)

    begin = datetime(year, 1, 1, tzinfo=UTC)
    for day in range(366):
        before, after = begin + timedelta(days=day), begin + timedelta(days=day + 1)
        jump = abs(offset(after) - offset(before))
        if jump:
            while after - before > timedelta(seconds=1):
                middle = before + (after - before) // 2
                before, after = (before, middle) if offset(middle) != offset(before) else (middle, after)
            found.append(Change(after.replace(microsecond=0), jump))
    return found


@lru_cache(maxsize=256)
def _unsettled(window_schedule: CronSchedule, year: int) -> Sequence[tuple[datetime, datetime, Change]]:
    """Where Airflow's next tick may hang on where it is asked from, in that year: from where, to where, and why."""
    found = []
    for change in (one for near in (year - 1, year, year + 1) for one in _changes_of(window_schedule.zone, near)):
        following = window_schedule._next(change.at + change.jump)  # noqa: SLF001 - its own module's
        found.append((change.at - change.jump, following + change.jump, change))
    return found


@lru_cache(maxsize=256)
def _ticks_over(window_schedule: CronSchedule, change: Change) -> Sequence[datetime]:
    """What a scheduler ticks over a change, from the last one on before any time that comes twice or not at all."""
    ticks = [window_schedule._before(change.at - change.jump - _MOMENT)]  # noqa: SLF001 - its own module's
    while ticks[-1] <= change.at + change.jump:
        ticks.append(window_schedule._next(ticks[-1]))  # noqa: SLF001 - its own module's
    return ticks


def window_timetable(windows: str | timedelta, timezone: str = "UTC") -> Any:
    """A DAG's `schedule=` whose runs each read one window: the next starts where one ends, also after a pause.

    A run starts when its window has ended: the one from 10:00 to 11:00 at 11:00.

    Args:
        windows: a cron expression (five fields, or a preset such as `@hourly`), from one tick to the next one. Or a
            length, or a window schedule's text as `parse_schedule` takes it: `15m`, `1h +7m`, `1d Europe/Berlin`,
            `cron 0 6 * * * Europe/Berlin`.
        timezone: of a cron expression: its name, such as `Europe/Berlin`. The other texts name their own.

    Returns:
        Of a cron expression a `CronPartitionTimetable`, whose runs are backfilled by partition date; before Airflow 3.3
        a `CronDataIntervalTimetable`, whose runs are backfilled by logical date. Both give the same windows. Of other
        windows a timetable with data intervals, whose runs are backfilled by logical date.

    Raises:
        InvalidWindow: it is neither, or makes no windows, such as `@once`, `@continuous` and a cron expression with
            seconds.
    """
    if not isinstance(windows, str | timedelta):
        raise InvalidWindow(f"windows are a cron expression like '@hourly', or a length like '15m', not {windows!r}")
    text = str(windows) if isinstance(windows, timedelta) else " ".join(windows.split())
    if isinstance(windows, str) and _is_cron(text):
        return _cron_timetable(text, str(timezone))
    if timezone != "UTC":
        raise InvalidWindow(f"the zone of windows like {text!r} is a part of the text, like '1d {timezone}'")
    window_schedule = parse_schedule(windows)
    if isinstance(window_schedule, CronSchedule):
        return _cron_timetable(window_schedule.expression, window_schedule.zone)
    return _schedule_timetable(str(window_schedule))


def _is_cron(text: str) -> bool:
    return text.startswith("@") or (len(text.split()) >= _CRON_FIELDS and not text.startswith("cron "))


def _cron_timetable(expression: str, zone: str) -> Any:
    if expression in _NO_WINDOWS:
        raise InvalidWindow(
            f"{expression!r} makes no windows: write '@hourly', a cron expression, or a length like '15m'"
        )
    fields = len(expression.split())
    if not expression.startswith("@") and fields != _CRON_FIELDS:
        raise InvalidWindow(
            f"cron {expression!r} has {fields} fields, but windows are between the ticks of five: minute, hour, day, "
            "month and weekday. Write windows of seconds as a length, like '90s', and a zone as timezone="
        )
    CronSchedule(expression, zone)._next(EPOCH)  # noqa: SLF001 - its own module's; refuses one that never ticks
    if not has(Feature.PARTITIONED_RUNS):
        from airflow.timetables.interval import CronDataIntervalTimetable  # noqa: PLC0415 - only where there is one

        return CronDataIntervalTimetable(expression, timezone=zone)
    from airflow.sdk import CronPartitionTimetable  # noqa: PLC0415 - only where there is one

    return CronPartitionTimetable(expression, timezone=zone, run_offset=-1)


def _schedule_timetable(text: str) -> Any:
    from airflow_provider_streams.schedule_timetable import WindowScheduleTimetable  # noqa: PLC0415 - Airflow's core

    return WindowScheduleTimetable(text)


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
        _recent_key(timetable) if partition is None and start is None else None,
        logical_date,
        run_after,
    )


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
    return PartitionKeys(own, facts.partition_key, partial(_key_in, timetable), key_format, _key_rule(timetable))


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


def _key_rule(timetable: Any) -> KeyRule | None:
    """How a timetable of a cron expression writes keys; None: it writes none, or is another one."""
    told = {} if timetable is None or _mappers_of(core := core_timetable(timetable)) else core.serialize()
    return KeyRule(told["key_format"], str(told["timezone"])) if "key_format" in told else None


def _recent_key(timetable: Any) -> str | None:
    """An example of the keys of a timetable; None: it does not tell how it writes them."""
    window_schedule = schedule_of_timetable(timetable)
    return None if window_schedule is None else _key_in(timetable, window_schedule.last_full_cell(datetime.now(UTC)))


def _key_in(timetable: Any, window: Window) -> str | None:
    """What a timetable calls a window; None: the window is none of its partitions, or it does not tell."""
    window_schedule = schedule_of_timetable(timetable)
    if window_schedule is None or not window_schedule.is_cell(window):
        return None
    core = core_timetable(timetable)
    if mappers := _mappers_of(core):
        found = {_key_by(_naming(one), window) for one in mappers if _schedule_of_mapper(one) is not None}
        return found.pop() if len(found) == 1 else None
    rule = _key_rule(timetable)
    return None if rule is None else rule.key(window)


def _key_by(mapper: Any, window: Window) -> str:
    clock = zone_of(str(mapper.serialize().get("timezone", "UTC")))
    return str(mapper.format(mapper.normalize(window.start.astimezone(clock))))
