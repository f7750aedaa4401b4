"""Asset events of landed windows: one for the table, and one per window under its partition key.

Airflow keeps two kinds of consumers apart: an event with a partition key never starts a DAG that is scheduled by the
asset alone, and one without never fills a partition. So a task that lands several windows sends both, unless its run
has a partition: Airflow gives the run's key to every event without one. There, each window has an event under its own
key, and none is sent that would name another window. What a failed task had landed is announced by the next task of
its reader that succeeds: Airflow takes no event from a failed task, also if it failed after `execute`.

Of many tables there is one event for all, and one for each table that is among the task's outlets: Airflow stores the
events of a task while its end waits, so there are not hundreds of them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import Asset
from airflow.sdk.definitions.asset import AssetUniqueKey
from airflow.sdk.definitions.mappedoperator import MappedOperator

from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.airflow_runtime.task_states import AT_WORK, CLEARED, TaskStates
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.journal.runs.run_records import Announcer
from airflow_provider_streams.model.asset_uri_length import may_shorten, short_uri
from airflow_provider_streams.model.sinks.placeholders import SourceTable, is_fan_out
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.sinks.table_name import ANY
from airflow_provider_streams.model.window.coverage import stretches
from airflow_provider_streams.model.window.partition_key import Known, PartitionKeys
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.windows.claim.landing_defaults import schedule_of

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from airflow_provider_streams.journal.runs.run_records import Run
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.stream.source import Source

MOST_EVENTS = 100
"""How many windows one task announces: Airflow stores them while the task's end waits, which SQLite takes badly."""

_SHOWN = 5
"""So many topics or streams are named in a log's line."""

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_Facts = dict[str, Any]
_Waiting = Mapping[SourceTable, Sequence["Run"]]
_Keys = Mapping[Window, str | None]
_Covered = Mapping[SourceTable, Mapping[Window, int | None]]
"""The rows of windows in each table; None: the table was to have it, and has not."""


def asset_of(value: Source | Sink) -> Asset:
    """A source's or a sink's asset, also of a class of the user's own that gives a longer URI than Airflow takes."""
    return Asset(uri=short_uri(value.asset_uri))


def withhold(task: BaseOperator, sinks: Iterable[Sink]) -> None:
    """No event of these tables from this run: nothing was landed. The DAG still shows them as the task's outlets."""
    _withhold(task, [asset_of(sink) for sink in sinks])


def _withhold(task: BaseOperator, withheld: Sequence[Asset]) -> None:
    task.outlets = [outlet for outlet in task.outlets if outlet not in withheld]


