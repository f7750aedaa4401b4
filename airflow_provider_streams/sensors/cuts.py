"""Wait until a cut is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.model.source import Source, check_source
from airflow_provider_streams.model.window import utc_moment
from airflow_provider_streams.sensors.state import StateSensor
from airflow_provider_streams.systems.sources import source_to_json
from airflow_provider_streams.triggers.cuts import CutAvailableTrigger
from airflow_provider_streams.windows.readiness import cut_recorded

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.model.readiness import Readiness


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

    template_fields: Sequence[str] = ("moment",)
    ui_color = "#e3f1d8"

    def __init__(self, *, source: Source, moment: datetime | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source, self.moment = check_source(source), moment

    def ask(self, context: Context) -> Readiness:  # noqa: ARG002 - all sensors' shape
        """Poll once."""
        with open_journal() as journal:
            return cut_recorded(journal, self.source, utc_moment(self.moment))

    def trigger(self, context: Context) -> CutAvailableTrigger:  # noqa: ARG002 - all sensors' shape
        """The trigger that goes on asking."""
        moment = utc_moment(self.moment).isoformat()
        return CutAvailableTrigger(source_to_json(self.source), moment, self.poke_interval)
