"""Sampling the tails of sources and storing them: what the operator, the trigger and the command line share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.stream.tail_observation import Incarnation
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.windows.plan.tail_observations import observe_tail

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
    incarnation: Incarnation = ()
    """Of the source at that time, or an earlier one; never a later one."""


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """What became of one source at one tick."""

    source: Source
    sample: Sample | None = None
    sequence: int | None = None
    """The number of its entry; None: it was not stored, because of `error` or a quicker recorder."""
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
    """The recorder's clock; the clocks of all recorders and of Airflow's scheduler should agree."""
    return datetime.now(UTC)


def sample(system: StreamSystem, source: Source, clock: Clock = utc_now) -> Sample:
    """The tail now, and the span of time in which its shards were asked.

    The span is measured by a clock that cannot step: an adjustment in between would make it too short. The incarnation
    is read first. If it ends in between, the cut counts as one of the earlier incarnation, and a window that begins
    there begins with the next one: none of its events is missed.
    """
    incarnation = system.incarnation(source)
    began, since = clock(), time.monotonic()
    cut = system.tail(source)
    return Sample(source, cut, began, began + timedelta(seconds=time.monotonic() - since), incarnation)


def store(
    journal: Journal, system: StreamSystem, taken: Sample, recorder: str, *, start_over: bool = False
) -> int | None:
    """Store a sample as the source's next entry; its number, or None if another recorder was quicker.

    Args:
        journal: where to.
        system: knows the source's rule of order.
        taken: the sample.
        recorder: the name of the recorder.
        start_over: the source was deleted and made again: store the sample even if it precedes an earlier one.

    Raises:
        InvalidRequest: it precedes an earlier one, or is not of the same stream.
    """
    if not start_over:
        _check_incarnation(journal, system, taken.source)
    journal.store_source(taken.source.key, source_to_json(taken.source))
    return journal.record_cut(
        taken.source.key,
        taken.cut,
        sampled_from=taken.sampled_from,
        sampled_to=taken.sampled_to,
        recorder=recorder,
        incarnation=taken.incarnation,
        go_on=None if start_over else system.go_on,
    )


def _check_incarnation(journal: Journal, system: StreamSystem, source: Source) -> None:
    """Check that the last entry is a cut of the present incarnation; positions alone do not tell."""
    last = journal.recorded_cuts(source.key, 1)
    other = system.other_incarnation(source, last[0].incarnation) if last else None
    if last and other is not None:
        raise InvalidRequest(
            f"{source.key}: it was deleted and made again since the cut recorded at {last[0].sampled_from.isoformat()} "
            f"by {last[0].recorder!r}: that was of {other.planned}, and the present one is {other.found}. If that was "
            "intended, record its first cut with `airflow streams cuts record .. --start-over`; otherwise check the "
            "connection"
        )


def record(
    journal: Journal, systems: Mapping[str, StreamSystem | StreamsError], sources: Iterable[Source], recorder: str
) -> list[RecordOutcome]:
    """Sample and store each source, one after the other, with a system or an error for each connection id."""
    return [_record(journal, systems[source.conn_id], source, recorder) for source in sources]


def _record(journal: Journal, system: StreamSystem | StreamsError, source: Source, recorder: str) -> RecordOutcome:
    taken = None
    if isinstance(system, StreamsError):
        return RecordOutcome(source, error=system)
    try:
        taken = sample(system, source)
        sequence = store(journal, system, taken, recorder)
        observe_tail(journal, system, source)
        return RecordOutcome(source, taken, sequence)
    except StreamsError as error:
        return RecordOutcome(source, taken, error=error)


def next_tick(now: datetime, every: timedelta) -> datetime:
    """The first multiple of `every` since 1970 after `now`.

    On a clock of whole minutes, a window that starts at a full hour gets a cut sampled right at its edge.
    """
    seconds = every.total_seconds()
    return datetime.fromtimestamp((math.floor(now.timestamp() / seconds) + 1) * seconds, UTC)
