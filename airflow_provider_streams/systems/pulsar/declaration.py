"""The declaration of Pulsar: what differs from other systems, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.table_name import database_names
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import BasisName
from airflow_provider_streams.systems.connection.list_options import numbers, spans, words
from airflow_provider_streams.systems.connection.option import Option
from airflow_provider_streams.systems.declaration import ConnectionForm, Declaration, PayloadColumns
from airflow_provider_streams.systems.pulsar.client.endpoint import ADDRESS, Endpoint
from airflow_provider_streams.systems.pulsar.column_names import COLUMN_NAMES, DEFAULT_COLUMN_NAMES
from airflow_provider_streams.systems.pulsar.metadata.names import parent_of
from airflow_provider_streams.systems.pulsar.source import PulsarSource


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
    # Iceberg gives each table a column `_partition`; from a table with its own, Spark selects nothing
    metadata_names: ClassVar[Mapping[str, str]] = {"partition": "_partition_index"}
    peer_columns: ClassVar[Mapping[str, str]] = {
        "__key": "key_bytes",
        "__topic": "topic",
        "__messageId": "message_id",
        "__publishTime": "publish_time",
        "__eventTime": "event_time",
        "__messageProperties": "properties",
    }
    options: ClassVar[tuple[Option, ...]] = Endpoint.options()
    source_options: ClassVar[tuple[Option, ...]] = (
        Option("topic", "one topic"),
        Option("topics", "topics, comma separated"),
        Option("topicsPattern", "a pattern of topics", aliases=("topics_pattern",)),
        Option("partitions", "only these partitions of each Pulsar topic, comma separated"),
        Option("keys", "only Pulsar messages with these keys, comma separated"),
        Option(
            "key_hash_ranges",
            "only Pulsar messages whose keys' hashes are in these ranges, like 0-1023,4096-8191",
            aliases=("keyHashRanges",),
        ),
    )
    placeholders = ("tenant", "namespace", "topic", "schema", "table")
    hook = "airflow_provider_streams.hooks.pulsar:PulsarHook"
    conditions = "airflow_provider_streams.systems.pulsar.operations.conditions:CONDITIONS"
    starts_at_units = True
    ended = "terminated"
    diagnosis = "airflow_provider_streams.systems.pulsar.operations.diagnosis:PulsarDiagnosis"
    address = ADDRESS
    form = ConnectionForm(
        labels={"host": "Broker host", "port": "Broker port", "password": "Token (JWT)"},
        placeholders={
            "host": "pulsar+ssl://broker.example.com",
            "port": "6651",
            "password": "empty without authentication",
        },
        unused={
            "schema": "tenant and namespace are part of each topic's name",
            "login": "a token names its user: give it as password, or in the extra token, token_file or token_env",
        },
        holds=frozenset({"token"}),
    )

    def dataset(self, names: Sequence[str], shard: str) -> str:  # noqa: ARG002 - a plan may read several topics
        """The topic, `tenant/namespace/topic`."""
        return parent_of(shard).removeprefix("persistent://")

    def placeholder_names(self, single: Source) -> Mapping[str, str]:
        """The parts of its full name; and `{schema}` and `{table}` of a database."""
        (topic,) = cast("PulsarSource", single).topics
        tenant, namespace, name = topic.removeprefix("persistent://").split("/", 2)
        return {"tenant": tenant, "namespace": namespace, "topic": name, **database_names(name)}

    def named_singles(self, source: Source) -> tuple[Source, ...] | None:
        """Its topics; None: only the cluster knows the topics of a pattern."""
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
        """A partition of its topic, or the topic itself."""
        (topic,) = cast("PulsarSource", single).topics
        return topic in (shard, parent_of(shard))

    def position_of(self, run: int, unit: int) -> Position:
        """The start of an entry of a ledger."""
        return Position.of(run, unit, -1)

    def decode_cut(self, text: str, shard: str) -> list[dict[str, Any]]:
        """The parts of a message id in any notation."""
        from airflow_provider_streams.systems.pulsar.metadata.message_id import parse_position  # noqa: PLC0415 - when asked

        ledger, entry, batch_index = parse_position(text, shard).parts
        return [{"ledger": ledger, "entry": entry, "batch_index": batch_index}]

    def _source(self, names: Sequence[str], conn_id: str, details: Mapping[str, Any]) -> Source:
        return PulsarSource(names, conn_id=conn_id, **{**details, **chosen(details)})


def chosen(details: Mapping[str, Any]) -> dict[str, Any]:
    """A source's choice of partitions, keys and ranges of hashes, from their texts."""
    return {
        "partitions": numbers("partitions", details.get("partitions")),
        "keys": words("keys", details.get("keys")),
        "key_hash_ranges": spans("key hash ranges", details.get("key_hash_ranges")),
    }
