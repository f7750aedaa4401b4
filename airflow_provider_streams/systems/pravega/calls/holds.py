"""Retention holds: reader groups without readers, whose cut a stream's retention respects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound
from airflow_provider_streams.systems.pravega import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.calls.call import Call, Failure, done, stream_name


class Group(NamedTuple):
    """A reader group that holds retention; no reader joins it."""

    scope: str
    name: str
    group_id: str
    generation: int

    @property
    def subscriber(self) -> str:
        """Its name among a stream's subscribers."""
        return f"{self.scope}/{self.name}"


def create_hold(group: Group, cut: Mapping[int, int], stream: str) -> Call[Group]:
    """Make a reader group without readers whose cut the stream's retention respects; it starts at `cut`."""
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
    return Call("createReaderGroup", stream, settings, pb.GroupAnswer, _group("make the hold", group), repeatable=False)


def find_hold(group: Group) -> Call[Group]:
    """A reader group by its scope and name.

    Raises:
        SourceNotFound: there is none.
    """
    message = pb.GroupKey(scope=group.scope, name=group.name)
    return Call("getReaderGroupConfig", group.subscriber, message, pb.GroupAnswer, _group("find the hold", group))


def move_hold(group: Group, stream: str, cut: Mapping[int, int]) -> Call[bool]:
    """Let retention truncate everything before a cut; False: the hold stands behind it already."""
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
    """The subscribers (`scope/group`) that a stream's retention respects."""
    return Call("listSubscribers", stream, stream_name(stream), pb.Subscribers, lambda a: tuple(a.names))


def _group(action: str, group: Group) -> Callable[[pb.GroupAnswer], Group]:
    def parse(answer: pb.GroupAnswer) -> Group:
        refused: dict[int, Failure] = {2: lambda: SourceNotFound(f"hold {group.subscriber}")}
        done(action, answer.status, refused, group.subscriber)
        found = answer.settings  # the answer of a creation leaves the id out
        return Group(group.scope, group.name, found.group_id or group.group_id, found.generation)

    return parse
