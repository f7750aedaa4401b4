"""Wait for a schema: a producer's first one, a version, or columns that the next step needs. Nothing is consumed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.model.sinks.landing import columns_of
from airflow_provider_streams.sensors.base import ConditionSensor
from airflow_provider_streams.systems.conditions import condition_from_json

if TYPE_CHECKING:
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.systems.conditions import Condition


class SchemaAvailableSensor(ConditionSensor):
    """Waits until each topic of a source, or the group of its registry, has a schema.

    Args:
        source: `PulsarSource(..)`; or `PravegaSource(.., value=Registry(..))`. It also waits
            for a group that does not exist yet.
        version: at least this one, counted from 0: of a topic its schema's version, of a group the schema's id.
        columns: names that the newest schema must have; of fields within columns `customer.city`.

    Returns (XCom):
        `versions`: the newest of each topic or stream.
    """

    template_fields: Sequence[str] = ("source", "columns")

    def __init__(
        self,
        *,
        source: Source,
        version: int = 0,
        columns: Sequence[str] = (),
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(deferrable=deferrable, poke_interval=poke_interval, **kwargs)
        self.source, self.version, self.columns = source, version, columns
        self.condition()  # refuses when the DAG is parsed

    def target(self) -> Source:
        """The topics or the stream."""
        return self.source

    def condition(self) -> Condition:
        """A schema that is there."""
        wanted = {"kind": "schema_available", "version": self.version, "columns": list(columns_of(self.columns) or ())}
        return condition_from_json(self.source.system, wanted)
