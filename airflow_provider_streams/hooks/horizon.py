"""How far back a stream still reaches, whichever way its system can tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_streams.hooks.base import source_of
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.source import PulsarSource, Source

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem

_PATTERN = re.compile(r"[*+?\[\](){}|^$\\]")
MOST_CUTS = 50_000
"""So many of the last recorded cuts are looked at."""


def horizon_of(journal: Journal, system: StreamSystem, source: Source) -> datetime | None:
    """The oldest time from which on a source is still held whole; None: nothing was removed, or it cannot be told.

    Raises:
        AccessError, SystemUnavailable: the system refuses or does not answer.
    """

    def recorded() -> Iterator[tuple[datetime, Cut]]:
        for cut in journal.recorded_cuts(source.key, MOST_CUTS):
            yield cut.sampled_from, cut.cut

    return system.horizon(source, recorded)


def source_of_key(key: str) -> Source:
    """The source that a journal's key names: the reverse of `Source.key`.

    Raises:
        InvalidRequest: no such system.
    """
    system, _, rest = key.partition(":")
    conn_id, _, name = rest.partition(":")
    if system == PulsarSource.system:
        if _PATTERN.search(name):
            return PulsarSource(pattern=name, conn_id=conn_id)
        return PulsarSource(name.split(","), conn_id=conn_id)
    return source_of(system, [name], conn_id)
