"""The source of the fake system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FakeSource:
    """A fake stream on one connection."""

    system: ClassVar[str] = "fake"

    name: str = "numbers"
    conn_id: str = "fake_default"

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
