"""Which scopes and streams there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.systems.pravega import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.calls.call import Call, check, stream_name, value

if TYPE_CHECKING:
    from google.protobuf.message import Message


class Page(NamedTuple):
    """Some names and where the next ones start; an empty page is the last one."""

    names: tuple[str, ...]
    token: str


def scope_exists(scope: str) -> Call[bool]:
    """Whether a scope exists."""
    return Call("checkScopeExists", scope, pb.ScopeKey(scope=scope), pb.BoolAnswer, value)


def stream_exists(stream: str) -> Call[bool]:
    """Whether a stream exists: the one test that can say no."""
    return Call("checkStreamExists", stream, stream_name(stream), pb.BoolAnswer, value)


def list_scopes(token: str = "") -> Call[Page]:
    """One page of scopes, `_system` among them, in any order; needs a permission of its own."""
    message = pb.ScopeQuery(page=pb.PageToken(token=token))
    return Call("listScopes", "/", message, pb.ScopePage, lambda a: Page(tuple(a.scopes), a.page.token))


def list_streams(scope: str, token: str = "", *, tag: str = "") -> Call[Page]:
    """One page of `scope/stream`, those that Pravega makes for itself among them.

    Raises:
        SourceNotFound: the scope does not exist.
    """
    key, page = pb.ScopeKey(scope=scope), pb.PageToken(token=token)
    if tag:
        message: Message = pb.TaggedStreamQuery(scope=key, tag=tag, page=page)
    else:
        message = pb.StreamQuery(scope=key, page=page)

    def parse(answer: pb.StreamPage) -> Page:
        check("list streams", answer.status, {2: lambda: SourceNotFound(f"scope {scope}")}, scope)
        return Page(tuple(f"{s.scope}/{s.stream}" for s in answer.streams), answer.page.token)

    return Call("listStreamsInScopeForTag" if tag else "listStreamsInScope", scope, message, pb.StreamPage, parse)
