"""Retention holds: a subscriber without a reader, before whose cut the stream's retention truncates nothing.

Retention that a stream's policy bounds by a maximum may truncate beyond a hold: it is a wish, not a lock. Pravega
ignores a subscriber that has never said where it stands, so a hold is moved to its cut as soon as it is made. It takes
any cut, and truncates up to it: whether a cut is right is for us to see.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound, StreamsError
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.hold import Hold, HoldRequest
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.pravega import calls, cuts
from airflow_provider_streams.systems.pravega.calls import Group
from airflow_provider_streams.systems.pravega.pieces import pieces_between, trimmed
from airflow_provider_streams.systems.pravega.selection import streams_of
from airflow_provider_streams.systems.pravega.shards import by_stream
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.steps import Steps, ask
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_NAME = re.compile(r"[A-Za-z0-9.-]{1,235}")
_OTHER = re.compile(r"[^A-Za-z0-9.-]")
_SHOWN, _DIGITS = 200, 10
_LIVES = 9


def name_for(reader: str, stream: str) -> str:
    """The name of a reader's hold on a stream: `dag_id.task_id` becomes `dag-id.task-id.<digest of both>`.

    Holds are named by scope, and with fewer letters than readers have: the digest keeps apart readers that look alike,
    and the holds of one reader on several streams.
    """
    digest = hashlib.sha256(f"{stream}\n{reader}".encode()).hexdigest()[:_DIGITS]
    return f"{_OTHER.sub('-', reader)[:_SHOWN]}.{digest}"


def place_request(request: HoldRequest) -> Steps[dict[str, Any]]:
    """A hold as its operator asks for it, on each stream of the source; see `place`.

    Raises:
        InvalidRequest: it shall start at a time, which events do not carry.
    """
    source = _source(request.source)
    if request.since is not None and request.cut is None:
        raise InvalidRequest(f"{source}: a hold starts at a cut: events of Pravega carry no time to find one by")
    parts, made = by_stream(request.cut or Cut({})), []
    for stream in (yield from streams_of(source)):
        if (yield from place(stream, name_for(request.name, stream), _part(stream, parts))):
            made.append(stream)  # noqa: PERF401 - a rule's questions cannot be asked in a comprehension
    shown = request.cut if made else None
    return {"hold": _shown(source, request.name), "placed": made, "cut": shown.to_json() if shown else None}


def move_request(request: HoldRequest) -> Steps[dict[str, Any]]:
    """A hold is moved as its operator asks for it, on each stream of the source; see `move`.

    A stream that came to others is held from now on, too.

    Raises:
        SourceNotFound: there is no such hold on any of them.
    """
    source = _source(request.source)
    name = _shown(source, request.name)
    if request.cut is None:
        return {"hold": name, "moved": [], "reason": "the last covered window ends at a time, and no cut is known"}
    parts, moved = by_stream(request.cut), []
    streams = yield from streams_of(source)
    held = yield from _held(streams, request.name)
    if not held and not source.is_one:
        raise SourceNotFound(f"hold {name} on {source}")
    for stream in streams:
        own, cut = name_for(request.name, stream), _part(stream, parts)
        if stream not in held and not source.is_one:
            yield from place(stream, own, cut)
        elif cut is not None and (yield from move(stream, own, cut)):
            moved.append(stream)
    return {"hold": name, "moved": moved, "cut": request.cut.to_json()}


def _held(streams: Iterable[str], name: str) -> Steps[list[str]]:
    found = []
    for stream in streams:
        if is_held((yield from ask(calls.list_holds(stream))), stream, name):
            found.append(stream)  # noqa: PERF401 - a rule's questions cannot be asked in a comprehension
    return found


def release_named(source: Source, name: str) -> Steps[dict[str, Any]]:
    """A hold is released as its operator asks for it, on each stream that the source is now; see `release`."""
    asked, released = _source(source), []
    streams: tuple[str, ...] = ()
    with contextlib.suppress(SourceNotFound):
        streams = yield from streams_of(asked)
    for stream in streams:
        if (yield from release(stream, name_for(name, stream))):
            released.append(stream)  # noqa: PERF401 - a rule's questions cannot be asked in a comprehension
    return {"hold": _shown(asked, name), "released": released}


def holds(source: Source, readers: Iterable[str]) -> Steps[tuple[Hold, ...]]:
    """Every subscriber of a source's streams, with the reader whose name it has."""
    readers, found = tuple(readers), []
    for stream in (yield from streams_of(_source(source))):
        for name in (yield from ask(calls.list_holds(stream))):
            reader = next((reader for reader in readers if is_held({name}, stream, reader)), None)
            found.append(Hold(name, reader))
    return tuple(found)


def _source(source: Source) -> PravegaSource:
    if not isinstance(source, PravegaSource):
        raise InvalidRequest(f"{source} is no Pravega stream")
    return source


