"""The topic or stream that an operator, a sensor or a trigger asks about, and its connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_streams.errors import InvalidRequest

if TYPE_CHECKING:
    from airflow_provider_streams.model.stream.source import Source


class NameOrSource(NamedTuple):
    """What an operator, a sensor or a trigger is given: the name of a topic or a stream, or a source."""

    owner: object
    what: str
    """`topic` or `stream`."""
    name: str | None
    source: Source | None
    conn_id: str | None

    def connection(self, default: str) -> str:
        """The connection: the source's own, or the one given with the name.

        Raises:
            InvalidRequest: name and source are given, or none; or the source has another connection.
        """
        owner = type(self.owner).__name__
        if (self.name is None) == (self.source is None):
            raise InvalidRequest(f"{owner} takes a {self.what} or a source: give one of them")
        own = getattr(self.source, "conn_id", None)  # another task's output has none yet
        if self.source is not None and self.conn_id not in (None, own):
            raise InvalidRequest(
                f"{owner}: conn_id is {self.conn_id!r}, but the source {self.source} has the connection {own!r}: leave "
                f"conn_id out, or give it to the source. Only {self.what}= needs conn_id"
            )
        return own or self.conn_id or default
