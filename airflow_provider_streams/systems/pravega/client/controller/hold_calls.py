"""Retention holds: reader groups without readers. A stream's retention respects their cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from airflow_provider_streams.errors import InvalidName, InvalidRequest, SourceNotFound, StreamsError
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.client.controller.call import Call, change, check, stream_name


class Group(NamedTuple):
    """A reader group that holds retention; no reader joins it."""

    scope: str
    name: str
    group_id: str = ""
    generation: int = 0
    streams: tuple[str, ...] = ()
    """The streams that it was made for."""

    @property
    def subscriber(self) -> str:
        """Its name among a stream's subscribers."""
        return f"{self.scope}/{self.name}"


def create_hold(group: Group, cut: Mapping[int, int], stream: str) -> Call[Group]:
    """Make a reader group without readers at `cut`, which the stream's retention respects.

    If a group of this name exists already, the controller makes nothing and answers with that group: compare their
    ids. The controller accepts any cut, and never mentions that a stream is missing.
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
    refused = {
        2: SourceNotFound(f"scope {group.scope}"),
        3: InvalidName(group.name, "a hold has letters, digits, '.' and '-'"),
    }
    parse = _group("make the hold", group, refused)
    return Call("createReaderGroup", stream, settings, pb.CreatedGroup, parse, repeatable=False)


def find_hold(group: Group) -> Call[Group]:
    """A reader group by its scope and name; `SourceNotFound` if there is none."""
    message = pb.GroupKey(scope=group.scope, name=group.name)
    parse = _group("find the hold", group, {2: SourceNotFound(f"hold {group.subscriber}")})
    return Call("getReaderGroupConfig", group.subscriber, message, pb.GroupAnswer, parse)


def _group(
    action: str, group: Group, refused: Mapping[int, StreamsError]
) -> Callable[[pb.GroupAnswer | pb.CreatedGroup], Group]:
    def parse(answer: pb.GroupAnswer | pb.CreatedGroup) -> Group:
        check(action, answer.status, refused, group.subscriber)
        found = answer.settings
        streams = (f"{cut.stream.scope}/{cut.stream.stream}" for cut in found.start)
        return Group(group.scope, group.name, found.group_id, found.generation, tuple(streams))

    return parse


def move_hold(group: Group, stream: str, cut: Mapping[int, int]) -> Call[bool]:
    """Let retention truncate everything before a cut; False: in some segment the hold is further already.

    The controller accepts any other cut, even beyond the tail: then it truncates unread events.
    """
    message = pb.SubscriberCut(
        subscriber=group.subscriber,
        generation=group.generation,
        group_id=group.group_id,
        cut=pb.CutMessage(stream=stream_name(stream), offsets=cut),
    )
    refused = {
        2: SourceNotFound(stream),
        3: SourceNotFound(f"hold {group.subscriber} on {stream}"),
        5: InvalidRequest(f"hold {group.subscriber} was changed meanwhile: look it up again"),
    }
    return change("updateSubscriberStreamCut", "move the hold", stream, message, refused, unchanged=(4,))


def delete_hold(group: Group) -> Call[bool]:
    """Release a hold; False: there is none."""
    message = pb.GroupKey(scope=group.scope, name=group.name, group_id=group.group_id, generation=group.generation)
    return change("deleteReaderGroup", "release the hold", group.subscriber, message, unchanged=(2,))


def list_holds(stream: str) -> Call[tuple[str, ...]]:
    """The subscribers (`scope/group`) of a stream's retention; `SourceNotFound` if there is no such stream."""

    def parse(answer: pb.Subscribers) -> tuple[str, ...]:
        check("list the holds", answer.status, {2: SourceNotFound(stream)}, stream)
        return tuple(answer.names)

    return Call("listSubscribers", stream, stream_name(stream), pb.Subscribers, parse)
