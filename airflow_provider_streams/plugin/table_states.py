"""What a reader's table holds, seen from the api-server, which need not see it."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.journal import coverage_rollup as summed
from airflow_provider_streams.journal.reader_overview import ReaderOverview
from airflow_provider_streams.journal.runs import window_states
from airflow_provider_streams.lake.registry import FORMATS
from airflow_provider_streams.model.window.coverage import Coverage
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.plugin.timeline import MOST_WINDOWS
from airflow_provider_streams.windows.claim.table_coverage import TableView, compare

NOT_HERE: Final = "its sink is a custom class, which the api-server does not run"


def table_view(connection: Connection, one: ReaderOverview, span: Window) -> TableView | None:
    """The status of a reader's table, and which covered windows of a span it does not hold; None: there is no table.

    For spans with many windows, only the status.
    """
    kept = one.landing
    if kept is None or kept.target is None:
        return None
    if kept.landing["sink"]["kind"] not in FORMATS:
        return TableView(kept.target, "unseen", NOT_HERE)
    with open_journal() as journal:
        return compare(journal, one.source_key, one.reader, _covered(connection, one, span))[1]


def _covered(connection: Connection, one: ReaderOverview, span: Window) -> Coverage:
    if summed.count(connection, one.id, span) > MOST_WINDOWS:
        return Coverage(span, ())
    known = window_states.window_states(connection, one.id, span)
    return Coverage.of((item for item in known if item.run and item.run.dag_id in one.by_dag), span.start, span.end)
