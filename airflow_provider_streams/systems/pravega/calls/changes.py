"""Making, changing, scaling and removing scopes and streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_provider_streams.errors import InvalidName, InvalidRequest, SourceNotFound, UnclearAnswer
from airflow_provider_streams.systems.pravega import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.calls.call import Call, Failure, done, missing, sealed, stream_name
from airflow_provider_streams.systems.pravega.calls.settings import Settings, from_message, to_message


def create_scope(scope: str) -> Call[bool]:
    """Make a scope; False: it was there."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {3: lambda: InvalidName(scope, "a scope has letters, digits, '.' and '-'")}
        return done("create the scope", answer.status, refused, scope, already=2)

    return Call("createScope", scope, pb.ScopeKey(scope=scope), pb.StatusAnswer, parse)


def delete_scope(scope: str) -> Call[bool]:
    """Remove an empty scope; False: it was not there."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {3: lambda: InvalidRequest(f"scope {scope} still has streams")}
        return done("delete the scope", answer.status, refused, scope, already=2)

    return Call("deleteScope", scope, pb.ScopeKey(scope=scope), pb.StatusAnswer, parse)


def create_stream(stream: str, settings: Settings | None = None) -> Call[bool]:
    """Make a stream; False: it was there, and keeps its settings."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {
            3: lambda: SourceNotFound(f"scope {stream.partition('/')[0]}"),
            4: lambda: InvalidName(stream, "a stream has letters, digits, '.' and '-'"),
        }
        return done("create the stream", answer.status, refused, stream, already=2)

    return Call("createStream", stream, to_message(stream, settings or Settings()), pb.StatusAnswer, parse)


def stream_settings(stream: str) -> Call[Settings]:
    """A stream's whole configuration."""
    return Call("getStreamConfiguration", stream, stream_name(stream), pb.StreamSettings, from_message)


def update_stream(stream: str, settings: Settings) -> Call[bool]:
    """Replace a stream's whole configuration.

    A fixed scaling policy is applied at once: segments are merged or split to its count.
    """

    def parse(answer: pb.StatusAnswer) -> bool:
        return done("update the stream", answer.status, missing(stream, 2, 3) | sealed(stream, 4), stream)

    return Call("updateStream", stream, to_message(stream, settings), pb.StatusAnswer, parse)


def truncate_stream(stream: str, offsets: Mapping[int, int]) -> Call[bool]:
    """Drop everything before a cut; one before the head, or of no sense, is answered as a failure without a cause."""

    def parse(answer: pb.StatusAnswer) -> bool:
        return done("truncate the stream", answer.status, missing(stream, 2, 3) | sealed(stream, 4), stream)

    message = pb.CutMessage(stream=stream_name(stream), offsets=offsets)
    return Call("truncateStream", stream, message, pb.StatusAnswer, parse)


def seal_stream(stream: str) -> Call[bool]:
    """End a stream: nothing is written to it any more. Sealing twice does no harm."""

    def parse(answer: pb.StatusAnswer) -> bool:
        return done("seal the stream", answer.status, missing(stream, 2, 3), stream)

    return Call("sealStream", stream, stream_name(stream), pb.StatusAnswer, parse)


def delete_stream(stream: str) -> Call[bool]:
    """Remove a sealed stream; False: it was not there."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {3: lambda: InvalidRequest(f"{stream} must be sealed before it is deleted")}
        return done("delete the stream", answer.status, refused, stream, already=2)

    return Call("deleteStream", stream, stream_name(stream), pb.StatusAnswer, parse)


def scale(
    stream: str, sealed: Iterable[int], ranges: Iterable[tuple[float, float]], timestamp_ms: int
) -> Call[int | None]:
    """Replace open segments by new ones that own the same key space; the epoch that this ends, for `scale_done`.

    None: some of the segments are sealed already, for example by the same request sent before. A stream that is
    missing or sealed, or other ranges than the segments', are answered as a failure without a cause.
    """
    message = pb.ScaleOrder(
        stream=stream_name(stream),
        sealed=sealed,
        ranges=[pb.KeyRange(low=low, high=high) for low, high in ranges],
        timestamp=timestamp_ms,
    )

    def parse(answer: pb.ScaleAnswer) -> int | None:
        return answer.epoch if done("scale the stream", answer.status, {}, stream, already=2) else None

    return Call("scale", stream, message, pb.ScaleAnswer, parse, repeatable=False)


def scale_done(stream: str, epoch: int) -> Call[bool]:
    """Whether the scaling that ends this epoch (the answer of `scale`) is over."""

    def parse(answer: pb.StatusAnswer) -> bool:
        if answer.status in (0, 1):
            return bool(answer.status)
        refused: dict[int, Failure] = {
            2: lambda: InvalidRequest(f"{stream} has no epoch {epoch} yet"),
            3: lambda: UnclearAnswer("Pravega's controller", f"the scaling of {stream} failed inside"),
        }
        return done("check the scaling", answer.status, refused, stream)

    message = pb.ScaleQuery(stream=stream_name(stream), epoch=epoch)
    return Call("checkScale", stream, message, pb.StatusAnswer, parse)
