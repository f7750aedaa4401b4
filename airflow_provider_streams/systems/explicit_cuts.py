"""Cuts as users give them, as a planner is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.systems.base import StartsByShard

if TYPE_CHECKING:
    from airflow_provider_streams.model.stream.cut import Cut
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.systems.base import StreamSystem

EARLIEST: Final = "earliest"


def start_of(system: StreamSystem, source: Source, given: str | Mapping[str, str] | None) -> Cut | None:
    """Where reading starts; None: at the head, which is what `earliest` means, and Pravega's `unbounded`.

    The planner finds the head itself, also of single shards that the cut leaves out. As a position, the head would be a
    place from which everything is held, and the planner would not ask whether something was removed before it.
    """
    if given is None or (isinstance(given, str) and given.strip().lower() == EARLIEST):
        return None
    parse = system.parse_start if isinstance(system, StartsByShard) else system.parse_cut
    return parse(source, given) or None
