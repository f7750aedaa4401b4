"""How far back a stream still reaches, whichever way its system can tell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.sighting import Identity
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.sources import source_from_json

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem

MOST_CUTS = 50_000
"""So many of the last recorded cuts are looked at."""


def horizon_of(journal: Journal, system: StreamSystem, source: Source) -> datetime | None:
    """The oldest time from which on a source is still held whole; None: nothing was removed, or it cannot be told.

    Raises:
        AccessError, SystemUnavailable: the system refuses or does not answer.
    """

    def recorded() -> Iterator[tuple[datetime, Cut, Identity]]:
        for cut in journal.recorded_cuts(source.key, MOST_CUTS):
            yield cut.sampled_from, cut.cut, cut.identity

    return system.horizon(source, recorded)


def source_of_key(journal: Journal, key: str) -> Source:
    """The source that a journal's key names, as whoever read it wrote it down.

    Raises:
        InvalidRequest: nobody did.
    """
    written = journal.source(key)
    if written is None:
        raise InvalidRequest(f"the journal does not say how {key} is written: read a window of it once")
    return source_from_json(written)
