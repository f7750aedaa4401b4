"""Sampling the tails of sources and storing them: what the operator, the trigger and the command line share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.sighting import Identity
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.sources import source_to_json
from airflow_provider_streams.windows.sightings import look

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Sample:
    """The tail of a source, sampled between two times of the recorder's clock."""

    source: Source
    cut: Cut
    sampled_from: datetime
    sampled_to: datetime
    identity: Identity = ()
    """Which life of the source it is the tail of, or of an earlier one: never of a later one."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of one source at one tick."""

    source: Source
    sample: Sample | None = None
    sequence: int | None = None
    """The number of its entry; None: it was not stored, because of `error`, or as another recorder was quicker."""
    error: StreamsError | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "source": self.source.key,
            "sequence": self.sequence,
            "sampled_from": self.sample.sampled_from.isoformat() if self.sample else None,
            "sampled_to": self.sample.sampled_to.isoformat() if self.sample else None,
            "error": f"{type(self.error).__name__}: {self.error}" if self.error else None,
        }


def utc_now() -> datetime:
    """The recorder's clock; that of all recorders and of Airflow's scheduler should agree."""
    return datetime.now(UTC)


def sample(system: StreamSystem, source: Source, clock: Clock = utc_now) -> Sample:
    """The tail now, and the span of time in which its shards were asked.

    The span is measured by a clock that cannot step: an adjustment in between would make it too short. The source's
    life is asked for first. If it ends in between, the cut passes for one of a life that is gone, and the window that
    begins there for one that begins with the next life: none of its events is missed.
    """
    identity = system.identity(source)
    began, since = clock(), time.monotonic()
    cut = system.tail(source)
    return Sample(source, cut, began, began + timedelta(seconds=time.monotonic() - since), identity)


def store(journal: Journal, system: StreamSystem, taken: Sample, recorder: str, *, anew: bool = False) -> int | None:
    """Store a sample as the source's next entry; its number, or None if another recorder was quicker.

    Args:
        journal: where to.
        system: knows the source's rule of order.
        taken: the sample.
        recorder: who took it.
        anew: the source was deleted and made again: take it, although it lies before an earlier one.

    Raises:
        InvalidRequest: it lies before an earlier one, or is none of the same stream.
    """
    if not anew:
        _check_life(journal, system, taken.source)
    journal.introduce(taken.source.key, source_to_json(taken.source))
    return journal.record_cut(
        taken.source.key,
        taken.cut,
        sampled_from=taken.sampled_from,
        sampled_to=taken.sampled_to,
        recorder=recorder,
        identity=taken.identity,
        go_on=None if anew else system.go_on,
    )


def _check_life(journal: Journal, system: StreamSystem, source: Source) -> None:
    """Whether the last entry is a cut of what is there now: of a life that has outgrown it, its place does not tell."""
    last = journal.recorded_cuts(source.key, 1)
    other = system.other_life(source, last[0].identity) if last else None
    if last and other is not None:
        raise InvalidRequest(
            f"{source.key}: it was deleted and made again since the cut recorded at {last[0].sampled_from.isoformat()} "
            f"by {last[0].recorder!r}: that was of {other.planned}, and what answers is {other.found}. If that was "
            "meant, record its first cut with `airflow streams cuts record .. --anew`; otherwise look where the "
            "connection leads"
        )


def record(
    journal: Journal, systems: Mapping[str, StreamSystem | StreamsError], sources: Iterable[Source], recorder: str
) -> list[Recorded]:
    """Sample and store each source, one after the other; what fails for one of them keeps nobody else from it.

    Args:
        journal: where to.
        systems: by connection id; or why there is none.
        sources: what to sample.
        recorder: who samples.
    """
    return [_record(journal, systems[source.conn_id], source, recorder) for source in sources]


def _record(journal: Journal, system: StreamSystem | StreamsError, source: Source, recorder: str) -> Recorded:
    taken = None
    if isinstance(system, StreamsError):
        return Recorded(source, error=system)
    try:
        taken = sample(system, source)
        sequence = store(journal, system, taken, recorder)
        look(journal, system, source)
        return Recorded(source, taken, sequence)
    except StreamsError as error:
        return Recorded(source, taken, error=error)


def next_tick(now: datetime, every: timedelta) -> datetime:
    """The first multiple of `every` since 1970 after `now`.

    On a clock of whole minutes, a window that starts at a full hour gets a cut sampled right at its edge.
    """
    seconds = every.total_seconds()
    return datetime.fromtimestamp((math.floor(now.timestamp() / seconds) + 1) * seconds, UTC)
