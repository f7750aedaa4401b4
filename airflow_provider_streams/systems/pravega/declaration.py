"""What Pravega says of itself."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow_provider_streams.model.basis import BasisName
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.declaration import ConnectionForm, Declaration
from airflow_provider_streams.systems.option import Option
from airflow_provider_streams.systems.pravega.column_names import COLUMN_NAMES
from airflow_provider_streams.systems.pravega.options import OPTIONS, PASSED_OVER, SOURCE_OPTIONS
from airflow_provider_streams.systems.pravega.source import PravegaSource


class Pravega(Declaration):
    """Pravega: streams and their segments. Its events carry no time that could be looked up."""

    name = "pravega"
    title = "Pravega"
    system = "airflow_provider_streams.systems.pravega.system:PravegaSystem"
    source_class = PravegaSource
    bases: ClassVar[tuple[BasisName, ...]] = ("append", "event", "chained")
    columns = COLUMN_NAMES
    options: ClassVar[tuple[Option, ...]] = OPTIONS
    source_options: ClassVar[tuple[Option, ...]] = SOURCE_OPTIONS
    passed_over = PASSED_OVER
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

    def cut_text(self, source: Source, cut: Cut) -> str:
        """As every client of Pravega takes it."""
        from airflow_provider_streams.systems.pravega.stream_cut import StreamCut  # noqa: PLC0415 - when asked

        return StreamCut.from_model(str(source), cut).to_text()

    def decode_cut(self, text: str, shard: str) -> list[dict[str, Any]]:  # noqa: ARG002 - it names its segments
        """Of a stream cut's text."""
        from airflow_provider_streams.systems.pravega.stream_cut import StreamCut  # noqa: PLC0415 - when asked

        cut = StreamCut.from_text(text)
        return [
            {"stream": cut.stream, "segment": segment.name.rpartition("/")[2], "id": segment.id, "offset": offset}
            for segment, offset in zip(cut.segments, cut.offsets.values(), strict=True)
        ]
