"""Probes: the first entries that a reader is sent from a place on. Values; `client/wire/probe_consumers` makes them.

A reader is sent neither markers nor messages of aborted transactions, and nothing after an open transaction. So what a
probe passes over is no message that a reader can get now.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from airflow_provider_streams.model.window.window import moment_of_ms

if TYPE_CHECKING:
    # its package loads Arrow, which event loops and DAG files must not
    from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata


class ProbePoint(NamedTuple):
    """Where a probe begins."""

    topic: str
    ledger: int
    entry: int
    wanted: int = 1
    """At most so many entries."""


class EntryHead(NamedTuple):
    """An entry without its payload."""

    ledger: int
    entry: int
    metadata: EntryMetadata | None
    """None: damaged bytes."""


@dataclass(frozen=True, slots=True)
class EntryProbe:
    """The entries from a place on."""

    heads: tuple[EntryHead, ...]
    """In order; fewer than wanted where the topic ends."""
    last: tuple[int, int] | None
    """The topic's last readable entry at that moment; None: there is none."""

    @property
    def published(self) -> datetime | None:
        """When the first message was published; None: there is no message, or its time is in no calendar."""
        times = (head.metadata.publish_ms for head in self.heads if head.metadata is not None)
        first_ms = next(times, None)
        return None if first_ms is None else moment_of_ms(first_ms)


T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)

Walk = Generator[ProbePoint, EntryProbe, T]
"""Yields places to probe one after the other, each chosen by the probes before it."""


def side_by_side(walks: Mapping[Key, Walk[T]]) -> Generator[list[ProbePoint], Sequence[EntryProbe], dict[Key, T]]:
    """The results of many walks, which take each step together."""
    ends: dict[Key, T] = {}
    probes: dict[Key, EntryProbe | None] = dict.fromkeys(walks)
    while probes:
        wanted: dict[Key, ProbePoint] = {}
        for key, probe in probes.items():
            try:
                wanted[key] = next(walks[key]) if probe is None else walks[key].send(probe)
            except StopIteration as end:
                ends[key] = end.value
        probes = dict(zip(wanted, (yield list(wanted.values())) if wanted else (), strict=True))
    return ends
