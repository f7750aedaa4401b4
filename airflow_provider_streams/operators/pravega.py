"""Administer Pravega streams from a DAG. Each task may run twice without harm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pravega_connection import one_stream
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.operations.stream_settings import (
    IfExists,
    StreamSettings,
    check_if_exists,
)
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.template_rendering import RendersValues

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.model.stream.cut import Cut
    from airflow_provider_streams.model.window.basis import CutText
    from airflow_provider_streams.systems.pravega.client.controller.call import KeyedSegment
    from airflow_provider_streams.systems.pravega.operations.scaling import Choice


class _StreamOperator(RendersValues, BaseOperator):
    """What operators on one stream share: its name, and the connection."""

    template_fields: Sequence[str] = ("stream", "conn_id")
    ui_color = "#f4e3d7"

    def __init__(
        self,
        *,
        stream: str | None = None,
        source: PravegaSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream, self.conn_id = one_stream(self, stream, source, conn_id)

    @contextmanager
    def connected(self) -> Iterator[PravegaHook]:
        """The hook; errors that cannot pass by themselves end the task without retries."""
        with terminal_errors(), closing(PravegaHook(self.conn_id)) as hook:
            yield hook


class PravegaCreateStreamOperator(_StreamOperator):
    """Makes a stream, or sees to it that one has these settings.

    Settings that are not given stay as they are in a stream that exists. Pravega applies a fixed scaling policy at
    every update: a stream that has been split or merged by hand would be scaled back even when only a tag changes.
    Such an update is refused, unless `rescale=True` asks for it.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`.
        segments: how many segments; with a rate, how many at least. Default for a new stream: 1.
        events_per_second: scale by this rate of each segment.
        kilobytes_per_second: scale by this rate of each segment.
        scale_factor: with a rate: in how many parts a hot segment is split.
        retention: retention by time: drop what is older.
        retention_bytes: retention by size: drop the oldest beyond so many bytes.
        note_timeout: for how long watermarks (basis `event`) wait for a writer that notes no time. Default for a new
            stream: not at all, so that what a writer notes after a pause is late.
        tags: the stream's tags, all of them.
        if_exists: `keep` an existing stream as it is, `update` its settings, or `fail`.
        make_scope: make its scope as well.
        rescale: an update may scale the stream to its fixed number of segments.
        conn_id: the Airflow connection of `stream` (templated), by default `pravega_default`; a source has its own.

    Returns (XCom):
        `stream, created, updated`.
    """

    template_fields: Sequence[str] = ("stream", "conn_id", "tags")

    def __init__(
        self,
        *,
        segments: int | None = None,
        events_per_second: int | None = None,
        kilobytes_per_second: int | None = None,
        scale_factor: int = 2,
        retention: timedelta | None = None,
        retention_bytes: int | None = None,
        note_timeout: timedelta | None = None,
        tags: Sequence[str] | None = None,
        if_exists: IfExists = "keep",
        make_scope: bool = False,
        rescale: bool = False,
        stream: str | None = None,
        source: PravegaSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(stream=stream, source=source, conn_id=conn_id, **kwargs)
        check_if_exists(if_exists)
        self.settings = StreamSettings(
            segments,
            events_per_second,
            kilobytes_per_second,
            scale_factor,
            retention,
            retention_bytes,
            note_timeout=note_timeout,
        )
        self.tags = tags
        self.if_exists, self.make_scope, self.rescale = if_exists, make_scope, rescale

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's shape
        """Create, or update.

        Raises:
            InvalidRequest: it exists, and that is a failure; or the update would scale it.
        """
        tags = None if self.tags is None else tuple(self.tags)
        with self.connected() as hook:
            made = hook.create_stream(
                self.stream,
                replace(self.settings, tags=tags),
                if_exists=self.if_exists,
                make_scope=self.make_scope,
                rescale=self.rescale,
            )
            name = hook.stream(self.stream)
        done = "Created" if made.created else "Updated" if made.updated else "Left as it was:"
        self.log.info("%s %s: %s", done, name, made.settings)
        return {"stream": name, "created": made.created, "updated": made.updated}


class PravegaTruncateStreamOperator(_StreamOperator):
    """Drops everything before a cut, for good.

    A stream that starts there already is left alone. A cut before the head is refused: it is an old one.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`.
        cut: the new head (templated): where a read ended, `{{ ti.xcom_pull(task_ids='read')['end_cut'] | tojson }}`,
            the text of a stream cut, offsets by segment, or `latest`, which drops everything.
        conn_id: the Airflow connection of `stream` (templated), by default `pravega_default`; a source has its own.

    Returns (XCom):
        `stream, bytes, cut, cut_text`: what was dropped, and the new head.
    """

    template_fields: Sequence[str] = ("stream", "conn_id", "cut")

    def __init__(
        self,
        *,
        cut: CutText,
        stream: str | None = None,
        source: PravegaSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(stream=stream, source=source, conn_id=conn_id, **kwargs)
        self.cut = cut

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's shape
        """Truncate.

        Raises:
            InvalidRequest: no cut of this stream, one before its head, or the stream is sealed.
        """
        with self.connected() as hook:
            done = hook.truncate(self.stream, hook.cut(self.stream, self.cut))
        self.log.info("Dropped %s of %s", counted(done.bytes, "byte"), done.head.stream)
        return {"bytes": done.bytes, **_cut_facts(done.head)}


class PravegaSealStreamOperator(_StreamOperator):
    """Ends a stream for good: it can be read and deleted, but not written to or truncated any more.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`.
        conn_id: the Airflow connection of `stream` (templated), by default `pravega_default`; a source has its own.

    Returns (XCom):
        `stream, cut, cut_text`: the stream's end.
    """

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's shape
        """Seal; a sealed stream is left alone."""
        with self.connected() as hook:
            end: Cut = hook.seal(self.stream)
            name = hook.stream(self.stream)
        self.log.info("%s ends at %s", name, end)
        return _cut_facts(StreamCut.from_model(name, end))


class PravegaDeleteStreamOperator(_StreamOperator):
    """Removes a stream and its events for good; succeeds if there is none. Its scope stays.

    Without `seal` and `force`, only a stream goes that has ended and that nothing waits for.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`.
        seal: seal the stream first, if it is still open.
        force: although subscribers (holds, or reader groups that retention respects) have not released its data.
        conn_id: the Airflow connection of `stream` (templated), by default `pravega_default`; a source has its own.

    Returns (XCom):
        `stream, deleted`.
    """

    def __init__(
        self,
        *,
        seal: bool = False,
        force: bool = False,
        stream: str | None = None,
        source: PravegaSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(stream=stream, source=source, conn_id=conn_id, **kwargs)
        self.seal, self.force = seal, force

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's shape
        """Delete.

        Raises:
            InvalidRequest: the stream is open, or its data is held; nothing was changed.
        """
        from airflow_provider_streams.systems.pravega.operations import administration  # noqa: PLC0415 - gRPC when used

        with self.connected() as hook:
            name = hook.stream(self.stream)
            deleted = hook.run(administration.delete(name, seal_first=self.seal, force=self.force))
        self.log.info("%s %s", name, "is deleted" if deleted else "was not there")
        return {"stream": name, "deleted": deleted}


class PravegaScaleStreamOperator(_StreamOperator):
    """Splits or merges the open segments of a stream, and waits for the end.

    Events keep their order by key: those written before lie in the sealed segments, which are read first. A stream
    whose fixed scaling policy says another number of segments is scaled back by the next update of its settings.

    Args:
        stream: the stream (templated), `scope/stream` or a name in the connection's scope; or give `source`.
        source: instead of `stream`.
        segments: so many segments with equal shares of the keys; a stream that has them is left alone.
        split: instead, one open segment to split: its name, or in short `0.#epoch.0`.
        parts: with `split`: in how many parts.
        merge: instead, neighbouring open segments to merge.
        conn_id: the Airflow connection of `stream` (templated), by default `pravega_default`; a source has its own.

    Returns (XCom):
        `stream, segments`: the open ones afterwards, each with `name, low, high`.
    """

    template_fields: Sequence[str] = ("stream", "conn_id", "split", "merge")

    def __init__(
        self,
        *,
        segments: int | None = None,
        split: str | None = None,
        parts: int = 2,
        merge: Sequence[str] | None = None,
        stream: str | None = None,
        source: PravegaSource | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(stream=stream, source=source, conn_id=conn_id, **kwargs)
        if sum(choice is not None for choice in (segments, split, merge)) != 1:
            raise InvalidRequest("PravegaScaleStreamOperator takes segments, split or merge: give one of them")
        self.segments, self.split, self.parts, self.merge = segments, split, parts, merge

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's shape
        """Scale.

        Raises:
            InvalidRequest: the stream is sealed, or a named segment is not open.
            SystemUnavailable: someone else scales it at the same time.
        """
        with self.connected() as hook:
            name = hook.stream(self.stream)
            before = hook.describe(name).segments
            after = hook.scale(name, self._choice(name))
            self._report(hook, name, before, after)
        return {"stream": name, "segments": [_segment_facts(name, one) for one in after]}

    def _choice(self, stream: str) -> Choice:
        from airflow_provider_streams.systems.pravega.metadata import queries  # noqa: PLC0415 - gRPC when used
        from airflow_provider_streams.systems.pravega.operations import scaling  # noqa: PLC0415 - gRPC when used

        if self.segments is not None:
            return scaling.to_count(self.segments)
        if self.split is not None:
            (segment,) = queries.segments_named(stream, [self.split])
            return scaling.split(segment.id, self.parts)
        return scaling.merge([segment.id for segment in queries.segments_named(stream, self.merge or ())])

    def _report(
        self, hook: PravegaHook, stream: str, before: Sequence[KeyedSegment], after: Sequence[KeyedSegment]
    ) -> None:
        self.log.info("%s has %s, it had %d", stream, counted(len(after), "open segment"), len(before))
        scaling = hook.stream_settings(stream).scaling
        if scaling.kind == 0 and scaling.min_segments != len(after):
            self.log.warning(
                "The fixed scaling policy of %s says %s: the next update of its settings scales it back. "
                "PravegaCreateStreamOperator(segments=%d, if_exists='update') changes the policy.",
                stream,
                counted(scaling.min_segments, "segment"),
                len(after),
            )


def _cut_facts(cut: StreamCut) -> dict[str, Any]:
    return {"stream": cut.stream, "cut": cut.to_model().to_json(), "cut_text": cut.to_text()}


def _segment_facts(stream: str, one: KeyedSegment) -> dict[str, Any]:
    from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment  # noqa: PLC0415

    return {"name": Segment(stream, one.segment_id).name, "low": one.low, "high": one.high}