class Announcement:
    """The events of windows that a reader has landed, and that were not announced yet.

    Args:
        journal: knows them.
        task: whose outlets the tables are.
        context: the run's.
        reader: who landed them.
        sink: the table; with placeholders, its asset stands for all tables.
        keys: the windows' partition keys.
    """

    def __init__(
        self,
        journal: Journal,
        task: BaseOperator,
        context: Context,
        *,
        reader: str,
        sink: Sink,
        keys: PartitionKeys,
    ) -> None:
        self._journal, self._task, self._context = journal, task, context
        self._reader, self._sink, self._keys = reader, sink, keys
        ti = context["ti"]
        mapped = getattr(ti, "map_index", None)
        self._announcer = Announcer(ti.dag_id, ti.run_id, ti.task_id, -1 if mapped is None else mapped)
        self._states = TaskStates(ti)

    def send(self, tables: Sequence[SourceTable]) -> int:
        """Send the events of tables; how many windows are left for the next run. If none wait, no event is sent."""
        waiting = self._waiting(tables)
        if not waiting:
            withhold(self._task, (self._sink, *(table.sink for table in tables)))
            return 0
        keys = self._keys_of(tables, waiting)
        if not is_fan_out(self._sink):
            (table,) = tables
            runs = [run for run in waiting[table] if run.window in keys]
            chosen = self._first(runs, lambda run: run.window)
            self._send_table(table, chosen, keys)
            left = len(waiting[table]) - len(chosen)
        else:
            left = self._send_tables(tables, waiting, keys)
        if left:
            _log.warning("%s landed but not announced yet: the next runs announce them", counted(left, "window"))
        return left

    def _waiting(self, tables: Sequence[SourceTable]) -> _Waiting:
        """The runs whose events Airflow has not got, and will not get from another task.

        It takes a task's events once the task succeeds: what is after `execute` may fail, or be killed. If a user then
        marks the task as a success, Airflow takes none, and the state is the same.
        """
        known = {table: self._journal.unannounced(table.source.key, self._reader) for table in tables}
        sent: dict[Announcer, list[int]] = {}
        for run in (run for runs in known.values() for run in runs):
            if run.announced_by is not None:
                sent.setdefault(run.announced_by, []).append(run.ref.id)
        states = {one: None if one == self._announcer else self._states.state(*one) for one in sent}
        self._journal.confirm(run for one, runs in sent.items() if states[one] == "success" for run in runs)
        lost = {one for one, state in states.items() if state not in {"success", CLEARED, *AT_WORK}}
        self._journal.withdraw(run for one in lost for run in sent[one])
        waiting = {
            table: [run for run in runs if run.announced_by is None or run.announced_by in lost]
            for table, runs in known.items()
        }
        return {table: runs for table, runs in waiting.items() if runs}

    def _send_tables(self, tables: Sequence[SourceTable], waiting: _Waiting, keys: _Keys) -> int:
        self._withhold_unknown(tables)
        covered = {table: self._covered(table, waiting, keys) for table in tables}
        held = {window for window in keys if self._is_held(window, covered)}
        whole = self._first((window for window in keys if window not in held), lambda window: window)
        self._send_whole(whole, covered, keys)
        told = {table: [run for run in runs if run.window in whole] for table, runs in waiting.items()}
        followed = [table for table in waiting if asset_of(table.sink) in self._task.outlets]
        single = [(table, run) for table in followed for run in waiting[table] if run.window in {*whole, *held}]
        chosen = self._first(single, lambda one: one[1].window)
        told |= {table: [run for of, run in chosen if of is table] for table in followed}
        for table, runs in told.items():
            if table in followed:
                self._send_table(table, runs, keys)
            else:
                self._announce(runs, keys)
        withhold(self._task, (table.sink for table in tables if table not in waiting))
        return sum(len(runs) - len(told[table]) for table, runs in waiting.items())

    def _covered(self, table: SourceTable, waiting: _Waiting, windows: Collection[Window]) -> dict[Window, int | None]:
        """The rows of these windows in a table; None: it was to be read, and is not covered.

        Windows that it was never read for are left out: a topic that is new has none from before.
        """
        found: dict[Window, int | None] = {run.window: run.rows for run in waiting.get(table, ())}
        for stretch in stretches(window for window in windows if window not in found):
            coverage = self._journal.coverage(table.source.key, self._reader, stretch.start, stretch.end)
            found |= {
                one.window: one.rows if one.state == "covered" else None
                for one in coverage.windows
                if one.window in windows and (one.attempts or one.fingerprint)
            }
        return found

    def _is_held(self, window: Window, covered: _Covered) -> bool:
        """Whether the event of a window for all tables waits for one of them."""
        lacking = [str(table) for table, rows in covered.items() if rows.get(window, 0) is None]
        if lacking:
            more = f" and {len(lacking) - _SHOWN:,} more" if len(lacking) > _SHOWN else ""
            _log.warning(
                "%s has no event of %s yet: it has not landed from %s%s. It is announced once all tables have it",
                *(window, self._sink.location, ", ".join(lacking[:_SHOWN]), more),
            )
        return bool(lacking)

    def _first(self, waiting: Iterable[_T], window_of: Callable[[_T], Window]) -> list[_T]:
        """What one task announces, in order of the windows: the run's own window, and then the oldest ones.

        What waits for the run's own partition, waits for this run.
        """
        in_order = sorted(waiting, key=window_of)
        own_first = sorted(in_order, key=lambda one: window_of(one) != self._keys.own)
        return sorted(own_first[:MOST_EVENTS], key=window_of)

    def _withhold_unknown(self, tables: Sequence[SourceTable]) -> None:
        """Of tables among the outlets that no topic or stream lands in now."""
        known = {asset_of(self._sink), *(asset_of(one.sink) for one in tables)}
        whole = self._sink.location
        own = re.compile(re.escape(whole).replace(re.escape(ANY), "[a-z0-9_-]+"))
        start = whole.partition(ANY)[0]
        self._task.outlets = [
            outlet
            for outlet in self._task.outlets
            if not isinstance(outlet, Asset)
            or outlet in known
            or not (own.fullmatch(outlet.uri) or may_shorten(outlet.uri, start))
        ]

    def _send_table(self, table: SourceTable, chosen: Sequence[Run], keys: _Keys) -> None:
        asset = asset_of(table.sink)
        self._send(asset, {run.window: run.facts(self._reader) for run in chosen}, keys)
        self._announce(chosen, keys)
        if chosen:
            _warn_if_undeclared(self._context, asset)

    def _send_whole(self, windows: Sequence[Window], covered: _Covered, keys: _Keys) -> None:
        facts = {
            window: _facts(window, self._reader, [rows[window] for rows in covered.values() if window in rows])
            for window in windows
        }
        self._send(asset_of(self._sink), facts, keys)

    def _announce(self, told: Sequence[Run], keys: _Keys) -> None:
        given = {run.ref.id: keys[run.window] for run in told}
        self._journal.announce(given, self._announcer, given)

    def _keys_of(self, tables: Sequence[SourceTable], waiting: _Waiting) -> dict[Window, str | None]:
        """The keys of the windows that this run may announce; None: it has none. No two have the same.

        A window has the same key in all tables.
        """
        windows = list(dict.fromkeys(run.window for runs in waiting.values() for run in runs))
        source_keys = [table.source.key for table in tables]
        # the keys are in the schedule's time zone
        schedules = (schedule_of(self._journal, one, self._reader) for one in source_keys)
        window_schedule = next(filter(None, schedules), None)
        known = self._journal.known_keys(source_keys, self._reader, windows, [])
        keys = {window: self._keys.key(window, window_schedule, known) for window in windows}
        shared = {window for window in windows if self._keys.shares_own_key(window, window_schedule, known)}
        if self._keys.rule is not None and self._keys.writes(keys):
            for source_key in source_keys:
                self._journal.note_key_rule(source_key, self._reader, self._keys.rule)
        if not has(Feature.PARTITION_EVENTS):
            keys = {window: key if key == self._keys.own_key else None for window, key in keys.items()}
        self._warn_of_nameless(keys, shared)
        known = self._journal.known_keys(source_keys, self._reader, windows, [key for key in keys.values() if key])
        return dict(self._unique(keys, known))

    def _warn_of_nameless(self, keys: _Keys, shared: Collection[Window]) -> None:
        waiting = [window for window, key in keys.items() if self._waits(key)]
        for window in waiting:
            if window in shared:
                _log.warning(
                    "%s has no event of %s yet: its key %r is this run's own key, which names %s. A later run "
                    "announces it, or AnnounceWindowsOperator in a DAG without partitions",
                    *(window, self._sink.location, self._keys.own_key, self._keys.own or "another window"),
                )
        nameless = ", ".join(str(window) for window in waiting if window not in shared)
        if nameless:
            _log.warning(
                "This DAG's timetable does not tell by which rule it wrote the key %r of this run, so there is no "
                "event of %s under the keys of %s: run the DAG for their partitions",
                *(self._keys.own_key, self._sink.location, nameless),
            )

    def _waits(self, key: str | None) -> bool:
        """Whether a window of this key is left to a run that can name it: Airflow would give this run's key to it."""
        return key is None and self._keys.own_key is not None and self._keys.key_format is not None

    def _unique(self, keys: _Keys, known: Known) -> Iterator[tuple[Window, str | None]]:
        taken = dict(known.taken)
        for window, key in keys.items():
            other = None if key is None else taken.get(key, window)
            if other not in (None, window):
                _log.warning(
                    "%s has no event of %s under its key %r, which is the key of %s: its reader's windows are named in "
                    "two time zones, or the key tells no offset where clocks go back. Read the other window again "
                    "under its own key, or give the timetable the zone UTC",
                    *(window, self._sink.location, key, other),
                )
                key = None  # noqa: PLW2901 - an event under it would start what waits for the other window
            elif key is not None:
                taken[key] = window
            if not self._waits(key):
                yield window, key

    def _send(self, asset: Asset, facts: Mapping[Window, _Facts], keys: _Keys) -> None:
        """One event of an asset with the facts of all windows, and one for each under its key.

        In a run with a partition, the first has the run's key, and so it is of the run's window alone.
        """
        events, own_key = self._context["outlet_events"], self._keys.own_key
        plain = [fact for window, fact in facts.items() if own_key is None or keys[window] == own_key]
        if plain:
            events[asset].extra.update(_extra(plain))
        keyed = {key: fact for window, fact in facts.items() if (key := keys[window]) not in (None, own_key)}
        for key, fact in keyed.items():
            _send_under_key(events, asset, str(key), fact)
        if not plain and not keyed:
            _withhold(self._task, [asset])


