"""Conditions on a stream that sensors and triggers wait for. Each asks once, by a rule for both edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.lazy_module import LazyModule
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.systems.conditions import Condition, Direction, check_limit
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.schemas import SchemaAvailable

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps
    from airflow_provider_streams.systems.pravega.metadata import queries
else:
    queries = LazyModule("airflow_provider_streams.systems.pravega.metadata.queries")  # protobuf when used


class PravegaCondition(Condition, Protocol):
    """A condition on one stream."""

    def rule(self, stream: str) -> Steps[Readiness]:
        """Asks `scope/stream` once."""


@dataclass(frozen=True)
class SegmentsSealed:
    """Every one of these segments has ended."""

    segments: tuple[str, ...]

    kind: ClassVar[str] = "segments_sealed"

    def rule(self, stream: str) -> Steps[Readiness]:
        """See `queries.segment_ends`."""
        found = yield from queries.segment_ends(stream, queries.segments_named(stream, self.segments))
        return Readiness(
            not found.still_open,
            f"still written to: {', '.join(found.still_open)}",
            {"stream": stream, "ends": found.ends},
        )


@dataclass(frozen=True)
class StreamSealed:
    """The stream has ended."""

    kind: ClassVar[str] = "stream_sealed"

    def rule(self, stream: str) -> Steps[Readiness]:
        """See `queries.stream_end`."""
        end = yield from queries.stream_end(stream)
        facts = {"stream": stream, **(_cut_facts(end) if end else {})}
        return Readiness(end is not None, f"{stream} is not sealed", facts)


@dataclass(frozen=True)
class BacklogReached:
    """At least, or at most, so many stored bytes are between a cut and the tail."""

    cut: Mapping[str, str] | None
    """By segment; None: the head."""
    bytes: int
    direction: Direction = "at_least"

    kind: ClassVar[str] = "backlog"

    def __post_init__(self) -> None:
        if not isinstance(self.bytes, int):
            raise InvalidRequest(f"a backlog's limit is a whole number of bytes, not negative, got {self.bytes!r}")
        check_limit(self.direction, {"bytes": self.bytes})

    def rule(self, stream: str) -> Steps[Readiness]:
        """See `queries.unread`."""
        start = None if self.cut is None else StreamCut.from_mapping(stream, self.cut)
        found = yield from queries.unread(stream, start)
        reached = found.bytes >= self.bytes if self.direction == "at_least" else found.bytes <= self.bytes
        wanted = f"{self.direction.replace('_', ' ')} {self.bytes}"
        return Readiness(
            reached,
            f"{stream} holds {found.bytes} bytes after the cut; wanted {wanted}",
            {"stream": stream, "bytes": found.bytes, "lost_bytes": found.lost_bytes, **_cut_facts(found.tail)},
        )


@dataclass(frozen=True)
class WatermarkReached:
    """The stream's writers have noted a time: everything they noted before it is written."""

    moment: int
    """In the writers' own unit."""
    _seen: list[queries.MarksSeen] = field(default_factory=list, init=False, repr=False, compare=False)
    """What earlier polls read; never more than one."""

    kind: ClassVar[str] = "watermark"

    def rule(self, stream: str) -> Steps[Readiness]:
        """See `queries.newest_mark`."""
        self._seen[:] = [(yield from queries.newest_mark(stream, *self._seen))]
        newest = self._seen[0].newest
        if newest is None:
            because = "its writers note no times (Java: noteTime, or automaticallyNoteTime), or the marks are removed"
            return Readiness(ready=False, because=f"{stream} has no watermark: {because}")
        return Readiness(
            newest.lower >= self.moment,
            f"{stream}: its writers have noted times up to {newest.lower}, wanted {self.moment}",
            {"stream": stream, "lower": newest.lower, "upper": newest.upper, **_cut_facts(newest.cut)},
        )


CONDITIONS: dict[str, type[Condition]] = {
    kind.kind: kind for kind in (SegmentsSealed, StreamSealed, BacklogReached, WatermarkReached, SchemaAvailable)
}
"""All conditions on a stream, and one on its schemas, see `schema_registry.schemas.available`."""


def _cut_facts(cut: StreamCut) -> dict[str, Any]:
    return {"cut": cut.to_model().to_json(), "cut_text": cut.to_text()}
