"""The steps of rolling a Pravega stream, without Airflow's context."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.windows.plan.cut_recording import sample, utc_now

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
    from airflow_provider_streams.systems.pravega.system import PravegaSystem


@dataclass(frozen=True, slots=True)
class Rolled:
    """A boundary in a stream."""

    cut: StreamCut
    """The boundary, as the journal keeps it: where the segments after it start."""
    ends: StreamCut
    """The ends of the segments that were open at the tick; they are sealed, and never move."""
    sequence: int | None
    """The number of its entry in the journal; None: it was there, or a recorder was quicker."""
    is_edge: bool
    """Whether windows that start or end at the tick do so at this boundary."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; the cut by segment, and as Pravega's clients write it."""
        segments = [segment.name.rpartition("/")[2] for segment in self.ends.segments]
        return {
            "cut": self.cut.to_model().to_json(),
            "cut_text": self.cut.to_text(),
            "segments": segments,
            "sequence": self.sequence,
            "is_edge": self.is_edge,
        }


def roll_epoch(journal: Journal, system: PravegaSystem, source: PravegaSource, tick: datetime, recorder: str) -> Rolled:
    """End the segments that were open at a tick, and record that boundary as the tick's cut. Repeating it is safe.

    The segments are chosen once: their tail is sampled at or after the tick and stored before the stream is changed.
    A repeated tick, as a retry after a kill, ends the same segments, which has no effect.

    Raises:
        InvalidRequest: the tick is in the future, a segment is no longer held, or the source may be several streams.
        SystemUnavailable: the scaling does not end.
    """
    from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut  # noqa: PLC0415
    from airflow_provider_streams.systems.pravega.operations import scaling  # noqa: PLC0415 - gRPC when used

    stream = source.stream
    journal.store_source(source.key, source_to_json(source))
    key = f"{source.key}#epoch"
    order = journal.cut_at(key, tick)
    if order is None:
        taken = sample(system, source)
        span = {"sampled_from": taken.sampled_from, "sampled_to": taken.sampled_to}
        journal.record_cut(key, taken.cut, **span, recorder=recorder, incarnation=taken.incarnation, go_on=system.go_on)
        order = journal.cut_at(key, tick)
    if order is None:
        raise InvalidRequest(f"{source}: the tick {tick.isoformat()} has not come yet")
    chosen = StreamCut.from_model(stream, order.cut)
    boundary = system.client.run(scaling.roll(stream, chosen.offsets.keys()))
    cut = boundary.cut.to_model()
    sequence = journal.record_cut(
        source.key,
        cut,
        sampled_from=order.sampled_from,
        sampled_to=utc_now(),
        recorder=recorder,
        incarnation=order.incarnation,
        go_on=system.go_on,
    )
    edge = journal.cut_at(source.key, tick)
    return Rolled(boundary.cut, boundary.ends, sequence, edge is not None and edge.cut == cut)