def _extra(facts: Sequence[_Facts]) -> _Facts:
    """What an event says: the facts of the newest window, and those of all."""
    return {**facts[-1], "windows": list(facts)}


def _facts(window: Window, reader: str, rows: Sequence[int | None]) -> _Facts:
    """What the event says of a window of all tables, by the rows of each that has it."""
    return {"window": window.to_json(), "reader": reader, "tables": len(rows), "rows": sum(filter(None, rows))}


def _warn_if_undeclared(context: Context, asset: Asset) -> None:
    """Airflow knows a task's assets before it runs, a mapped one's from `partial`: it stores no event of others."""
    task = context["task"]
    declared = task.dag.get_task(task.task_id) if task.dag else task
    is_mapped = isinstance(declared, MappedOperator)
    outlets = declared.partial_kwargs.get("outlets") if isinstance(declared, MappedOperator) else declared.outlets
    if asset not in (outlets or ()):
        _log.warning(
            "%s is a mapped task, or its sink has templates, and its table's asset is not declared: no DAG hears of "
            "these windows. Write %s%s(.., outlets=[Asset(uri=%r)])",
            *(task.task_id, task.task_type, ".partial" if is_mapped else "", asset.uri),
        )


def _send_under_key(events: Any, asset: Asset, key: str, fact: _Facts) -> None:
    """An event under a partition key.

    Airflow's public way, `add_partitions`, gives all keys the same facts and leaves the event without a key out; so
    each key has an accessor of its own here.
    """
    from airflow.sdk.execution_time.context import OutletEventAccessor  # noqa: PLC0415 - where a task runs

    place = _Partition(asset.name, asset.uri, key)
    accessor = OutletEventAccessor(key=place, extra=_extra([fact]))
    accessor.add_partitions(key)
    events._dict[place] = accessor  # noqa: SLF001 - there is no public name for it


class _Partition(AssetUniqueKey):
    """The asset's key, one for each of its partitions."""

    partition: str

    def __init__(self, name: str, uri: str, key: str) -> None:
        object.__setattr__(self, "partition", key)
        super().__init__(name, uri)

    def __hash__(self) -> int:
        return hash((self.name, self.uri, self.partition))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Partition) and (self.name, self.uri, self.partition) == (
            other.name,
            other.uri,
            other.partition,
        )
