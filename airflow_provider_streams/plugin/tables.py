"""What a reader's table holds, seen from the api-server, which need not see it."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.journal import history
from airflow_provider_streams.journal import pieces as summed
from airflow_provider_streams.journal.overview import ReaderOverview
from airflow_provider_streams.model.coverage import Coverage
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.plugin.timeline import MOST_WINDOWS
from airflow_provider_streams.windows.table import TableView, compare

NOT_HERE: Final = "its sink is a class of somebody's own, which the api-server does not run"


def table_view(connection: Connection, one: ReaderOverview, span: Window) -> TableView | None:
    """How the table of a reader stands, and which covered windows of a span it does not hold; None: there is none.

    Of spans with many windows only how it stands.
    """
    from airflow_provider_streams.spark.sinks import WRITERS  # noqa: PLC0415 - who looks loads them

    kept = one.landing
    if kept is None or kept.landing is None or kept.target is None:
        return None
    if kept.landing["sink"]["kind"] not in WRITERS:
        return TableView(kept.target, "unseen", NOT_HERE)
    with open_journal() as journal:
        return compare(journal, one.source_key, one.reader, _covered(connection, one, span))[1]


def _covered(connection: Connection, one: ReaderOverview, span: Window) -> Coverage:
    if summed.count(connection, one.id, span) > MOST_WINDOWS:
        return Coverage(span, ())
    known = history.window_states(connection, one.id, span)
    return Coverage.of((item for item in known if item.run and item.run.dag_id in one.by_dag), span.start, span.end)
