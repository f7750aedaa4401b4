"""Wait for a schema: a producer's first one, a version, or columns that the next step needs. Nothing is consumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.sensors.condition import ConditionSensor
from airflow_provider_streams.systems.conditions import condition_from_json

if TYPE_CHECKING:
    from airflow_provider_streams.hooks.base import StreamHook
    from airflow_provider_streams.model.source import Source
    from airflow_provider_streams.systems.conditions import Condition


class SchemaAvailableSensor(ConditionSensor):
    """Waits until each topic of a source, or the group of its registry, has a schema.

    Args:
        source: `PulsarSource(..)`; or `PravegaSource(.., value=Registry(..))`. A group that does not exist is waited
            for, too.
        version: at least this one, counted from 0: of a topic its schema's version, of a group the schema's id.
        columns: names that the newest schema must have; of fields within columns `customer.city`.

    Returns (XCom):
        `versions`: the newest of each topic or stream.
    """

    template_fields: Sequence[str] = ("columns",)

    def __init__(self, *, source: Source, version: int = 0, columns: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source, self.version, self.columns = source, version, list(columns)
        self._condition()

    def hook(self) -> StreamHook:
        """The hook of its connection."""
        return hook_for(self.source)

    def asked(self, hook: StreamHook) -> Source:  # noqa: ARG002 - all sensors' shape
        """The topics or the stream."""
        return self.source

    def condition(self, hook: StreamHook) -> Condition:  # noqa: ARG002 - all sensors' shape
        """A schema that is there."""
        return self._condition()

    def _condition(self) -> Condition:
        wanted = {"kind": "schema_available", "version": self.version, "columns": list(self.columns)}
        return condition_from_json(self.source.system, wanted)