def _shown(source: PravegaSource, name: str) -> str:
    """The hold's name: of one stream as it is there; of several, where each has its own, as it was given."""
    return name_for(name, source.stream) if source.is_one else name


def _part(stream: str, parts: Mapping[str, Cut]) -> StreamCut | None:
    return StreamCut.from_model(stream, parts[stream]) if stream in parts else None


def place(stream: str, name: str, cut: StreamCut | None = None) -> Steps[bool]:
    """Hold a stream from a cut on; False: the hold is there already, and stays where it is.

    Nothing is left behind when it fails.

    Args:
        stream: `scope/stream`.
        name: the hold's, unique in the scope.
        cut: None: the head.

    Raises:
        InvalidRequest: not a name, one that a reader group has, or no cut of this stream up to its tail.
        StartTrimmed: retention has passed the cut.
        SourceNotFound: no such stream or scope.
    """
    candidates = _candidates(stream, name)
    head = yield from cuts.head(stream)
    if cut is not None:
        yield from _check_held(cut, head)
    standing = yield from _standing(stream, candidates)
    if standing:
        # whoever made it may have died before it stood anywhere; one that stands further does not move back
        yield from ask(calls.move_hold((yield from ask(calls.find_hold(standing[0]))), stream, head.offsets))
        return False
    for candidate in candidates:
        if (yield from _make(candidate._replace(group_id=str(uuid4())), cut or head)):
            return True
    raise InvalidRequest(f"{stream}: the hold {name!r} was made for too many earlier streams of this name")


def move(stream: str, name: str, cut: StreamCut) -> Steps[bool]:
    """Let retention truncate up to a cut; False: the hold stands further already, and does not move back.

    Raises:
        InvalidRequest: no cut of this stream up to its tail.
        SourceNotFound: there is no such hold, or no such stream.
    """
    candidates = _candidates(stream, name)
    yield from cuts.check({"hold's": cut}, (yield from cuts.head(stream)))
    standing = yield from _standing(stream, candidates)
    if not standing:
        raise SourceNotFound(f"hold {name} on {stream}")
    found = yield from ask(calls.find_hold(standing[0]))
    return (yield from ask(calls.move_hold(found, stream, cut.offsets)))


def release(stream: str, name: str) -> Steps[bool]:
    """Remove a hold; False: it was not there. Do it before the stream is deleted: Pravega cannot afterwards.

    A reader group of another stream is not touched.
    """
    try:
        standing = yield from _standing(stream, _candidates(stream, name))
    except SourceNotFound:
        return False
    for group in standing:
        yield from ask(calls.delete_hold((yield from ask(calls.find_hold(group)))))
    return bool(standing)


def is_held(subscribers: Collection[str], stream: str, reader: str) -> bool:
    """Whether a reader's hold is among a stream's subscribers."""
    return any(group.subscriber in subscribers for group in _candidates(stream, name_for(reader, stream)))


def _candidates(stream: str, name: str) -> tuple[Group, ...]:
    """The names that a hold can have: those before it may be taken by what earlier streams of this name left behind."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"a hold's name has letters, digits, '.' and '-', got {name!r}")
    scope = stream.partition("/")[0]
    return (Group(scope, name), *(Group(scope, f"{name}.{number}") for number in range(2, _LIVES + 1)))


def _standing(stream: str, candidates: Sequence[Group]) -> Steps[list[Group]]:
    subscribers = yield from ask(calls.list_holds(stream))
    return [group for group in candidates if group.subscriber in subscribers]


def _check_held(cut: StreamCut, head: StreamCut) -> Steps[None]:
    yield from cuts.check({"hold's": cut}, head)
    pieces = yield from pieces_between(cut, (yield from cuts.tail(cut.stream)), head)
    if any(piece.loss is not None for piece in pieces):
        raise trimmed(cut.stream, pieces)


def _make(group: Group, cut: StreamCut) -> Steps[bool]:
    """Make a hold; False: a stream of this name that is gone has left one, which nobody can remove."""
    try:
        made = yield from ask(calls.create_hold(group, cut.offsets, cut.stream))
        if made.group_id == group.group_id:
            yield from ask(calls.move_hold(made, cut.stream, cut.offsets))
            return True
    except StreamsError:
        yield from _undo(group)
        raise
    if cut.stream not in made.streams:
        raise InvalidRequest(
            f"{cut.stream}: the hold {group.name!r} was not made: a reader group of this name is there already"
        )
    return False


def _undo(group: Group) -> Steps[None]:
    """Remove what was made, if it was; that it was not made is the error to tell, whatever happens here."""
    with contextlib.suppress(StreamsError):
        found = yield from ask(calls.find_hold(group))
        if found.group_id == group.group_id:
            yield from ask(calls.delete_hold(found))
