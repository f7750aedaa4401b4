"""Wait for the state of a Pravega stream: sealed segments or stream, a watermark, so many unread bytes.

None of these sensors reads events, creates anything, or needs more than permission to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pravega_connection import one_stream
from airflow_provider_streams.model.window.window import utc_moment
from airflow_provider_streams.sensors.base import ConditionSensor
from airflow_provider_streams.systems.pravega.operations.conditions import (
    BacklogReached,
    SegmentsSealed,
    StreamSealed,
    WatermarkReached,
)
from airflow_provider_streams.systems.pravega.source import EventTimeUnit, PravegaSource

if TYPE_CHECKING:
    from airflow_provider_streams.model.window.basis import CutText
    from airflow_provider_streams.systems.conditions import Condition, Direction

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _PravegaSensor(ConditionSensor):
    """What the sensors of Pravega share: a stream on a connection."""

    template_fields: Sequence[str] = ("stream", "conn_id")

    def __init__(
        self,
        *,
        stream: str | None = None,
        source: PravegaSource | None = None,
        conn_id: str | None = None,
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(deferrable=deferrable, poke_interval=poke_interval, **kwargs)
        self.stream, self.conn_id = one_stream(self, stream, source, conn_id)

    def target(self) -> PravegaSource:
        """The stream; a name without a scope is of the connection's."""
        with closing(PravegaHook(self.conn_id)) as hook:
            return hook.source(self.stream)


class PravegaSegmentSealedSensor(_PravegaSensor):
    """Waits until segments have ended: they were split, merged or rolled, or their stream was sealed.

    What a sealed segment holds never changes. A segment also ends when a transaction that was begun before a scaling
    is committed after it; then a copy with another epoch takes its place.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`.
        segments: one or several (templated): qualified names, or in short `5.#epoch.2`.
        conn_id: the Airflow connection of `stream` (templated), by default `pravega_default`; a source has its own.

    Returns (XCom):
        `stream, ends`: the length in bytes of each segment that is still held.
    """

    template_fields: Sequence[str] = ("stream", "conn_id", "segments")

    def __init__(
        self,
        *,
        segments: str | Sequence[str],
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        stream: str | None = None,
        source: PravegaSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            deferrable=deferrable, poke_interval=poke_interval, stream=stream, source=source, conn_id=conn_id, **kwargs
        )
        self.segments = segments

    def condition(self) -> Condition:
        """As `ConditionSensor`."""
        return SegmentsSealed((self.segments,) if isinstance(self.segments, str) else tuple(self.segments))


class PravegaStreamSealedSensor(_PravegaSensor):
    """Waits until a stream has ended: nothing will be written to it any more.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`.
        conn_id: the Airflow connection of `stream` (templated), by default `pravega_default`; a source has its own.

    Returns (XCom):
        `stream, cut, cut_text`: the stream's end, by segment and as Pravega's clients write it.
    """

    def condition(self) -> Condition:
        """As `ConditionSensor`."""
        return StreamSealed()


class PravegaBacklogSensor(_PravegaSensor):
    """Waits until there are so many bytes between a cut and the tail, or no more than so many.

    The bytes are stored ones: each event takes 8 more than its payload. Nothing is read to count them.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`.
        cut: where to count from (templated): where a read ended,
            `{{ ti.xcom_pull(task_ids='read')['end_cut'] | tojson }}`, the text of a stream cut, offsets by segment,
            `earliest` or `latest` (the tail when first asked, so not with `mode="reschedule"`). Default: the head,
            so all that the stream holds.
        bytes: the limit.
        direction: `at_least` waits until enough has come, `at_most` until no more is left, as after a truncation.
        conn_id: the Airflow connection of `stream` (templated), by default `pravega_default`; a source has its own.

    Returns (XCom):
        `stream, bytes, lost_bytes, cut, cut_text`: the cut is the tail that was counted to.
    """

    template_fields: Sequence[str] = ("stream", "conn_id", "cut")

    def __init__(
        self,
        *,
        bytes: int,  # noqa: A002 - the unit is the name
        cut: CutText | None = None,
        direction: Direction = "at_least",
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        stream: str | None = None,
        source: PravegaSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            deferrable=deferrable, poke_interval=poke_interval, stream=stream, source=source, conn_id=conn_id, **kwargs
        )
        BacklogReached(None, bytes, direction)  # refuses when the DAG is parsed
        self.cut, self.bytes, self.direction = cut, bytes, direction

    def condition(self) -> Condition:
        """As `ConditionSensor`."""
        if self.cut is None:
            return BacklogReached(None, self.bytes, self.direction)
        with closing(PravegaHook(self.conn_id)) as hook:
            start = hook.cut(self.stream, self.cut)
        return BacklogReached(start.to_json() or None, self.bytes, self.direction)


class PravegaWatermarkSensor(_PravegaSensor):
    """Waits until the writers of a stream have noted a time: everything they noted before it is written.

    Pravega writes watermarks only while writers note times (Java: `noteTime`, `automaticallyNoteTime`, or the time of
    a transaction's commit). Reading `_MARK<stream>` needs a permission of its own.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`; its `event_time_unit` is the unit of the writers' times.
        event_time_unit: with `stream`: the unit of the times that its writers note, `s`, `ms` (default) or `us`.
        moment: the time (templated), aware, or its text in ISO 8601 with an offset.
        conn_id: the Airflow connection of `stream` (templated), by default `pravega_default`; a source has its own.

    Returns (XCom):
        `stream, lower, upper, cut, cut_text`: the newest watermark, its times in the writers' unit.
    """

    template_fields: Sequence[str] = ("stream", "conn_id", "moment")

    def __init__(
        self,
        *,
        moment: datetime | str,
        source: PravegaSource | None = None,
        event_time_unit: EventTimeUnit | None = None,
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        stream: str | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            source=source, deferrable=deferrable, poke_interval=poke_interval, stream=stream, conn_id=conn_id, **kwargs
        )
        if source is not None and event_time_unit is not None:
            raise InvalidRequest("the source has an event_time_unit of its own: give event_time_unit only with stream")
        self.moment = moment
        self.unit = (source or PravegaSource("any/stream", event_time_unit=event_time_unit or "ms")).unit

    def condition(self) -> Condition:
        """As `ConditionSensor`."""
        since = utc_moment(self.moment) - _EPOCH
        return WatermarkReached(-(-since // self.unit))
