"""The source of the fake system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_streams.model.parse_time_value import ParseTimeValue
from airflow_provider_streams.model.schema.payload import PayloadLike, payload_from


@dataclass(frozen=True, slots=True)
class FakeSource(ParseTimeValue):
    """A fake stream on one connection; names between commas are several streams, `*` is all there are."""

    system: ClassVar[str] = "fake"

    name: str = "numbers"
    conn_id: str = "fake_default"
    value: PayloadLike | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", payload_from(self.value))

    def only(self, name: str) -> FakeSource:
        """One of its streams, read as it is."""
        return FakeSource(name, self.conn_id, self.value)

    def __str__(self) -> str:
        return self.name

    @property
    def key(self) -> str:
        """`fake:<connection>:<name>`."""
        return f"fake:{self.conn_id}:{self.name}"

    @property
    def asset_uri(self) -> str:
        """`fake://<connection>/<name>`."""
        return f"fake://{self.conn_id}/{self.name}"
