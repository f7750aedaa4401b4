"""Retention holds: a subscriber without a reader. The stream's retention truncates nothing after its cut.

If a stream's policy has a maximum, retention may still truncate beyond a hold: it is a wish, not a lock. Pravega
ignores a subscriber that has never told its place, so a hold is moved to its cut as soon as it is made. Pravega accepts
any cut and truncates up to it, so the rules here check the cut.

Rules about one stream raise `SourceNotFound` if there is no such stream or scope.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound, StreamsError
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.hold import Hold, HoldRequest
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.pravega.client.controller import hold_calls
from airflow_provider_streams.systems.pravega.client.controller.hold_calls import Group
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps, chosen
from airflow_provider_streams.systems.pravega.metadata.queries import streams_of
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut, by_stream
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.planning.segment_ranges import pieces_between, trimmed
from airflow_provider_streams.systems.pravega.source import PravegaSource, pravega_source

_NAME = re.compile(r"[A-Za-z0-9.-]{1,235}")
_OTHER = re.compile(r"[^A-Za-z0-9.-]")
_SHOWN, _DIGITS = 200, 10
_LIVES = 9


def name_for(reader: str, stream: str) -> str:
    """The name of a reader's hold on a stream: `dag_id.task_id` becomes `dag-id.task-id.<digest of both>`.

    Holds are named by scope, with fewer letters than readers have. The digest separates readers that look alike, and
    the holds of one reader on several streams.
    """
    digest = hashlib.sha256(f"{stream}\n{reader}".encode()).hexdigest()[:_DIGITS]
    return f"{_OTHER.sub('-', reader)[:_SHOWN]}.{digest}"


def place_request(request: HoldRequest) -> Steps[dict[str, Any]]:
    """Place an operator's hold on each stream of its source, see `place`; `InvalidRequest` if it starts at a time."""
    source = pravega_source(request.source)
    if request.since is not None and request.cut is None:
        raise InvalidRequest(f"{source}: a hold starts at a cut: events of Pravega carry no time to find one by")
    parts = by_stream(request.cut or Cut({}))
    streams = yield from streams_of(source)
    made = yield from chosen(streams, lambda one: place(one, name_for(request.name, one), _part(one, parts)))
    shown = request.cut if made else None
    return {"hold": _shown(source, request.name), "placed": made, "cut": shown.to_json() if shown else None}


def move_request(request: HoldRequest) -> Steps[dict[str, Any]]:
    """Move an operator's hold on each stream of its source; see `move`. Place it on new streams.

    Raises:
        SourceNotFound: there is no such hold on any of them.
    """
    source = pravega_source(request.source)
    name = _shown(source, request.name)
    if request.cut is None:
        return {"hold": name, "moved": [], "reason": "the last covered window ends at a time, and no cut is known"}
    parts, moved = by_stream(request.cut), []
    streams = yield from streams_of(source)
    held = yield from chosen(streams, lambda one: _is_held(one, request.name))
    if not held and not source.is_one:
        raise SourceNotFound(f"hold {name} on {source}")
    for stream in streams:
        own, cut = name_for(request.name, stream), _part(stream, parts)
        if stream not in held and not source.is_one:
            yield from place(stream, own, cut)
        elif cut is not None and (yield from move(stream, own, cut)):
            moved.append(stream)
    return {"hold": name, "moved": moved, "cut": request.cut.to_json()}


def _is_held(stream: str, reader: str) -> Steps[bool]:
    return is_held((yield from hold_calls.list_holds(stream)), stream, reader)


def release_named(source: Source, name: str) -> Steps[dict[str, Any]]:
    """Release an operator's hold on each stream that the source is now; see `release`."""
    asked = pravega_source(source)
    streams: tuple[str, ...] = ()
    with contextlib.suppress(SourceNotFound):
        streams = yield from streams_of(asked)
    released = yield from chosen(streams, lambda one: release(one, name_for(name, one)))
    return {"hold": _shown(asked, name), "released": released}


def holds(source: Source, readers: Iterable[str]) -> Steps[tuple[Hold, ...]]:
    """Every subscriber of a source's streams, with the reader whose name it has."""
    readers, found = tuple(readers), []
    for stream in (yield from streams_of(pravega_source(source))):
        for name in (yield from hold_calls.list_holds(stream)):
            reader = next((reader for reader in readers if is_held({name}, stream, reader)), None)
            found.append(Hold(name, reader))
    return tuple(found)


