"""Asset events of landed windows: one for the table, and one per window under its partition key.

Airflow keeps two kinds of consumers apart: an event with a partition key never starts a DAG that is scheduled by the
asset alone, and one without never fills a partition. So a task that lands several windows sends both. What a task that
failed had landed is announced by the next one of its reader that succeeds: Airflow takes no event from a failed task.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset
from airflow.sdk.definitions.asset import AssetUniqueKey
from airflow.sdk.definitions.mappedoperator import MappedOperator

from airflow_provider_streams.model.partition_key import partition_key
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.windows.ask import Ask
from airflow_provider_streams.windows.kept_landing import grid_of

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from airflow_provider_streams.journal.runs import Run
    from airflow_provider_streams.journal.store import Journal

MOST_EVENTS = 100
"""So many windows one task announces: Airflow stores them while the task's end waits, SQLite not without trouble."""

_log = logging.getLogger(__name__)


def withhold(task: BaseOperator, asset: Asset) -> None:
    """No event of an asset from this run: nothing was landed. The DAG still shows it as the task's outlet."""
    task.outlets = [outlet for outlet in task.outlets if outlet != asset]


def announce(
    journal: Journal, context: Context, ask: Ask, sink: Sink, key_format: str | None, *, most: int = MOST_EVENTS
) -> int:
    """Send the events of what a reader has landed and nobody announced yet; how many are left.

    Args:
        journal: knows.
        context: the task's.
        ask: of which source, and whose.
        sink: the table, whose asset is one of the task's outlets.
        key_format: how a window's start becomes a partition key; None: no events under keys.
        most: so many windows are told of.
    """
    asset = Asset(uri=sink.asset_uri)
    waiting = journal.unannounced(ask.source.key, ask.reader)
    chosen = waiting[:most]
    if not chosen:
        return len(waiting)
    newest: dict[Window, Run] = {run.window: run for run in chosen}
    facts: list[Any] = [run.facts(ask.reader) for run in newest.values()]
    events = context["outlet_events"]
    events[asset].extra.update({**facts[-1], "windows": facts})
    if key_format is not None:
        grid = grid_of(journal, ask.source.key, ask.reader)  # its zone is that of the keys
        keys = [partition_key(window, grid, key_format) for window in newest]
        under_keys(events, asset, keys, facts, own=str(context.get("partition_key") or ""))
    journal.announce(run.ref.id for run in chosen)
    _warn_if_undeclared(context, asset)
    if len(waiting) > len(chosen):
        _log.warning("%d windows are landed and not announced yet: the next runs do", len(waiting) - len(chosen))
    return len(waiting) - len(chosen)


def _warn_if_undeclared(context: Context, asset: Asset) -> None:
    """Airflow knows a mapped task's assets from `partial` alone: it stores no event of others, and says nothing."""
    task = context["task"]
    declared = task.dag.get_task(task.task_id) if task.dag else task
    if isinstance(declared, MappedOperator) and asset not in (declared.partial_kwargs.get("outlets") or ()):
        _log.warning(
            "%s is a mapped task, and its table's asset is not declared: no DAG hears of these windows. "
            "Write %s.partial(.., outlets=[Asset(uri=%r)])",
            task.task_id,
            task.task_type,
            asset.uri,
        )


def under_keys(events: Any, asset: Asset, keys: Sequence[str], facts: Sequence[Any], own: str) -> None:
    """An event per partition key, each with its own facts.

    Airflow's public way, `add_partitions`, gives all keys the same facts and leaves the event without a key out; so
    each key has an accessor of its own here.
    """
    from airflow.sdk.execution_time.context import OutletEventAccessor  # noqa: PLC0415 - where a task runs

    for key, fact in zip(keys, facts, strict=True):
        if key == own:  # Airflow gives the run's own key to the asset's event
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
