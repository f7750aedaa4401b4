"""Fires when a Pravega stream has come so far: conditions on its state, and the trigger that goes on asking.

A condition is a value; its rule asks, and both edges run it: a sensor's poke in a worker, the trigger in the loop.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.journal import aopen_journal
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.model.window import utc_moment
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut
from airflow_provider_streams.triggers.state import Answer, StateTrigger

if TYPE_CHECKING:
    from airflow_provider_streams.journal.cuts import RecordedCut
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.pravega.questions import MarksSeen
    from airflow_provider_streams.systems.pravega.steps import Steps


@dataclass(frozen=True)
class Condition:
    """What a stream is asked until it is so; plain JSON values, no secret."""

    @abstractmethod
    def rule(self, stream: str) -> Steps[Answer]:
        """Asks `scope/stream` once."""


@dataclass(frozen=True)
class SegmentsSealed(Condition):
    """Every one of these segments has ended."""

    segments: tuple[str, ...]

    def rule(self, stream: str) -> Steps[Answer]:
        """See `questions.segment_ends`."""
        from airflow_provider_streams.systems.pravega import questions  # noqa: PLC0415 - gRPC when used

        found = yield from questions.segment_ends(stream, questions.segments_named(stream, self.segments))
        return Answer(
            satisfied=not found.still_open,
            facts={"stream": stream, "ends": found.ends},
            reason=f"still written to: {', '.join(found.still_open)}",
        )


@dataclass(frozen=True)
class StreamSealed(Condition):
    """The stream has ended."""

    def rule(self, stream: str) -> Steps[Answer]:
        """See `questions.stream_end`."""
        from airflow_provider_streams.systems.pravega import questions  # noqa: PLC0415 - gRPC when used

        end = yield from questions.stream_end(stream)
        facts = {"stream": stream, **(_cut_facts(end) if end else {})}
        return Answer(satisfied=end is not None, facts=facts, reason=f"{stream} is not sealed")


@dataclass(frozen=True)
class BacklogReached(Condition):
    """So much lies between a cut and the tail: at least, or at most, so many stored bytes."""

    cut: Mapping[str, str] | None
    """By segment; None: the head."""
    bytes: int
    direction: str = "at_least"

    def __post_init__(self) -> None:
        if self.direction not in ("at_least", "at_most"):
            raise InvalidRequest(f"direction must be 'at_least' or 'at_most', got {self.direction!r}")
        if not isinstance(self.bytes, int) or self.bytes < 0:
            raise InvalidRequest(f"a backlog's limit is a whole number of bytes, not negative, got {self.bytes!r}")

    def rule(self, stream: str) -> Steps[Answer]:
        """See `questions.unread`."""
        from airflow_provider_streams.systems.pravega import questions  # noqa: PLC0415 - gRPC when used

        start = None if self.cut is None else StreamCut.from_mapping(stream, self.cut)
        found = yield from questions.unread(stream, start)
        reached = found.bytes >= self.bytes if self.direction == "at_least" else found.bytes <= self.bytes
        return Answer(
            satisfied=reached,
            facts={
                "stream": stream,
                "bytes": found.bytes,
                "lost_bytes": found.lost_bytes,
                **_cut_facts(found.tail),
            },
            reason=f"{stream} holds {found.bytes} bytes behind the cut; wanted {self.direction.replace('_', ' ')} "
            f"{self.bytes}",
        )


@dataclass(frozen=True)
class WatermarkReached(Condition):
    """The stream's writers have noted a time: everything they noted before it is written."""

    moment: int
    """In the writers' own unit."""
    _seen: list[MarksSeen] = field(default_factory=list, init=False, repr=False, compare=False)
    """What earlier polls read; never more than one."""

    def rule(self, stream: str) -> Steps[Answer]:
        """See `questions.newest_mark`."""
        from airflow_provider_streams.systems.pravega import questions  # noqa: PLC0415 - gRPC when used

        self._seen[:] = [(yield from questions.newest_mark(stream, *self._seen))]
        newest = self._seen[0].newest
        if newest is None:
            reason = "its writers note no times (Java: noteTime, or automaticallyNoteTime)"
            return Answer(satisfied=False, reason=f"{stream} has no watermark: {reason}")
        return Answer(
            satisfied=newest.lower >= self.moment,
            facts={"stream": stream, "lower": newest.lower, "upper": newest.upper, **_cut_facts(newest.cut)},
            reason=f"{stream}: its writers have noted times up to {newest.lower}, wanted {self.moment}",
        )


