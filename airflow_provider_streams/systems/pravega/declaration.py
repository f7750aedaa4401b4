"""What Pravega says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from airflow_provider_streams.model.basis import Basis, BasisName
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.declaration import ConnectionForm, ConnectionType, Declaration, PayloadColumns
from airflow_provider_streams.systems.option import Option
from airflow_provider_streams.systems.pravega import event_basis
from airflow_provider_streams.systems.pravega.column_names import COLUMN_NAMES, DEFAULT_COLUMN_NAMES, SHARD_COLUMN_NAMES
from airflow_provider_streams.systems.pravega.options import OPTIONS, PASSED_OVER, SOURCE_OPTIONS
from airflow_provider_streams.systems.pravega.registry.options import OPTIONS as REGISTRY_OPTIONS
from airflow_provider_streams.systems.pravega.shards import stream_of
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.written import words


class Pravega(Declaration):
    """Pravega: streams and their segments. Its events carry no time that could be looked up."""

    name = "pravega"
    title = "Pravega"
    system = "airflow_provider_streams.systems.pravega.system:PravegaSystem"
    source_class = PravegaSource
    bases: ClassVar[tuple[BasisName, ...]] = ("append", "event", "chained")
    columns = COLUMN_NAMES
    default_columns = DEFAULT_COLUMN_NAMES
    shard_columns = SHARD_COLUMN_NAMES
    payload_columns = PayloadColumns("event", position=("segment_id", "offset"), stored_unit=("segment_id", "offset"))
    options: ClassVar[tuple[Option, ...]] = OPTIONS
    source_options: ClassVar[tuple[Option, ...]] = SOURCE_OPTIONS
    passed_over = PASSED_OVER
    placeholders = ("scope", "stream", "topic")
    hook = "airflow_provider_streams.hooks.pravega:PravegaHook"
    conditions = "airflow_provider_streams.systems.pravega.conditions:CONDITIONS"
    form = ConnectionForm(
        labels={"host": "Controller host", "port": "Controller port", "schema": "Scope", "login": "User"},
        placeholders={
            "host": "controller.example.com",
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
            REGISTRY_OPTIONS,
            ConnectionForm(
                labels={"host": "Registry host", "port": "Registry port", "schema": "Namespace", "login": "User"},
                placeholders={
                    "host": "registry.example.com",
                    "port": "9092",
                    "schema": "of groups that are named without one",
                    "login": "empty without authentication",
                },
                holds=frozenset({"namespace", "username", "password"}),
            ),
        ),
    )

    def placeholder_names(self, single: Source) -> Mapping[str, str]:
        """Scope and stream; `{topic}` is the stream, so that one sink serves all systems."""
        scope, _, stream = cast("PravegaSource", single).stream.partition("/")
        return {"scope": scope, "stream": stream, "topic": stream}

    def named_singles(self, source: Source) -> tuple[Source, ...] | None:
        """Its streams; those of a scope or a pattern the controller tells."""
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
        """See `event_basis.check`."""
        event_basis.check(basis)

    def dataset(self, names: Sequence[str], shard: str) -> str:
        """The stream, `scope/stream`."""
        return names[0] if len(names) == 1 else stream_of(shard)

    def cut_text(self, source: Source, cut: Cut) -> str:
        """Of one stream as every client of Pravega takes it; of several as JSON."""
        from airflow_provider_streams.systems.pravega.stream_cut import StreamCut  # noqa: PLC0415 - when asked

        if not isinstance(source, PravegaSource) or not source.is_one:
            return super().cut_text(source, cut)
        return StreamCut.from_model(source.stream, cut).to_text()

    def decode_cut(self, text: str, shard: str) -> list[dict[str, Any]]:  # noqa: ARG002 - it names its segments
        """Of a stream cut's text."""
        from airflow_provider_streams.systems.pravega.stream_cut import StreamCut  # noqa: PLC0415 - when asked

        cut = StreamCut.from_text(text)
        return [
            {"stream": cut.stream, "segment": segment.name.rpartition("/")[2], "id": segment.id, "offset": offset}
            for segment, offset in zip(cut.segments, cut.offsets.values(), strict=True)
        ]

    def _source(self, names: Sequence[str], conn_id: str, details: Mapping[str, Any]) -> Source:
        """A scope and a stream as two words are one name."""
        apart = len(names) == _SCOPE_AND_STREAM and not any("/" in name for name in names)
        lists = {name: words(details.get(name, "")) for name in ("tags", "routing_keys")}
        streams = ["/".join(names)] if apart else names
        return PravegaSource(streams, conn_id=conn_id, **{**details, **lists})


_SCOPE_AND_STREAM = 2
