"""The controller's calls about scopes and streams, as data: what to send, and what the answer means.

The blocking and the asynchronous edge (`channels`) send them; neither knows one call from another. The calls about
segments, holds and transactions have their own modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_streams.errors import (
    InvalidName,
    InvalidRequest,
    ProtocolError,
    SourceNotFound,
    StreamsError,
    UnknownServerError,
)
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.client.controller.call import (
    Call,
    change,
    check,
    stream_name,
)
from airflow_provider_streams.systems.pravega.client.stream_configuration import (
    Retention,
    RetentionKind,
    Scaling,
    ScalingKind,
    Settings,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message

_ALREADY_SEALED = 2


class Page(NamedTuple):
    """Some names and where the next ones start; an empty page is the last one."""

    names: tuple[str, ...]
    token: str


def scope_exists(scope: str) -> Call[bool]:
    """Whether a scope exists."""
    return Call("checkScopeExists", scope, pb.ScopeKey(scope=scope), pb.BoolAnswer, lambda a: a.value)


def stream_exists(stream: str) -> Call[bool]:
    """Whether a stream exists. Only this call can say no."""
    return Call("checkStreamExists", stream, stream_name(stream), pb.BoolAnswer, lambda a: a.value)


def list_scopes(token: str = "") -> Call[Page]:
    """One page of scopes in any order, `_system` included; needs a permission of its own."""
    message = pb.ScopeQuery(page=pb.PageToken(token=token))
    return Call("listScopes", "/", message, pb.ScopePage, lambda a: Page(tuple(a.scopes), a.page.token))


def list_streams(scope: str, token: str = "", *, tag: str = "") -> Call[Page]:
    """One page of `scope/stream`, including Pravega's own streams; `SourceNotFound` if there is no such scope."""
    key, page = pb.ScopeKey(scope=scope), pb.PageToken(token=token)
    if tag:
        message: Message = pb.TaggedStreamQuery(scope=key, tag=tag, page=page)
    else:
        message = pb.StreamQuery(scope=key, page=page)

    def parse(answer: pb.StreamPage) -> Page:
        check("list streams", answer.status, {2: SourceNotFound(f"scope {scope}")}, scope)
        return Page(tuple(f"{s.scope}/{s.stream}" for s in answer.streams), answer.page.token)

    return Call("listStreamsInScopeForTag" if tag else "listStreamsInScope", scope, message, pb.StreamPage, parse)


def create_scope(scope: str) -> Call[bool]:
    """Make a scope; False: it exists already."""
    refused = {3: InvalidName(scope, "a scope has letters, digits, '.' and '-'")}
    return change("createScope", "create the scope", scope, pb.ScopeKey(scope=scope), refused, unchanged=(2,))


def delete_scope(scope: str) -> Call[bool]:
    """Remove an empty scope; False: there is none."""
    refused = {3: InvalidRequest(f"scope {scope} still has streams")}
    return change("deleteScope", "delete the scope", scope, pb.ScopeKey(scope=scope), refused, unchanged=(2,))


def create_stream(stream: str, settings: Settings | None = None) -> Call[bool]:
    """Make a stream; False: it exists already, and keeps its settings."""
    message = _settings_message(stream, settings or Settings())
    refused = {
        3: SourceNotFound(f"scope {stream.partition('/')[0]}"),
        4: InvalidName(stream, "a stream has letters, digits, '.' and '-'"),
    }
    return change("createStream", "create the stream", stream, message, refused, unchanged=(2,))


def stream_settings(stream: str) -> Call[Settings]:
    """A stream's whole configuration."""
    return Call("getStreamConfiguration", stream, stream_name(stream), pb.StreamSettings, _settings)


def update_stream(stream: str, settings: Settings) -> Call[bool]:
    """Replace a stream's whole configuration.

    Pravega applies a fixed scaling policy at once: it merges or splits segments to its count.
    """
    return change("updateStream", "update the stream", stream, _settings_message(stream, settings), _not_open(stream))


