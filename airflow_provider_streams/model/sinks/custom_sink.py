"""A sink of the user's own: the class that writes it, and what it writes to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.asset_uri_length import short_uri
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.flat_json import FlatJson
from airflow_provider_streams.model.parse_time_value import ParseTimeValue
from airflow_provider_streams.model.sinks.templates import is_template
from airflow_provider_streams.model.stream.source import in_uri
from airflow_provider_streams.model.text_arguments import check_names, path_text

KIND = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
"""How a class that writes is named: `package.module:Class`."""


@dataclass(frozen=True, slots=True)
class CustomSink(ParseTimeValue, FlatJson):
    """What a class of yours writes, such as a `DataFrameSinkWriter` or a `TableWriter`.

    Args:
        kind: the class, as `package.module:Class`. The Spark driver program imports it.
        target: what it writes to, as an absolute path or a URL. Two sinks with the same target are one table.
        options: further texts for the class, no secrets.

    Raises:
        InvalidRequest: the class cannot have this name, or the target is no path or URL.
    """

    named_by: ClassVar[str | None] = None
    conn_id: ClassVar[str | None] = None
    widen: ClassVar[bool | None] = None
    apply: ClassVar[AutoCdc | None] = None

    kind: str
    target: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", path_text(self.target))
        check_names("CustomSink", kind=self.kind, target=self.target)
        if not KIND.fullmatch(self.kind):
            raise InvalidRequest(f"kind is the class that writes, like 'package.module:Class', not {self.kind!r}")
        is_known = not is_template(self.target)
        if is_known and not self.target.startswith("/") and not _URL.fullmatch(self.target):
            raise InvalidRequest(
                f"{self.kind} writes to an absolute path or a URL of letters, digits and the characters - _ . = + % "
                "after its scheme; nothing but a connection holds keys"
            )
        given: object = self.options
        if not isinstance(given, Mapping) or not all(isinstance(one, str) for pair in given.items() for one in pair):
            raise InvalidRequest(f"{self.kind}: options are texts by name")
        object.__setattr__(self, "options", dict(self.options))

    def __hash__(self) -> int:
        return hash((self.kind, self.target))

    def __str__(self) -> str:
        return self.target

    @property
    def asset_uri(self) -> str:
        """Its Airflow asset: its location, shortened if it has more than 1,500 letters."""
        return short_uri(self.location)

    @property
    def location(self) -> str:
        """Its target; of a path `file://<path>`."""
        return f"file://{in_uri(self.target)}" if self.target.startswith("/") else self.target


_URL = re.compile(r"[a-z][a-z0-9+-]*://[\w.-]+(:\d+)?(/[\w.=+%-]+)+/?", re.ASCII)
