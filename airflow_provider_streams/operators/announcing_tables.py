"""Asset events of many tables: one for all of them, and one for each that is among the task's outlets.

Airflow stores the events of a task while its end waits, so there are not hundreds of them. Whoever follows single
tables of a pattern names these assets as outlets of the task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset

from airflow_provider_streams.model.partition_key import partition_key
from airflow_provider_streams.model.target import ANY
from airflow_provider_streams.operators.announcing import MOST_EVENTS, announce, under_keys, withhold
from airflow_provider_streams.windows.kept_landing import grid_of

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from airflow_provider_streams.journal.runs import Run
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.placeholders import SourceTable
    from airflow_provider_streams.model.sink import Sink
    from airflow_provider_streams.model.window import Window
    from airflow_provider_streams.windows.ask import Ask

Told = list[tuple["SourceTable", "Run"]]


class TablesAnnouncement:
    """The events of what a reader has landed in many tables, and nobody announced yet.

    Args:
        journal: knows.
        task: whose outlets they are.
        context: the task's.
        ask: of the source as a whole, and whose.
        sink: with placeholders; its asset stands for all tables.
    """

    def __init__(self, journal: Journal, task: BaseOperator, context: Context, ask: Ask, sink: Sink) -> None:
        self._journal, self._task, self._context, self._ask, self._sink = journal, task, context, ask, sink

    def send(self, tables: Sequence[SourceTable], key_format: str | None) -> int:
        """Send them; how many windows of single tables are left.

        Args:
            tables: the topics or streams, each with its table.
            key_format: how a window's start becomes a partition key; None: no events under keys.
        """
        told = [(one, run) for one in tables for run in self._journal.unannounced(one.source.key, self._ask.reader)]
        if not told:
            withhold_tables(self._task, self._sink, tables)
            return 0
        self._withhold_strangers(tables)
        followed = [one for one in tables if Asset(uri=one.sink.asset_uri) in self._task.outlets]
        left = self._announce_single(followed, told, key_format)
        self._announce_whole(told, key_format)
        keys = {one.source.key for one in followed}
        self._journal.announce(run.ref.id for one, run in told if one.source.key not in keys)
        return left

    def _withhold_strangers(self, tables: Sequence[SourceTable]) -> None:
        """Of tables that somebody follows, and that no topic or stream lands in now."""
        known = {Asset(uri=one.sink.asset_uri) for one in tables}
        own = re.compile(re.escape(self._sink.asset_uri).replace(re.escape(ANY), "[a-z0-9_-]+"))
        for outlet in list(self._task.outlets):
            if isinstance(outlet, Asset) and outlet not in known and own.fullmatch(outlet.uri):
                withhold(self._task, outlet)

    def _announce_single(self, tables: Sequence[SourceTable], told: Told, key_format: str | None) -> int:
        left, budget = 0, MOST_EVENTS
        for table in tables:
            waiting = sum(one is table for one, _ in told)
            if not waiting:
                withhold(self._task, Asset(uri=table.sink.asset_uri))
                continue
            ask = replace(self._ask, source=table.source)
            rest = announce(self._journal, self._context, ask, table.sink, key_format, most=budget)
            left, budget = left + rest, budget - (waiting - rest)
        return left

    def _announce_whole(self, told: Told, key_format: str | None) -> None:
        by_window: dict[Window, Told] = {}
        for table, run in told:
            by_window.setdefault(run.window, []).append((table, run))
        newest = sorted(by_window, key=lambda window: window.start)[-MOST_EVENTS:]
        facts: list[Any] = [_facts(window, self._ask.reader, by_window[window]) for window in newest]
        asset, events = Asset(uri=self._sink.asset_uri), self._context["outlet_events"]
        events[asset].extra.update({**facts[-1], "windows": facts})
        if key_format is not None:
            grid = grid_of(self._journal, told[0][0].source.key, self._ask.reader)
            keys = [partition_key(window, grid, key_format) for window in newest]
            under_keys(events, asset, keys, facts, own=str(self._context.get("partition_key") or ""))


def withhold_tables(task: BaseOperator, sink: Sink, tables: Sequence[SourceTable]) -> None:
    """No event of any of them: nothing was landed."""
    for one in (sink, *(table.sink for table in tables)):
        withhold(task, Asset(uri=one.asset_uri))


def _facts(window: Window, reader: str, told: Told) -> dict[str, Any]:
    """What the event says of a window of all tables."""
    return {
        "window": window.to_json(),
        "reader": reader,
        "tables": len({table.sink.asset_uri for table, _ in told}),
        "rows": sum(run.rows or 0 for _, run in told),
    }
