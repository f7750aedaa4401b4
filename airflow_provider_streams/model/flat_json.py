"""Dataclasses whose fields are plain JSON values."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self


class FlatJson:
    """Turns a dataclass into JSON by its fields, and back."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values by field."""
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]  # of a dataclass

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(**data)
