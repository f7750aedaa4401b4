"""A source: a topic list or pattern, or a stream, on one connection."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable
from urllib.parse import quote

from airflow_provider_streams.errors import InvalidRequest


@runtime_checkable
class Source(Protocol):
    """The source of any system."""

    system: ClassVar[str]
    """Its row of `systems.registry.SYSTEMS`."""

    @property
    def conn_id(self) -> str:
        """The Airflow connection."""

    @property
    def key(self) -> str:
        """Its identity in the journal: the same events on the same connection have the same key."""

    @property
    def asset_uri(self) -> str:
        """Its Airflow asset."""


def check_source(source: object) -> Source:
    """A user's argument, if it is a source.

    Raises:
        InvalidRequest: it is none.
    """
    if not isinstance(source, Source):
        raise InvalidRequest(f"source must be one like PulsarSource('topic'), got {type(source).__name__}")
    return source


def in_uri(path: str) -> str:
    """A name as the path of an asset's URI, in which `?`, `#` and `%` are quoted."""
    return quote(path, safe="/:@!$&'()*+,;=-._~")
