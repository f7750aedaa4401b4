"""Retention holds: a subscriber without a reader, before whose cut the stream's retention truncates nothing.

Retention that a stream's policy bounds by a maximum may truncate beyond a hold: it is a wish, not a lock. Pravega
ignores a subscriber that has never said where it stands, so a hold is moved to its cut as soon as it is made.
"""

from __future__ import annotations

import re
from uuid import uuid4

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound
from airflow_provider_streams.systems.pravega import calls, cuts
from airflow_provider_streams.systems.pravega.calls import Group
from airflow_provider_streams.systems.pravega.steps import Steps, ask
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_NAME = re.compile(r"[A-Za-z0-9.-]{1,240}")
_OTHER = re.compile(r"[^A-Za-z0-9.-]")


def name_for(reader: str) -> str:
    """A name that a hold can have, from a reader's: `dag_id.task_id` becomes `dag-id.task-id`."""
    return _OTHER.sub("-", reader)


def place(stream: str, name: str, cut: StreamCut | None = None) -> Steps[bool]:
    """Hold a stream from a cut on; False: the hold is there already, and stays where it is.

    Args:
        stream: `scope/stream`.
        name: the hold's, unique in the scope.
        cut: None, or one that retention has passed: the head.

    Raises:
        InvalidRequest: not a name, or the name is taken by a reader group of another stream.
        SourceNotFound: no such stream or scope.
    """
    group = _group(stream, name)
    head = yield from cuts.head(stream)
    if group.subscriber in (yield from ask(calls.list_holds(stream))):
        # whoever made it may have died before it stood anywhere; one that stands further does not move back
        yield from move(stream, name, head)
        return False
    start = cut or head
    cuts.check_readable("hold's", start)
    yield from ask(calls.create_hold(group._replace(group_id=str(uuid4())), start.offsets, stream))
    if group.subscriber not in (yield from ask(calls.list_holds(stream))):
        raise InvalidRequest(f"{stream}: the hold {name!r} was not made: another reader group has this name")
    yield from move(stream, name, start)
    return True


def move(stream: str, name: str, cut: StreamCut) -> Steps[bool]:
    """Let retention truncate up to a cut; False: the hold stands further already, and does not move back.

    Raises:
        SourceNotFound: there is no such hold, or no such stream.
    """
    cuts.check_readable("hold's", cut)
    group = _group(stream, name)
    if group.subscriber not in (yield from ask(calls.list_holds(stream))):
        raise SourceNotFound(f"hold {name} on {stream}")
    found = yield from ask(calls.find_hold(group))
    return (yield from ask(calls.move_hold(found, stream, cut.offsets)))


def release(stream: str, name: str) -> Steps[bool]:
    """Remove a hold; False: it was not there. A reader group of another stream is not touched."""
    group = _group(stream, name)
    if group.subscriber not in (yield from ask(calls.list_holds(stream))):
        return False
    found = yield from ask(calls.find_hold(group))
    return (yield from ask(calls.delete_hold(found)))


def _group(stream: str, name: str) -> Group:
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"a hold's name has letters, digits, '.' and '-', got {name!r}")
    return Group(stream.partition("/")[0], name, "", 0)
