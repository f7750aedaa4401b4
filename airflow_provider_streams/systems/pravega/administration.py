"""Rules that change streams. Each looks first, so that repeating it after a failure does no harm."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.systems.pravega import calls, cuts
from airflow_provider_streams.systems.pravega.calls import ScalingKind, Settings
from airflow_provider_streams.systems.pravega.pieces import pieces_between
from airflow_provider_streams.systems.pravega.steps import Steps, ask
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.stream_settings import IfExists

Change = Callable[[Settings], Settings]
"""From a stream's settings to those it should have."""


@dataclass(frozen=True, slots=True)
class Made:
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
) -> Steps[Made]:
    """Make a stream with changed default settings; what becomes of one that is there already, `if_exists` says.

    A scope that was made for a stream that could not be made is removed again.

    Raises:
        SourceNotFound: no such scope, and none is to be made.
        InvalidRequest: it exists, and that is a failure; or see `change_settings`.
    """
    wanted = change(Settings())
    creation = calls.create_stream(stream, wanted)
    scope = stream.partition("/")[0]
    made_scope = make_scope and (yield from ask(calls.create_scope(scope)))
    try:
        is_made = yield from ask(creation)
    except StreamsError:
        if made_scope:
            with contextlib.suppress(StreamsError):
                yield from ask(calls.delete_scope(scope))
        raise
    if is_made:
        return Made(created=True, updated=False, settings=wanted)
    if if_exists == "fail":
        raise InvalidRequest(f"{stream} exists already")
    if if_exists == "update":
        return (yield from change_settings(stream, change, rescale=rescale))
    return Made(created=False, updated=False, settings=(yield from ask(calls.stream_settings(stream))))


def change_settings(stream: str, change: Change, *, rescale: bool = False) -> Steps[Made]:
    """Change a stream's settings; what the change leaves alone stays.

    Pravega applies a fixed scaling policy at every update: a stream that has another number of open segments than its
    policy says, say after a split by hand, is scaled back at once, even when only a tag changes. This is refused.

    Args:
        stream: which one.
        change: from the settings it has to those it should have.
        rescale: scale it to the number of segments that its fixed policy says.

    Raises:
        InvalidRequest: the update would scale the stream, and that is not asked for; or the stream is sealed.
        SourceNotFound: no such stream or scope.
    """
    current = yield from ask(calls.stream_settings(stream))
    wanted = change(current)
    if wanted == current and not rescale:
        return Made(created=False, updated=False, settings=current)
    if not rescale and wanted.scaling.kind is ScalingKind.FIXED:
        segments = len((yield from ask(calls.current_segments(stream))))
        if segments and segments != wanted.scaling.min_segments:
            raise InvalidRequest(
                f"{stream} has {segments} open segments, its fixed scaling policy says "
                f"{wanted.scaling.min_segments}: this update would scale it at once. Say segments={segments} too to "
                "keep them, or allow it with rescale=True"
            )
    yield from ask(calls.update_stream(stream, wanted))
    return Made(created=False, updated=True, settings=wanted)


def truncate(stream: str, cut: StreamCut) -> Steps[Truncated]:
    """Drop everything before a cut; nothing, if the stream starts there already.

    Raises:
        InvalidRequest: the cut is before the head, no cut of this stream, or the stream is sealed.
        SourceNotFound: no such stream or scope.
    """
    head = yield from cuts.head(stream)
    if cut == head:
        return Truncated(head, 0)
    pieces = yield from pieces_between(head, cut, head)
    yield from ask(calls.truncate_stream(stream, cut.offsets))
    return Truncated((yield from cuts.head(stream)), sum(piece.range.bytes for piece in pieces))


def seal(stream: str) -> Steps[StreamCut]:
    """End a stream for good; its end. Sealing twice does no harm.

    Raises:
        SourceNotFound: no such stream or scope.
    """
    yield from ask(calls.seal_stream(stream))
    return (yield from cuts.sealed_end(stream))
