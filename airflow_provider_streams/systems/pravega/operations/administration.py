"""Rules that change streams. Each looks first, so that repeating it after a failure does no harm.

Each of them raises `SourceNotFound` if there is no such stream or scope, except `delete`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.systems.pravega.client.controller import hold_calls, segment_calls, stream_calls
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps
from airflow_provider_streams.systems.pravega.client.stream_configuration import ScalingKind, Settings
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.operations.stream_settings import IfExists
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.planning.segment_ranges import pieces_between

Change = Callable[[Settings], Settings]
"""From a stream's settings to the wanted ones."""


@dataclass(frozen=True, slots=True)
class CreateResult:
    """What a creation did."""

    created: bool
    updated: bool
    settings: Settings


@dataclass(frozen=True, slots=True)
class Truncated:
    """What a truncation dropped."""

    head: StreamCut
    """Where the stream starts now."""
    bytes: int


def create(
    stream: str, change: Change, *, if_exists: IfExists = "keep", make_scope: bool = False, rescale: bool = False
) -> Steps[CreateResult]:
    """Make a stream with changed default settings; `if_exists` says what happens to an existing one.

    If the stream cannot be made, a scope that was made for it is removed again.

    Raises:
        InvalidRequest: it exists, and that is a failure; or see `change_settings`.
    """
    wanted = change(Settings())
    creation = stream_calls.create_stream(stream, wanted)
    scope = stream.partition("/")[0]
    made_scope = make_scope and (yield from stream_calls.create_scope(scope))
    try:
        is_made = yield from creation
    except StreamsError:
        if made_scope:
            with contextlib.suppress(StreamsError):
                yield from stream_calls.delete_scope(scope)
        raise
    if is_made:
        return CreateResult(created=True, updated=False, settings=wanted)
    if if_exists == "fail":
        raise InvalidRequest(f"{stream} exists already")
    if if_exists == "update":
        return (yield from change_settings(stream, change, rescale=rescale))
    settings = yield from stream_calls.stream_settings(stream)
    return CreateResult(created=False, updated=False, settings=settings)


def change_settings(stream: str, change: Change, *, rescale: bool = False) -> Steps[CreateResult]:
    """Change a stream's settings; the change keeps the others.

    Pravega applies a fixed scaling policy at every update. It scales a stream with another number of open segments,
    for example after a split by hand, back at once, even if only a tag changes. This is refused without `rescale`.

    Raises:
        InvalidRequest: the update would scale the stream without `rescale`; or the stream is sealed.
    """
    current = yield from stream_calls.stream_settings(stream)
    wanted = change(current)
    if wanted == current and not rescale:
        return CreateResult(created=False, updated=False, settings=current)
    if not rescale and wanted.scaling.kind is ScalingKind.FIXED:
        segments = len((yield from segment_calls.current_segments(stream)))
        if segments and segments != wanted.scaling.min_segments:
            raise InvalidRequest(
                f"{stream} has {segments} open segments, its fixed scaling policy says "
                f"{wanted.scaling.min_segments}: this update would scale it at once. Say segments={segments} as well "
                "to keep them, or allow it with rescale=True"
            )
    yield from stream_calls.update_stream(stream, wanted)
    return CreateResult(created=False, updated=True, settings=wanted)


def truncate(stream: str, cut: StreamCut) -> Steps[Truncated]:
    """Drop everything before a cut; nothing, if the stream starts there already.

    Raises:
        InvalidRequest: the cut is before the head, no cut of this stream, or the stream is sealed.
    """
    head = yield from cuts.head(stream)
    if cut == head:
        return Truncated(head, 0)
    pieces = yield from pieces_between(head, cut, head)
    yield from stream_calls.truncate_stream(stream, cut.offsets)
    return Truncated((yield from cuts.head(stream)), sum(piece.range.bytes for piece in pieces))


def delete(stream: str, *, seal_first: bool = False, force: bool = False) -> Steps[bool]:
    """Remove a stream and its events for good; False: there was none.

    Pravega deletes no open stream, so `seal_first` seals it. With `force`, subscribers may hold its data.

    Raises:
        InvalidRequest: it is open, or subscribers hold its data; nothing was changed.
    """
    if not (yield from stream_calls.stream_exists(stream)):
        return False
    held_by = () if force else tuple((yield from hold_calls.list_holds(stream)))
    if held_by:
        raise InvalidRequest(
            f"{stream} has data that is held for {', '.join(held_by)}: release these holds, or say force=True"
        )
    if seal_first:
        yield from stream_calls.seal_stream(stream)
    elif (yield from segment_calls.current_segments(stream)):
        raise InvalidRequest(
            f"{stream} is open: seal it first, or let seal=True do so. A deleted stream cannot be read any more"
        )
    return (yield from stream_calls.delete_stream(stream))


def seal(stream: str) -> Steps[StreamCut]:
    """End a stream for good, and return its end. Sealing twice does no harm."""
    yield from stream_calls.seal_stream(stream)
    return (yield from cuts.sealed_end(stream))
