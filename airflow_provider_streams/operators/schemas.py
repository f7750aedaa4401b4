"""Checks of schemas: before a producer is rolled out, or a reader. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_streams.errors import InvalidRequest, SchemaRefused
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.systems.schemas import OfferedSchema
from airflow_provider_streams.template_rendering import RendersValues

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.systems.schemas import Check


class CheckSchemaCompatibilityOperator(RendersValues, BaseOperator):
    """Fails if a schema does not fit those of a source: of a Pulsar topic, or of a group of Pravega's Schema Registry.

    Args:
        source: `PulsarSource(..)`; or `PravegaSource(.., value=Registry(..))`, whose registry and group are asked.
        schema: the schema's own text (templated): Avro's JSON; of `json` what the system keeps for it (Pulsar: also
            Avro's JSON; a registry: JSON Schema); of `protobuf` the descriptor set as base64 (Pulsar: with its JSON
            around it).
        schema_type: `avro`, `json` or `protobuf`, or the system's own word.
        schema_name: registry: the name of the type (templated), where the text does not say it.
        properties: the system's own, with the schema.
        check: `write`: whether the source takes the schema, by its policy; `read`, for a registry: whether a reader
            with it can read what is written.
        policy: registry: another policy than the group's own, like `BackwardTransitive`.

    Raises (when it runs):
        SchemaRefused: it does not fit; with Pulsar's reason.

    Returns (XCom):
        `compatible, policy`.
    """

    template_fields: Sequence[str] = ("source", "schema", "schema_name")
    ui_color = "#e9e3f5"

    def __init__(
        self,
        *,
        source: Source,
        schema: str,
        schema_type: str = "avro",
        schema_name: str = "",
        properties: Mapping[str, str] | None = None,
        check: Check = "write",
        policy: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if check not in ("write", "read"):
            raise InvalidRequest(f"check must be 'write' or 'read', got {check!r}")
        self.source, self.schema, self.schema_type, self.schema_name = source, schema, schema_type, schema_name
        self.properties, self.check, self.policy = dict(properties or {}), check, policy

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Ask, and fail if it does not fit.

        Raises:
            StreamsError: typed; one that cannot pass by itself stops retries.
        """
        offered = OfferedSchema(self.schema_type, self.schema, self.schema_name, self.properties)
        with terminal_errors(), closing(hook_for(self.source)) as hook:
            found = hook.check_schema(self.source, offered, self.check, self.policy)
            if not found.compatible:
                raise SchemaRefused(self.source, offered.shown, found.policy, found.reason)
        self.log.info("%s: schema %s fits (%s)", self.source, offered.shown, found.policy or "policy not known")
        return {"compatible": True, "policy": found.policy}