def _settings_message(stream: str, settings: Settings) -> pb.StreamSettings:
    has_retention = settings.retention.kind is not RetentionKind.NONE
    try:
        return pb.StreamSettings(
            stream=stream_name(stream),
            scaling=pb.Scaling(**asdict(settings.scaling)),
            retention=pb.Retention(**asdict(settings.retention)) if has_retention else None,
            timestamp_aggregation_ms=settings.timestamp_aggregation_ms,
            rollover_bytes=settings.rollover_bytes,
            tags=pb.Tags(names=settings.tags),
        )
    except ValueError as error:
        raise InvalidRequest(f"{stream}: these settings cannot be sent: {error}") from error


def _settings(answer: pb.StreamSettings) -> Settings:
    scaling, retention = answer.scaling, answer.retention
    try:
        return Settings(
            Scaling(ScalingKind(scaling.kind), scaling.target_rate, scaling.factor, scaling.min_segments),
            Retention(RetentionKind(retention.kind), retention.minimum, retention.maximum),
            tuple(sorted(answer.tags.names)),  # servers keep them in no order
            answer.timestamp_aggregation_ms,
            answer.rollover_bytes,
        )
    except ValueError as error:
        raise ProtocolError(f"the controller answers with a policy that is not known: {error}") from error


def truncate_stream(stream: str, offsets: Mapping[int, int]) -> Call[bool]:
    """Drop everything before a cut. The controller fails without a cause for a cut before the head or without sense."""
    message = pb.CutMessage(stream=stream_name(stream), offsets=offsets)
    return change("truncateStream", "truncate the stream", stream, message, _not_open(stream))


def _not_open(stream: str) -> dict[int, StreamsError]:
    is_sealed = InvalidRequest(f"{stream} is sealed: it can only be read or deleted")
    return {2: SourceNotFound(stream), 3: SourceNotFound(stream), 4: is_sealed}


def seal_stream(stream: str) -> Call[bool]:
    """End a stream: nothing is written to it any more. Sealing twice does no harm."""
    refused = dict.fromkeys((2, 3), SourceNotFound(stream))
    return change("sealStream", "seal the stream", stream, stream_name(stream), refused)


def delete_stream(stream: str) -> Call[bool]:
    """Remove a sealed stream; False: there is none."""
    refused = {3: InvalidRequest(f"{stream} must be sealed before it is deleted")}
    return change("deleteStream", "delete the stream", stream, stream_name(stream), refused, unchanged=(2,))


def scale(
    stream: str, sealed: Iterable[int], ranges: Iterable[tuple[float, float]], timestamp_ms: int
) -> Call[int | None]:
    """Replace open segments by new ones that own the same key space; the epoch that this ends, for `scale_done`.

    None: some of the segments are sealed already, for example by an earlier copy of this request. The controller fails
    without a cause if the stream is missing or sealed, or if the ranges are not those of the segments.
    """
    message = pb.ScaleOrder(
        stream=stream_name(stream),
        sealed=sealed,
        ranges=[pb.KeyRange(low=low, high=high) for low, high in ranges],
        timestamp=timestamp_ms,
    )

    def parse(answer: pb.ScaleAnswer) -> int | None:
        if answer.status == _ALREADY_SEALED:
            return None
        check("scale the stream", answer.status, {}, stream)
        return answer.epoch

    return Call("scale", stream, message, pb.ScaleAnswer, parse, repeatable=False)


def scale_done(stream: str, epoch: int) -> Call[bool]:
    """Whether the scaling that ends this epoch (the answer of `scale`) is over."""
    refused = {
        2: InvalidRequest(f"{stream} has no epoch {epoch} yet"),
        3: UnknownServerError("Pravega's controller", f"the scaling of {stream} failed inside"),
    }

    def parse(answer: pb.StatusAnswer) -> bool:
        if answer.status == 1:
            return True
        check("check the scaling", answer.status, refused, stream)
        return False

    message = pb.ScaleQuery(stream=stream_name(stream), epoch=epoch)
    return Call("checkScale", stream, message, pb.StatusAnswer, parse)
