"""What Pulsar says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.basis import BasisName
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.declaration import ConnectionForm, Declaration, PayloadColumns
from airflow_provider_streams.systems.option import Option
from airflow_provider_streams.systems.pulsar.column_names import COLUMN_NAMES, DEFAULT_COLUMN_NAMES
from airflow_provider_streams.systems.pulsar.names import parent_of
from airflow_provider_streams.systems.pulsar.options import OPTIONS, SOURCE_OPTIONS
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.written import numbers, spans, words


class Pulsar(Declaration):
    """Apache Pulsar: topics and their partitions."""

    name = "pulsar"
    title = "Apache Pulsar"
    system = "airflow_provider_streams.systems.pulsar.system:PulsarSystem"
    source_class = PulsarSource
    bases: ClassVar[tuple[BasisName, ...]] = ("publish", "append", "event", "chained")
    columns = COLUMN_NAMES
    default_columns = DEFAULT_COLUMN_NAMES
    shard_columns = frozenset({"topic", "partition"})
    payload_columns = PayloadColumns(
        "value",
        "key_bytes",
        "schema_version",
        ("ledger", "entry", "batch_index"),
        ("ledger", "entry"),
        "broker_time",
        "publish_time",
        "replicated_from",
    )
    # `_partition` is a column that Iceberg gives to each table: Spark selects nothing from one that has its own
    metadata_names: ClassVar[Mapping[str, str]] = {"partition": "_partition_index"}
    peer_columns: ClassVar[Mapping[str, str]] = {
        "__key": "key_bytes",
        "__topic": "topic",
        "__messageId": "message_id",
        "__publishTime": "publish_time",
        "__eventTime": "event_time",
        "__messageProperties": "properties",
    }
    options: ClassVar[tuple[Option, ...]] = OPTIONS
    source_options: ClassVar[tuple[Option, ...]] = SOURCE_OPTIONS
    placeholders = ("tenant", "namespace", "topic")
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

    def placeholder_names(self, single: Source) -> Mapping[str, str]:
        """Of its full name."""
        (topic,) = cast("PulsarSource", single).topics
        parts = topic.removeprefix("persistent://").split("/", 2)
        return dict(zip(self.placeholders, parts, strict=True))

    def named_singles(self, source: Source) -> tuple[Source, ...] | None:
        """Its topics; of a pattern, the cluster must be asked."""
        asked = cast("PulsarSource", source)
        if asked.pattern and asked.partitions:
            raise InvalidRequest(
                f"{asked}: which topics of a pattern have these partitions changes with time, so they cannot each have "
                "a table: name the topics, or leave out partitions"
            )
        return None if asked.pattern else tuple(asked.only(topic) for topic in asked.topics)

    def single_of(self, source: Source, shard: str) -> Source:
        """The topic of a partition."""
        return cast("PulsarSource", source).only(parent_of(shard))

    def has_shard(self, single: Source, shard: str) -> bool:
        """A partition of its topic, or itself."""
        (topic,) = cast("PulsarSource", single).topics
        return topic in (shard, parent_of(shard))

    def position_of(self, run: int, unit: int) -> Position:
        """At an entry of a ledger."""
        return Position.of(run, unit, -1)

    def decode_cut(self, text: str, shard: str) -> list[dict[str, Any]]:
        """Of a message id in any notation."""
        from airflow_provider_streams.systems.pulsar.message_id import parse_position  # noqa: PLC0415 - when asked

        ledger, entry, batch_index = parse_position(text, shard).parts
        return [{"ledger": ledger, "entry": entry, "batch_index": batch_index}]

    def _source(self, names: Sequence[str], conn_id: str, details: Mapping[str, Any]) -> Source:
        return PulsarSource(names, conn_id=conn_id, **{**details, **chosen(details)})


def chosen(details: Mapping[str, Any]) -> dict[str, Any]:
    """The partitions, keys and ranges of hashes that a source has only, from their texts."""
    return {
        "partitions": numbers("partitions", details.get("partitions", "")),
        "keys": words(details.get("keys", "")),
        "key_hash_ranges": spans("key hash ranges", details.get("key_hash_ranges", "")),
    }
