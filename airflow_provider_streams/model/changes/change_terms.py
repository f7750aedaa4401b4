"""What a plan tells of the changes in its rows, for a table that they are applied to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from airflow_provider_streams.model.flat_json import FlatJson


@dataclass(frozen=True, slots=True)
class ChangeTerms(FlatJson):
    """How the changes of a source name their rows and places."""

    keys: tuple[str, ...] = ()
    """The columns of the changes' own key; empty: they have none, or it is not known."""
    position: tuple[str, ...] = ()
    """The columns that say where an event is in the stream, for rows without `_position`."""
    aside: tuple[str, ...] = ()
    """The columns that the table does not get."""
    no_events: bool = False
    """Whether the plan has no event, and so no change whose key must be known."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(tuple(data["keys"]), tuple(data["position"]), tuple(data["aside"]), data["no_events"])


NO_CHANGES: Final = ChangeTerms()
"""Nothing is known of changes."""
