"""Wait for the state of a Pravega stream: sealed segments or stream, a watermark, so many unread bytes.

None of these sensors reads events, creates anything, or needs more than permission to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pravega_connection import one_stream
from airflow_provider_streams.model.window import utc_moment
from airflow_provider_streams.sensors.condition import ConditionSensor
from airflow_provider_streams.systems.pravega.conditions import (
    BacklogReached,
    SegmentsSealed,
    StreamSealed,
    WatermarkReached,
)
from airflow_provider_streams.systems.pravega.source import EventTimeUnit, PravegaSource

if TYPE_CHECKING:
    from airflow_provider_streams.hooks.base import StreamHook
    from airflow_provider_streams.model.basis import CutText
    from airflow_provider_streams.systems.conditions import Condition, Direction

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _PravegaSensor(ConditionSensor):
    """What the sensors of Pravega share: a stream on a connection."""

    template_fields: Sequence[str] = ("stream",)

    def __init__(
        self,
        *,
        stream: str | None = None,
        source: PravegaSource | None = None,
        conn_id: str = PravegaHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream, self.conn_id = one_stream(self, stream, source, conn_id)

    def hook(self) -> PravegaHook:
        """The hook of its connection."""
        return PravegaHook(self.conn_id)

    def asked(self, hook: StreamHook) -> PravegaSource:
        """The stream; a name without scope lies in the connection's."""
        return cast("PravegaHook", hook).source(self.stream)


class PravegaSegmentSealedSensor(_PravegaSensor):
    """Waits until segments have ended: they were split, merged or rolled, or their stream was sealed.

    What a sealed segment holds never changes. A segment also ends when a transaction that was begun before a scaling
    is committed after it; then a copy with another epoch takes its place.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`.
        segments: one or several (templated): qualified names, or in short `5.#epoch.2`.
        conn_id: the Airflow connection, with `stream`.

    Returns (XCom):
        `stream, ends`: the length in bytes of each segment that is still held.
    """

    template_fields: Sequence[str] = ("stream", "segments")

    def __init__(self, *, segments: str | Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.segments = segments

    def condition(self, hook: StreamHook) -> Condition:  # noqa: ARG002 - all conditions' shape
        """Every segment has ended."""
        return SegmentsSealed((self.segments,) if isinstance(self.segments, str) else tuple(self.segments))


class PravegaStreamSealedSensor(_PravegaSensor):
    """Waits until a stream has ended: nothing will be written to it any more.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`.
        conn_id: the Airflow connection, with `stream`.

    Returns (XCom):
        `stream, cut, cut_text`: the stream's end, by segment and as Pravega's clients write it.
    """

    def condition(self, hook: StreamHook) -> Condition:  # noqa: ARG002 - all conditions' shape
        """The stream has ended."""
        return StreamSealed()


class PravegaBacklogSensor(_PravegaSensor):
    """Waits until so many bytes lie between a cut and the tail, or until no more than so many do.

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
        conn_id: the Airflow connection, with `stream`.

    Returns (XCom):
        `stream, bytes, lost_bytes, cut, cut_text`: the cut is the tail that was counted to.
    """

    template_fields: Sequence[str] = ("stream", "cut")

    def __init__(
        self,
        *,
        bytes: int,  # noqa: A002 - the unit is the name
        cut: CutText | None = None,
        direction: Direction = "at_least",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        BacklogReached(None, bytes, direction)  # refuses when the DAG is parsed
        self.cut, self.bytes, self.direction = cut, bytes, direction
        self._from: Mapping[str, str] | None = None

    def condition(self, hook: StreamHook) -> Condition:
        """So many bytes; `latest` is resolved once."""
        if self.cut is not None and self._from is None:
            self._from = cast("PravegaHook", hook).cut(self.stream, self.cut).to_json() or None
        return BacklogReached(self._from, self.bytes, self.direction)


class PravegaWatermarkSensor(_PravegaSensor):
    """Waits until the writers of a stream have noted a time: everything they noted before it is written.

    Pravega writes watermarks only while writers note times (Java: `noteTime`, `automaticallyNoteTime`, or the time of
    a transaction's commit). Reading `_MARK<stream>` needs a permission of its own.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`; its `event_time_unit` is that of the writers' times.
        event_time_unit: with `stream`: the unit of the times that its writers note, `s`, `ms` (default) or `us`.
        moment: the time (templated), aware, or its text in ISO 8601 with an offset.
        conn_id: the Airflow connection, with `stream`.

    Returns (XCom):
        `stream, lower, upper, cut, cut_text`: the newest watermark, its times in the writers' unit.
    """

    template_fields: Sequence[str] = ("stream", "moment")

    def __init__(
        self,
        *,
        moment: datetime | str,
        source: PravegaSource | None = None,
        event_time_unit: EventTimeUnit | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(source=source, **kwargs)
        if source is not None and event_time_unit is not None:
            raise InvalidRequest("the source says its event_time_unit: give event_time_unit only with stream")
        self.moment = moment
        self.unit = (source or PravegaSource("any/stream", event_time_unit=event_time_unit or "ms")).unit

    def condition(self, hook: StreamHook) -> Condition:  # noqa: ARG002 - all conditions' shape
        """The newest watermark is not before the time."""
        since = utc_moment(self.moment) - _EPOCH
        return WatermarkReached(-(-since // self.unit))
