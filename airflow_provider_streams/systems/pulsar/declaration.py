"""What Pulsar says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow_provider_streams.model.basis import BasisName
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.declaration import ConnectionForm, Declaration
from airflow_provider_streams.systems.option import Option
from airflow_provider_streams.systems.pulsar.column_names import COLUMN_NAMES
from airflow_provider_streams.systems.pulsar.names import parent_of
from airflow_provider_streams.systems.pulsar.options import OPTIONS, SOURCE_OPTIONS
from airflow_provider_streams.systems.pulsar.source import PulsarSource


class Pulsar(Declaration):
    """Apache Pulsar: topics and their partitions."""

    name = "pulsar"
    title = "Apache Pulsar"
    system = "airflow_provider_streams.systems.pulsar.system:PulsarSystem"
    source_class = PulsarSource
    bases: ClassVar[tuple[BasisName, ...]] = ("publish", "append", "chained")
    columns = COLUMN_NAMES
    options: ClassVar[tuple[Option, ...]] = OPTIONS
    source_options: ClassVar[tuple[Option, ...]] = SOURCE_OPTIONS
    hook = "airflow_provider_streams.hooks.pulsar:PulsarHook"
    conditions = "airflow_provider_streams.systems.pulsar.conditions:CONDITIONS"
    form = ConnectionForm(
        labels={"host": "Broker host", "port": "Broker port", "password": "Token (JWT)"},
        placeholders={"host": "broker.example.com", "port": "6650", "password": "empty without authentication"},
        hidden=("schema", "login"),
        holds=frozenset({"token"}),
    )

    def dataset(self, names: Sequence[str], shard: str) -> str:  # noqa: ARG002 - a plan may read several topics
        """The topic, `tenant/namespace/topic`."""
        return parent_of(shard).removeprefix("persistent://")

    def decode_cut(self, text: str, shard: str) -> list[dict[str, Any]]:
        """Of a message id in any notation."""
        from airflow_provider_streams.systems.pulsar.message_id import parse_position  # noqa: PLC0415 - when asked

        ledger, entry, batch_index = parse_position(text, shard).parts
        return [{"ledger": ledger, "entry": entry, "batch_index": batch_index}]

    def _source(self, names: Sequence[str], conn_id: str, details: Mapping[str, Any]) -> Source:
        return PulsarSource(names, conn_id=conn_id, **details)
