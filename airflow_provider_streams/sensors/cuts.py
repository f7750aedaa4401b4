"""Wait until a cut is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.model.stream.source import Source, check_source
from airflow_provider_streams.model.window.window import utc_moment
from airflow_provider_streams.sensors.base import StateSensor
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.triggers.cuts import CutAvailableTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class CutAvailableSensor(StateSensor):
    """Waits until the journal holds a cut of a source that was sampled at or after a time.

    That cut is the one which windows of basis `append` take for this time, once and for all. The source itself is
    not asked: a recorder (`RecordCutsOperator`) must run.

    Args:
        source: whose cuts.
        moment: the time (templated), aware, or its text in ISO 8601 with an offset.

    Returns (XCom):
        `cut, sampled_from, sampled_to, skew_seconds, recorder`.
    """

    template_fields: Sequence[str] = ("source", "moment")
    ui_color = "#e3f1d8"

    def __init__(
        self,
        *,
        source: Source,
        moment: datetime | str,
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(deferrable=deferrable, poke_interval=poke_interval, **kwargs)
        self.source, self.moment = check_source(source), moment

    def trigger(self, context: Context) -> CutAvailableTrigger:  # noqa: ARG002 - all sensors' shape
        """As `StateSensor`."""
        moment = utc_moment(self.moment).isoformat()
        return CutAvailableTrigger(source_to_json(self.source), moment, self.poke_interval)
