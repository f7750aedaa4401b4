"""A sink of the user's own, without a class for its values: the class that writes, and one line that names it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.source import in_uri

KIND = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
"""Where a class that writes is found: `package.module:Class`."""


@dataclass(frozen=True, slots=True)
class OwnSink:
    """What a class of yours writes: one like `FrameWriter`, or like `TableWriter`.

    Args:
        kind: the class, as `package.module:Class`, imported where the Spark driver program runs.
        target: what it writes to, as an absolute path or a URL: it also says whether two sinks are one table.
        options: what else the class wants to know: texts, no secrets.

    Raises:
        InvalidRequest: no such name, no such target.
    """

    kind: str
    target: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not KIND.fullmatch(self.kind):
            raise InvalidRequest(f"a class that writes is named like 'package.module:Class', not {self.kind!r}")
        if not self.target.startswith("/") and not _URL.fullmatch(self.target):
            raise InvalidRequest(
                f"{self.kind} writes to an absolute path or a URL of letters, digits and the characters - _ . = + % "
                "after its scheme; nothing but a connection holds keys"
            )
        if not all(isinstance(one, str) for pair in self.options.items() for one in pair):
            raise InvalidRequest(f"{self.kind}: options are texts by name")
        object.__setattr__(self, "options", dict(self.options))

    def __hash__(self) -> int:
        return hash((self.kind, self.target))

    def __str__(self) -> str:
        return self.target

    @property
    def asset_uri(self) -> str:
        """Its target; of a path `file://<path>`."""
        return f"file://{in_uri(self.target)}" if self.target.startswith("/") else self.target

    def to_json(self) -> dict[str, Any]:
        """`{"kind", "target", "options"}`."""
        return {"kind": self.kind, "target": self.target, "options": dict(self.options)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(data["kind"], data["target"], data["options"])


_URL = re.compile(r"[a-z][a-z0-9+-]*://[\w.-]+(:\d+)?(/[\w.=+%-]+)+/?", re.ASCII)
