"""Asset events of landed windows: one for the table, and one per window under its partition key.

Airflow keeps two kinds of consumers apart: an event with a partition key never starts a DAG that is scheduled by the
asset alone, and one without never fills a partition. So a task that lands several windows sends both. What a failed
task had landed is announced by the next task of its reader that succeeds: Airflow takes no event from a failed task.

Of many tables there is one event for all, and one for each table that is among the task's outlets: Airflow stores the
events of a task while its end waits, so there are not hundreds of them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset
from airflow.sdk.definitions.asset import AssetUniqueKey
from airflow.sdk.definitions.mappedoperator import MappedOperator

from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.errors.counted import counted
from airflow_provider_streams.model.asset_uri import may_shorten, short_uri
from airflow_provider_streams.model.sinks.placeholders import SourceTable, is_fan_out
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.sinks.table_name import ANY
from airflow_provider_streams.model.window.partition_key import PartitionKeys
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.windows.claim.landing_defaults import schedule_of

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from airflow_provider_streams.journal.runs.run_records import Run
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.stream.source import Source

MOST_EVENTS = 100
"""How many windows one task announces: Airflow stores them while the task's end waits, which SQLite takes badly."""

_log = logging.getLogger(__name__)

_Landed = list[tuple[SourceTable, "Run"]]


def asset_of(value: Source | Sink) -> Asset:
    """A source's or a sink's asset, also of a class of the user's own that gives a longer URI than Airflow takes."""
    return Asset(uri=short_uri(value.asset_uri))


def withhold(task: BaseOperator, sinks: Iterable[Sink]) -> None:
    """No event of these tables from this run: nothing was landed. The DAG still shows them as the task's outlets."""
    withheld = [asset_of(sink) for sink in sinks]
    task.outlets = [outlet for outlet in task.outlets if outlet not in withheld]


class Announcement:
    """The events of windows that a reader has landed, and that were not announced yet.

    Args:
        journal: knows them.
        task: whose outlets the tables are.
        context: the run's.
        reader: who landed them.
        sink: the table; with placeholders, its asset stands for all tables.
        keys: the windows' partition keys; None: no events under keys.
    """

    def __init__(
        self,
        journal: Journal,
        task: BaseOperator,
        context: Context,
        *,
        reader: str,
        sink: Sink,
        keys: PartitionKeys | None,
    ) -> None:
        self._journal, self._task, self._context = journal, task, context
        self._reader, self._sink, self._keys = reader, sink, keys

    def send(self, tables: Sequence[SourceTable]) -> int:
        """Send the events of tables; how many windows are left for the next run. If none wait, no event is sent."""
        known = {table: self._journal.unannounced(table.source.key, self._reader) for table in tables}
        waiting = {table: runs for table, runs in known.items() if runs}
        if not waiting:
            withhold(self._task, (self._sink, *(table.sink for table in tables)))
            return 0
        if not is_fan_out(self._sink):
            (table,) = tables
            return self._send_table(table, waiting[table], MOST_EVENTS)
        self._withhold_unknown(tables)
        left, budget = 0, MOST_EVENTS
        followed = [table for table in tables if asset_of(table.sink) in self._task.outlets]
        withhold(self._task, (table.sink for table in followed if table not in waiting))
        for table in followed:
            if table in waiting:
                rest = self._send_table(table, waiting[table], budget)
                left, budget = left + rest, budget - (len(waiting[table]) - rest)
        self._send_whole([(table, run) for table, runs in waiting.items() for run in runs])
        others = (runs for table, runs in waiting.items() if table not in followed)
        self._journal.announce(run.ref.id for runs in others for run in runs)
        return left

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

    def _send_table(self, table: SourceTable, waiting: Sequence[Run], most: int) -> int:
        chosen, asset = waiting[:most], asset_of(table.sink)
        if not chosen:
            return len(waiting)
        newest: dict[Window, Run] = {run.window: run for run in chosen}
        self._send(asset, table, list(newest), [run.facts(self._reader) for run in newest.values()])
        self._journal.announce(run.ref.id for run in chosen)
        _warn_if_undeclared(self._context, asset)
        if left := len(waiting) - len(chosen):
            _log.warning("%s landed but not announced yet: the next runs announce them", counted(left, "window"))
        return len(waiting) - len(chosen)

    def _send_whole(self, landed: _Landed) -> None:
        by_window: dict[Window, _Landed] = {}
        for one in landed:
            by_window.setdefault(one[1].window, []).append(one)
        windows = sorted(by_window, key=lambda window: window.start)[-MOST_EVENTS:]
        facts = [_facts(window, self._reader, by_window[window]) for window in windows]
        self._send(asset_of(self._sink), landed[0][0], windows, facts)

    def _send(self, asset: Asset, table: SourceTable, windows: Sequence[Window], facts: Sequence[Any]) -> None:
        """One event of an asset with the facts of all windows, and one for each under its key."""
        events = self._context["outlet_events"]
        events[asset].extra.update({**facts[-1], "windows": list(facts)})
        if self._keys is not None and has(Feature.PARTITION_EVENTS):
            # the keys are in the schedule's time zone
            window_schedule = schedule_of(self._journal, table.source.key, self._reader)
            keys = [self._keys.key(window, window_schedule) for window in windows]
            _warn_if_nameless(asset, self._keys, windows, keys)
            _send_under_keys(events, asset, keys, facts, own=str(self._context.get("partition_key") or ""))


def _facts(window: Window, reader: str, landed: _Landed) -> dict[str, Any]:
    """What the event says of a window of all tables."""
    return {
        "window": window.to_json(),
        "reader": reader,
        "tables": len({table.sink.asset_uri for table, _ in landed}),
        "rows": sum(run.rows or 0 for _, run in landed),
    }


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


def _warn_if_nameless(
    asset: Asset, keys: PartitionKeys, windows: Sequence[Window], found: Sequence[str | None]
) -> None:
    nameless = [str(window) for window, key in zip(windows, found, strict=True) if key is None]
    if nameless:
        _log.warning(
            "This DAG's timetable does not tell by which rule it wrote the key %r of this run, so there is no event of "
            "%s under the keys of %s: run the DAG for their partitions",
            *(keys.own_key, asset.uri, ", ".join(nameless)),
        )


def _send_under_keys(events: Any, asset: Asset, keys: Sequence[str | None], facts: Sequence[Any], own: str) -> None:
    """An event per partition key, each with its own facts.

    Airflow's public way, `add_partitions`, gives all keys the same facts and leaves the event without a key out; so
    each key has an accessor of its own here.
    """
    from airflow.sdk.execution_time.context import OutletEventAccessor  # noqa: PLC0415 - where a task runs

    for key, fact in zip(keys, facts, strict=True):
        if key is None or key == own:  # Airflow gives the run's own key to the asset's event
            continue
        place = _Partition(asset.name, asset.uri, key)
        accessor = OutletEventAccessor(key=place, extra=dict(fact))
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
