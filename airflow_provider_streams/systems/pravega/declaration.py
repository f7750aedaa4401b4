"""Pravega as the rest of the package sees it before it connects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from airflow_provider_streams.model.sinks.table_name import database_names
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import Basis, BasisName
from airflow_provider_streams.systems.connection.list_options import words
from airflow_provider_streams.systems.connection.option import Option
from airflow_provider_streams.systems.declaration import ConnectionForm, ConnectionType, Declaration, PayloadColumns
from airflow_provider_streams.systems.pravega.client.endpoint import ADDRESS, Endpoint
from airflow_provider_streams.systems.pravega.metadata.segment_names import stream_of
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.schema_registry.endpoint import RegistryEndpoint
from airflow_provider_streams.systems.pravega.source import PravegaSource, check_event_basis
from airflow_provider_streams.systems.pravega.spark_options import PASSED_OVER, SOURCE_OPTIONS


class Pravega(Declaration):
    """Pravega: streams and their segments. Its events carry no time that could be looked up."""

    name = "pravega"
    title = "Pravega"
    system = "airflow_provider_streams.systems.pravega.system:PravegaSystem"
    source_class = PravegaSource
    bases: ClassVar[tuple[BasisName, ...]] = ("append", "event", "chained")
    columns = ("event", "scope", "stream", "segment_id", "offset", "event_pointer", "segment", "next_offset")
    default_columns = columns[:5]
    shard_columns = frozenset({"scope", "stream", "segment_id", "segment"})
    payload_columns = PayloadColumns("event", position=("segment_id", "offset"), stored_unit=("segment_id", "offset"))
    options: ClassVar[tuple[Option, ...]] = Endpoint.options()
    source_options: ClassVar[tuple[Option, ...]] = SOURCE_OPTIONS
    passed_over = PASSED_OVER
    placeholders = ("scope", "stream", "topic", "schema", "table")
    hook = "airflow_provider_streams.hooks.pravega:PravegaHook"
    conditions = "airflow_provider_streams.systems.pravega.operations.conditions:CONDITIONS"
    ended = "stream_sealed"
    diagnosis = "airflow_provider_streams.systems.pravega.operations.diagnosis:PravegaDiagnosis"
    address = ADDRESS
    form = ConnectionForm(
        labels={"host": "Controller host", "port": "Controller port", "schema": "Scope", "login": "User"},
        placeholders={
            "host": "tls://controller.example.com",
            "port": "9090",
            "schema": "of streams that are named without one",
            "login": "empty without authentication",
        },
        holds=frozenset({"scope", "username", "password"}),
    )
    services: ClassVar[tuple[ConnectionType, ...]] = (
        ConnectionType(
            "schema_registry",
            "Pravega Schema Registry",
            "airflow_provider_streams.hooks.schema_registry:SchemaRegistryHook",
            RegistryEndpoint.options(),
            ConnectionForm(
                labels={"host": "Registry host", "port": "Registry port", "schema": "Namespace", "login": "User"},
                placeholders={
                    "host": "https://registry.example.com",
                    "port": "9092",
                    "schema": "of groups that are named without one",
                    "login": "empty without authentication",
                },
                holds=frozenset({"namespace", "username", "password"}),
            ),
        ),
    )

    def placeholder_names(self, single: Source) -> Mapping[str, str]:
        """Scope and stream; and `{schema}` and `{table}` of a database.

        `{topic}` is the stream, so that one sink serves all systems.
        """
        scope, _, stream = cast("PravegaSource", single).stream.partition("/")
        return {"scope": scope, "stream": stream, "topic": stream, **database_names(stream)}

    def named_singles(self, source: Source) -> tuple[Source, ...] | None:
        """Its streams; None: only the controller knows the streams of a scope or a pattern."""
        asked = cast("PravegaSource", source)
        return tuple(asked.only(stream) for stream in asked.streams) or None

    def single_of(self, source: Source, shard: str) -> Source:
        """The stream of a segment."""
        return cast("PravegaSource", source).only(stream_of(shard))

    def has_shard(self, single: Source, shard: str) -> bool:
        """A segment of its stream."""
        return stream_of(shard) == cast("PravegaSource", single).stream

    def position_of(self, run: int, unit: int) -> Position:  # noqa: ARG002 - a shard is one segment
        """At a byte of a segment."""
        return Position.of(unit)

    def check_basis(self, basis: Basis) -> None:
        """See `check_event_basis`."""
        check_event_basis(basis)

    def dataset(self, names: Sequence[str], shard: str) -> str:
        """The stream, `scope/stream`."""
        return names[0] if len(names) == 1 else stream_of(shard)

    def cut_text(self, source: Source, cut: Cut) -> str:
        """For one stream the text that every client of Pravega takes; for several JSON."""
        if not isinstance(source, PravegaSource) or not source.is_one:
            return super().cut_text(source, cut)
        return StreamCut.from_model(source.stream, cut).to_text()

    def decode_cut(self, text: str, shard: str) -> list[dict[str, Any]]:  # noqa: ARG002 - it names its segments
        """From a stream cut's text."""
        cut = StreamCut.from_text(text)
        return [
            {"stream": cut.stream, "segment": segment.short_name, "id": segment.id, "offset": offset}
            for segment, offset in zip(cut.segments, cut.offsets.values(), strict=True)
        ]

    def _source(self, names: Sequence[str], conn_id: str, details: Mapping[str, Any]) -> Source:
        """A scope and a stream as two words are one name."""
        apart = len(names) == 2 and not any("/" in name for name in names)  # noqa: PLR2004 - scope and stream
        lists = {name: words(name.replace("_", " "), details.get(name)) for name in ("tags", "routing_keys")}
        streams = ["/".join(names)] if apart else names
        return PravegaSource(streams, conn_id=conn_id, **{**details, **lists})
