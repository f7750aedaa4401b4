"""Retention holds: reader groups without readers, whose cut a stream's retention respects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from airflow_provider_streams.errors import InvalidName, InvalidRequest, SourceNotFound
from airflow_provider_streams.systems.pravega import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.calls.call import Call, Failure, check, done, missing, stream_name


class Group(NamedTuple):
    """A reader group that holds retention; no reader joins it."""

    scope: str
    name: str
    group_id: str = ""
    generation: int = 0
    streams: tuple[str, ...] = ()
    """Those it was made for."""

    @property
    def subscriber(self) -> str:
        """Its name among a stream's subscribers."""
        return f"{self.scope}/{self.name}"


def create_hold(group: Group, cut: Mapping[int, int], stream: str) -> Call[Group]:
    """Make a reader group without readers whose cut the stream's retention respects; it starts at `cut`.

    Where a group of this name is there already, nothing is made, and the answer is that one: compare their ids. The
    controller takes any cut, and never answers about a stream that is missing.
    """
    settings = pb.GroupSettings(
        scope=group.scope,
        name=group.name,
        group_id=group.group_id or str(UUID(int=0)),
        generation=group.generation,
        refresh_ms=3000,
        checkpoint_ms=-1,
        outstanding_checkpoints=3,
        retention=1,
        start=[pb.CutMessage(stream=stream_name(stream), offsets=cut)],
        end=[pb.CutMessage(stream=stream_name(stream))],
    )
    refused: dict[int, Failure] = {
        2: lambda: SourceNotFound(f"scope {group.scope}"),
        3: lambda: InvalidName(group.name, "a hold has letters, digits, '.' and '-'"),
    }
    parse = _group("make the hold", group, refused)
    return Call("createReaderGroup", stream, settings, pb.CreatedGroup, parse, repeatable=False)


def find_hold(group: Group) -> Call[Group]:
    """A reader group by its scope and name.

    Raises:
        SourceNotFound: there is none.
    """
    message = pb.GroupKey(scope=group.scope, name=group.name)
    refused: dict[int, Failure] = {2: lambda: SourceNotFound(f"hold {group.subscriber}")}
    parse = _group("find the hold", group, refused)
    return Call("getReaderGroupConfig", group.subscriber, message, pb.GroupAnswer, parse)


def move_hold(group: Group, stream: str, cut: Mapping[int, int]) -> Call[bool]:
    """Let retention truncate everything before a cut; False: the hold stands further already, in some segment.

    The controller takes any other cut, beyond the tail, too: then it truncates what nobody has read.
    """
    message = pb.SubscriberCut(
        subscriber=group.subscriber,
        generation=group.generation,
        group_id=group.group_id,
        cut=pb.CutMessage(stream=stream_name(stream), offsets=cut),
    )

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {
            2: lambda: SourceNotFound(stream),
            3: lambda: SourceNotFound(f"hold {group.subscriber} on {stream}"),
            5: lambda: InvalidRequest(f"hold {group.subscriber} was changed meanwhile: look it up again"),
        }
        return done("move the hold", answer.status, refused, stream, already=4)

    return Call("updateSubscriberStreamCut", stream, message, pb.StatusAnswer, parse)


def delete_hold(group: Group) -> Call[bool]:
    """Release a hold; False: it was not there."""
    message = pb.GroupKey(scope=group.scope, name=group.name, group_id=group.group_id, generation=group.generation)

    def parse(answer: pb.StatusAnswer) -> bool:
        return done("release the hold", answer.status, {}, group.subscriber, already=2)

    return Call("deleteReaderGroup", group.subscriber, message, pb.StatusAnswer, parse)


def list_holds(stream: str) -> Call[tuple[str, ...]]:
    """The subscribers (`scope/group`) that a stream's retention respects.

    Raises:
        SourceNotFound: there is no such stream.
    """

    def parse(answer: pb.Subscribers) -> tuple[str, ...]:
        check("list the holds", answer.status, missing(stream, 2), stream)
        return tuple(answer.names)

    return Call("listSubscribers", stream, stream_name(stream), pb.Subscribers, parse)


def _group(
    action: str, group: Group, refused: Mapping[int, Failure]
) -> Callable[[pb.GroupAnswer | pb.CreatedGroup], Group]:
    def parse(answer: pb.GroupAnswer | pb.CreatedGroup) -> Group:
        check(action, answer.status, refused, group.subscriber)
        found = answer.settings
        streams = (f"{cut.stream.scope}/{cut.stream.stream}" for cut in found.start)
        return Group(group.scope, group.name, found.group_id, found.generation, tuple(streams))

    return parse