def _shown(source: PravegaSource, name: str) -> str:
    """The name of the hold on one stream; for several streams, which have one each, the given name."""
    return name_for(name, source.stream) if source.is_one else name


def _part(stream: str, parts: Mapping[str, Cut]) -> StreamCut | None:
    return StreamCut.from_model(stream, parts[stream]) if stream in parts else None


def place(stream: str, name: str, cut: StreamCut | None = None) -> Steps[bool]:
    """Hold a stream from a cut (None: the head) on; False: the hold exists already, and stays where it is.

    The name is unique in the scope. Nothing is left when it fails.

    Raises:
        InvalidRequest: not a name, the name of a reader group, or no cut of this stream up to its tail.
        StartTrimmed: retention has passed the cut.
    """
    candidates = _candidates(stream, name)
    head = yield from cuts.head(stream)
    if cut is not None:
        yield from _check_held(cut, head)
    standing = yield from _standing(stream, candidates)
    if standing:
        # its maker may have died before it had a place; a hold that is further on does not move back
        found = yield from hold_calls.find_hold(standing[0])
        yield from hold_calls.move_hold(found, stream, head.offsets)
        return False
    for candidate in candidates:
        if (yield from _make(candidate._replace(group_id=str(uuid4())), cut or head)):
            return True
    raise InvalidRequest(f"{stream}: the hold {name!r} was made for too many earlier streams of this name")


def move(stream: str, name: str, cut: StreamCut) -> Steps[bool]:
    """Let retention truncate up to a cut; False: the hold is further on already, and does not move back.

    Raises:
        InvalidRequest: no cut of this stream up to its tail.
        SourceNotFound: there is no such hold.
    """
    candidates = _candidates(stream, name)
    yield from cuts.check({"hold's": cut}, (yield from cuts.head(stream)))
    standing = yield from _standing(stream, candidates)
    if not standing:
        raise SourceNotFound(f"hold {name} on {stream}")
    found = yield from hold_calls.find_hold(standing[0])
    return (yield from hold_calls.move_hold(found, stream, cut.offsets))


def release(stream: str, name: str) -> Steps[bool]:
    """Remove a hold, but no reader group of another stream; False: there was none.

    Do it before the stream is deleted: Pravega cannot afterwards.
    """
    try:
        standing = yield from _standing(stream, _candidates(stream, name))
    except SourceNotFound:
        return False
    for group in standing:
        yield from hold_calls.delete_hold((yield from hold_calls.find_hold(group)))
    return bool(standing)


def is_held(subscribers: Collection[str], stream: str, reader: str) -> bool:
    """Whether a reader's hold is among a stream's subscribers."""
    return any(group.subscriber in subscribers for group in _candidates(stream, name_for(reader, stream)))


def _candidates(stream: str, name: str) -> tuple[Group, ...]:
    """The names that a hold can have. Holds on deleted streams of this name may still have the first ones."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"a hold's name has letters, digits, '.' and '-', got {name!r}")
    scope = stream.partition("/")[0]
    return (Group(scope, name), *(Group(scope, f"{name}.{number}") for number in range(2, _LIVES + 1)))


def _standing(stream: str, candidates: Sequence[Group]) -> Steps[list[Group]]:
    subscribers = yield from hold_calls.list_holds(stream)
    return [group for group in candidates if group.subscriber in subscribers]


def _check_held(cut: StreamCut, head: StreamCut) -> Steps[None]:
    yield from cuts.check({"hold's": cut}, head)
    pieces = yield from pieces_between(cut, (yield from cuts.tail(cut.stream)), head)
    if any(piece.loss is not None for piece in pieces):
        raise trimmed(cut.stream, pieces)


def _make(group: Group, cut: StreamCut) -> Steps[bool]:
    """Make a hold; False: a deleted stream of this name has left one, which cannot be removed."""
    try:
        made = yield from hold_calls.create_hold(group, cut.offsets, cut.stream)
        if made.group_id == group.group_id:
            yield from hold_calls.move_hold(made, cut.stream, cut.offsets)
            return True
    except StreamsError:
        with contextlib.suppress(StreamsError):  # the first error is the one to raise
            found = yield from hold_calls.find_hold(group)
            if found.group_id == group.group_id:
                yield from hold_calls.delete_hold(found)
        raise
    if cut.stream not in made.streams:
        raise InvalidRequest(
            f"{cut.stream}: the hold {group.name!r} was not made: a reader group of this name is there already"
        )
    return False
