"""What the fake system says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar, cast

from airflow_provider_streams.model.window.basis import BasisName
from airflow_provider_streams.systems.connection.option import Option
from airflow_provider_streams.systems.declaration import Declaration, PayloadColumns
from airflow_provider_streams.testing.fake.server_state import Truth
from airflow_provider_streams.testing.fake.source import FakeSource

if TYPE_CHECKING:
    from airflow_provider_streams.model.stream.source import Source


class Fake(Declaration):
    """Shards of numbered events."""

    name = "fake"
    title = "Fake"
    system = "airflow_provider_streams.testing.fake.system:FakeSystem"
    source_class = FakeSource
    bases: ClassVar[tuple[BasisName, ...]] = ("publish", "append", "event", "chained")
    columns = ("value", "publish_time", "shard", "number", "key", "properties")
    default_columns = columns[:4]
    payload_columns = PayloadColumns("value", position=("number",))
    placeholders = ("stream", "topic")
    options: ClassVar[tuple[Option, ...]] = (
        Option("stream", "the stream's name", "numbers", aliases=("topic",)),
        Option("truth", "a JSON file that overrides every other option, read at each call"),
        Option("token", "what the server may demand", secret=True, aliases=("auth.token",)),
        *(Option(one.name, f"see Truth.{one.name}", secret=one.name == "password") for one in fields(Truth)),
    )

    def placeholder_names(self, single: Source) -> Mapping[str, str]:
        """Its name."""
        return dict.fromkeys(self.placeholders, str(single))

    def named_singles(self, source: Source) -> tuple[Source, ...] | None:
        """Names between commas; of `*`, the truth tells."""
        asked = cast("FakeSource", source)
        return None if asked.name == "*" else tuple(asked.only(name) for name in asked.name.split(","))

    def single_of(self, source: Source, shard: str) -> Source:
        """The stream of a shard."""
        return cast("FakeSource", source).only(shard.rpartition("-")[0])

    def has_shard(self, single: Source, shard: str) -> bool:
        """One of its numbered shards; or itself, which its incarnation names."""
        return str(single) in (shard, shard.rpartition("-")[0])