_CONDITIONS: dict[str, type[Condition]] = {kind.__name__: kind for kind in Condition.__subclasses__()}


class PravegaStateTrigger(StateTrigger):
    """Fires when a condition on a stream is met: a few small requests per poll; nothing is created or changed.

    Args:
        conn_id: the Airflow connection.
        stream: its name, as the hook takes it.
        condition: as `condition_to_json` gives it.
        poll_interval: seconds between two polls.
    """

    def __init__(self, conn_id: str, stream: str, condition: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(poll_interval)
        self.conn_id, self.stream, self.condition = conn_id, stream, condition
        self._hook: PravegaHook | None = None
        self._asked = condition_from_json(condition)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no secret."""
        return (
            "airflow_provider_streams.triggers.pravega.PravegaStateTrigger",
            {
                "conn_id": self.conn_id,
                "stream": self.stream,
                "condition": self.condition,
                "poll_interval": self.poll_interval,
            },
        )

    async def ask(self) -> Answer:
        """One poll. The channel to the controller belongs to the loop that asks first."""
        self._hook = self._hook or PravegaHook(self.conn_id)
        name = await self._hook.astream(self.stream)
        return await self._hook.arun(self._asked.rule(name))

    async def cleanup(self) -> None:
        """Close local connections; there is nothing to undo at the server."""
        if self._hook is not None:
            await self._hook.aclose()


class PravegaCutTrigger(StateTrigger):
    """Fires when the journal holds a cut of a stream sampled at or after a time; the stream itself is not asked.

    Args:
        conn_id: the stream's Airflow connection.
        stream: its name, as the hook takes it.
        moment: the time, ISO 8601 with an offset.
        poll_interval: seconds between two polls.
    """

    def __init__(self, conn_id: str, stream: str, moment: str, poll_interval: float = 60.0) -> None:
        super().__init__(poll_interval)
        self.conn_id, self.stream, self.moment = conn_id, stream, moment

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no secret."""
        return (
            "airflow_provider_streams.triggers.pravega.PravegaCutTrigger",
            {
                "conn_id": self.conn_id,
                "stream": self.stream,
                "moment": self.moment,
                "poll_interval": self.poll_interval,
            },
        )

    async def ask(self) -> Answer:
        """One poll."""
        hook = PravegaHook(self.conn_id)
        try:
            source = PravegaSource(await hook.astream(self.stream), conn_id=self.conn_id)
        finally:
            await hook.aclose()
        with closing(await aopen_journal()) as journal:
            return await asyncio.to_thread(cut_answer, journal, source, utc_moment(self.moment))


def cut_answer(journal: Journal, source: PravegaSource, moment: datetime) -> Answer:
    """What a sensor makes of the journal: whether there is a cut for this time.

    Raises:
        NoCutNearby: it may have been pruned.
    """
    now = datetime.now(UTC)
    if now < moment:
        reason = f"{moment.isoformat()} is to come"
        return Answer(satisfied=False, reason=reason, not_before=moment)
    found = journal.cut_at(source.key, moment)
    if found is None:
        return Answer(satisfied=False, reason=f"no cut of {source} was recorded at or after {moment.isoformat()}")
    return Answer(satisfied=True, facts=_recorded_facts(source, found, found.skew(moment)))


def condition_to_json(condition: Condition) -> dict[str, Any]:
    """A condition as a trigger's argument."""
    values = {one.name: getattr(condition, one.name) for one in fields(condition) if one.init}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {"kind": type(condition).__name__, **plain}


def condition_from_json(data: Mapping[str, Any]) -> Condition:
    """The reverse of `condition_to_json`."""
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    kind = values.pop("kind")
    return _CONDITIONS[kind](**values)


def _cut_facts(cut: StreamCut) -> dict[str, Any]:
    return {"cut": cut.to_model().to_json(), "cut_text": cut.to_text()}


def _recorded_facts(source: PravegaSource, found: RecordedCut, skew: timedelta) -> dict[str, Any]:
    return {
        "stream": source.stream,
        **_cut_facts(StreamCut.from_model(source.stream, found.cut)),
        "sampled_from": found.sampled_from.isoformat(),
        "sampled_to": found.sampled_to.isoformat(),
        "skew_seconds": round(skew.total_seconds(), 3),
        "recorder": found.recorder,
    }
