"""Announce to Airflow what a reader has landed, whether its task succeeded or failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_streams.airflow_runtime.asset_events import Announcement
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.sinks.placeholders import SourceTable
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.partition_key import KEY_FORMAT
from airflow_provider_streams.operators.base import add_assets
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.template_rendering import RendersValues
from airflow_provider_streams.timetables.run_facts import partition_keys

if TYPE_CHECKING:
    from airflow.sdk import Context


class AnnounceWindowsOperator(RendersValues, BaseOperator):
    """Sends the asset events of landed windows that were not announced yet: one, and one under each partition key.

    As everywhere, a run that has a partition key itself sends only those under keys.

    A failed task sends no events, not even of the windows that it landed before it failed. As its teardown
    (`backfill >> announce.as_teardown()`), this operator sends them, and the run stays failed.

    Args:
        source: what was read.
        reader: who landed it (templated): `dag_id.task_id` of the reading task.
        sink: the table.
        partition_key_format: as `BackfillWindowsOperator`'s.

    Returns (XCom):
        `unannounced`: how many windows are left for the next run.
    """

    template_fields: Sequence[str] = ("source", "reader", "sink")
    ui_color = "#d3ecf0"

    def __init__(
        self,
        *,
        source: Source,
        reader: str,
        sink: Sink,
        partition_key_format: str | None = KEY_FORMAT,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source, self.reader, self.sink = source, reader, sink
        self.partition_key_format = partition_key_format
        add_assets(self, source, sink)

    def execute(self, context: Context) -> dict[str, Any]:
        """Send the events; if no window waits, send none."""
        with terminal_errors(), open_journal() as journal:
            tables = [SourceTable(self.source, Landing(self.sink).sink or self.sink)]
            keys = partition_keys(context, key_format=self.partition_key_format)
            announcement = Announcement(journal, self, context, reader=self.reader, sink=self.sink, keys=keys)
            left = announcement.send(tables)
        return {"unannounced": left}
