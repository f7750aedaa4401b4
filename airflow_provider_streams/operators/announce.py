"""Tell Airflow what a reader has landed, whatever became of the task that did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, BaseOperator

from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.model.landing import Landing
from airflow_provider_streams.model.partition_key import KEY_FORMAT
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.operators.announcing import announce, withhold
from airflow_provider_streams.operators.base import add_assets
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.windows.ask import Ask

if TYPE_CHECKING:
    from airflow.sdk import Context


class AnnounceWindowsOperator(BaseOperator):
    """Sends the asset events of landed windows that nobody announced yet: one, and one under each partition key.

    A task that fails tells Airflow nothing, also not of the windows that it landed before. As a teardown of it
    (`backfill >> announce.as_teardown()`), this one does, and the run stays failed.

    Args:
        source: what was read.
        reader: who landed it (templated): `dag_id.task_id` of the reading task.
        sink: the table.
        partition_key_format: as `BackfillWindowsOperator`'s.

    Returns (XCom):
        `unannounced`: how many windows are left for the next run.
    """

    template_fields: Sequence[str] = ("reader",)
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
        """Tell, or keep quiet when there is nothing."""
        with terminal_errors(), open_journal() as journal:
            if not journal.unannounced(self.source.key, self.reader):
                withhold(self, Asset(uri=self.sink.asset_uri))
                return {"unannounced": 0}
            ask = Ask(self.source, self.reader, Landing(self.sink), "publish")
            left = announce(journal, context, ask, self.sink, self.partition_key_format)
        return {"unannounced": left}
