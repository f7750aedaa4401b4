"""Wait until a table has everything of its source up to a moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.placeholders import is_fan_out
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.window.window import utc_moment
from airflow_provider_streams.sensors.base import StateSensor
from airflow_provider_streams.triggers.freshness import FreshTableTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class FreshTableSensor(StateSensor):
    """Waits until all windows of a table's reader are covered without a gap, from its first one up to a moment.

    Then the table has all rows, or reflects all changes, of its source up to that moment: also where windows run in any
    order, and some of them later. Only the journal is asked, not the table.

    Args:
        sink: the table (templated); one table, without placeholders.
        until: the moment (templated), aware, or its text in ISO 8601 with an offset.

    Returns (XCom):
        `table, reader, source, until, covered_until`.

    Raises:
        InvalidRequest: the sink is no single table.
    """

    template_fields: Sequence[str] = ("sink", "until")
    ui_color = "#e3f1d8"

    def __init__(
        self,
        *,
        sink: Sink,
        until: datetime | str,
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(deferrable=deferrable, poke_interval=poke_interval, **kwargs)
        if isinstance(sink, type) or not isinstance(sink, Sink):
            raise InvalidRequest(f"sink is a table, like IcebergSink('shop.orders'), not {sink!r:.100}")
        if is_fan_out(sink):
            raise InvalidRequest(f"{sink.asset_uri} is a table for each topic or stream: wait for each of them by name")
        self.sink, self.until = sink, until

    def trigger(self, context: Context) -> FreshTableTrigger:  # noqa: ARG002 - all sensors' shape
        """As `StateSensor`."""
        return FreshTableTrigger(self.sink.to_json(), utc_moment(self.until).isoformat(), self.poke_interval)
