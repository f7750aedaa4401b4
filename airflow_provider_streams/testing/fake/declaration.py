"""What the fake system says of itself."""

from __future__ import annotations

from dataclasses import fields
from typing import ClassVar

from airflow_provider_streams.model.basis import BasisName
from airflow_provider_streams.systems.declaration import Declaration
from airflow_provider_streams.systems.option import Option
from airflow_provider_streams.testing.fake.source import FakeSource
from airflow_provider_streams.testing.fake.truth import Truth


class Fake(Declaration):
    """Shards of numbered events."""

    name = "fake"
    title = "Fake"
    system = "airflow_provider_streams.testing.fake.system:FakeSystem"
    source_class = FakeSource
    bases: ClassVar[tuple[BasisName, ...]] = ("publish", "append", "event", "chained")
    columns = ("value", "publish_time", "shard", "number", "key", "properties")
    options: ClassVar[tuple[Option, ...]] = (
        Option("stream", "the stream's name", "numbers", aliases=("topic",)),
        Option("truth", "a JSON file that overrides every other option, read at each call"),
        Option("token", "what the server may demand", secret=True, aliases=("auth.token",)),
        *(Option(one.name, f"see Truth.{one.name}", secret=one.name == "password") for one in fields(Truth)),
    )
