"""Pravega as a DAG asks and administers it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_streams.hooks.pravega_connection import PravegaConnection, lazy
from airflow_provider_streams.hooks.schema_registry import SchemaRegistryHook
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.operations.stream_settings import IfExists, StreamSettings
from airflow_provider_streams.systems.pravega.schema_registry import schemas as registry_questions
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.schemas import SchemaAvailable

if TYPE_CHECKING:
    from airflow_provider_streams.model.stream.hold import Hold, HoldRequest
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.model.window.basis import CutText
    from airflow_provider_streams.model.window.readiness import Readiness
    from airflow_provider_streams.systems.conditions import Condition
    from airflow_provider_streams.systems.pravega.client.controller import stream_calls
    from airflow_provider_streams.systems.pravega.client.controller.call import KeyedSegment
    from airflow_provider_streams.systems.pravega.client.stream_configuration import Settings
    from airflow_provider_streams.systems.pravega.metadata import queries
    from airflow_provider_streams.systems.pravega.metadata.queries import StreamState, Unread
    from airflow_provider_streams.systems.pravega.operations import administration, hold, scaling
    from airflow_provider_streams.systems.pravega.operations.administration import Change, CreateResult, Truncated
    from airflow_provider_streams.systems.pravega.operations.conditions import PravegaCondition
    from airflow_provider_streams.systems.pravega.operations.scaling import Choice
    from airflow_provider_streams.systems.pravega.planning import cuts
    from airflow_provider_streams.systems.schemas import Check, Compatibility, OfferedSchema
else:  # gRPC when used
    stream_calls = lazy("client.controller.stream_calls")
    queries = lazy("metadata.queries")
    administration = lazy("operations.administration")
    hold = lazy("operations.hold")
    scaling = lazy("operations.scaling")
    cuts = lazy("planning.cuts")


class PravegaHook(PravegaConnection):
    """A connection to Pravega: what streams hold, and their administration.

    Host and port are the controller, the schema is the scope of streams named without one, login and password are
    those of the user; every setting of `client.endpoint.Endpoint` may be an extra. Streams are named
    `scope/stream`, or by their name alone where the connection has a scope. No question creates anything; a typo in
    a name is `SourceNotFound`.

    `run` and `arun` take any rule of `systems.pravega` (`metadata.queries`, `planning.cuts`,
    `operations.administration`, `operations.scaling`), and `call` and `acall` one call of `client.controller`.
    The named methods are the most common of them.

    Args:
        conn_id: the Airflow connection, of type `pravega`.
        options: settings that win over the connection's.
    """

    # Questions

    def scopes(self) -> tuple[str, ...]:
        """Every scope but Pravega's own; needs a permission of its own."""
        return self.run(queries.scopes())

    def streams(self, scope: str | None = None, *, tag: str = "") -> tuple[str, ...]:
        """Every `scope/stream` of a scope (default: the connection's), with a tag if one is given."""
        return self.run(queries.streams(self.scope(scope), tag))

    async def astreams(self, scope: str | None = None, *, tag: str = "") -> tuple[str, ...]:
        """As `streams`, for an event loop."""
        return await self.arun(queries.streams(await self.ascope(scope), tag))

    def exists(self, stream: str) -> bool:
        """Whether there is such a stream."""
        return self.call(stream_calls.stream_exists(self.stream(stream)))

    async def aexists(self, stream: str) -> bool:
        """As `exists`, for an event loop."""
        return await self.acall(stream_calls.stream_exists(await self.astream(stream)))

    def describe(self, stream: str) -> StreamState:
        """Settings, tags, head, tail and open segments of a stream."""
        return self.run(queries.describe(self.stream(stream)))

    async def adescribe(self, stream: str) -> StreamState:
        """As `describe`, for an event loop."""
        return await self.arun(queries.describe(await self.astream(stream)))

    def stream_settings(self, stream: str) -> Settings:
        """A stream's configuration: scaling, retention, tags."""
        return self.call(stream_calls.stream_settings(self.stream(stream)))

    def head(self, stream: str) -> Cut:
        """The cut at the first event still held."""
        return self.run(cuts.head(self.stream(stream))).to_model()

    def tail(self, stream: str) -> Cut:
        """A cut just after every event acknowledged before the call; of a sealed stream its end."""
        return self.run(cuts.tail(self.stream(stream))).to_model()

    async def ahead(self, stream: str) -> Cut:
        """As `head`, for an event loop."""
        return (await self.arun(cuts.head(await self.astream(stream)))).to_model()

    async def atail(self, stream: str) -> Cut:
        """As `tail`, for an event loop."""
        return (await self.arun(cuts.tail(await self.astream(stream)))).to_model()

    def source(self, stream: str) -> PravegaSource:
        """A stream as a source; without a scope, it is in the connection's."""
        return PravegaSource(stream if "/" in stream else self.stream(stream), conn_id=self.conn_id)

    def cut(self, stream: str, cut: CutText) -> Cut:
        """A cut from `earliest`, `latest`, the text of any Pravega client, or offsets by segment (also as JSON).

        Raises:
            InvalidRequest: none of these, or of another stream.
        """
        with closing(self.system()) as system:
            return system.parse_cut(self.source(stream), cut)

    def cut_text(self, stream: str, cut: Cut) -> str:
        """The text of a cut as every Pravega client takes it."""
        return StreamCut.from_model(self.stream(stream), cut).to_text()

    def unread(self, stream: str, start: Cut | None = None) -> Unread:
        """The stored bytes between a cut (None: the head) and the tail."""
        name = self.stream(stream)
        return self.run(queries.unread(name, _stream_cut(name, start)))

    async def aunread(self, stream: str, start: Cut | None = None) -> Unread:
        """As `unread`, for an event loop."""
        name = await self.astream(stream)
        return await self.arun(queries.unread(name, _stream_cut(name, start)))

    def check(self, source: Source, condition: Condition) -> Readiness:
        """As `StreamHook`."""
        named = self.own(source)
        if isinstance(condition, SchemaAvailable):
            with closing(self.registry(named)) as registry:
                asked = registry_questions.registry_of(named)
                return registry.ask(registry_questions.available(asked, self._streams(named), condition))
        return self.run(cast("PravegaCondition", condition).rule(named.stream))

    async def acheck(self, source: Source, condition: Condition) -> Readiness:
        """As `StreamHook`; the channel to the controller belongs to the loop that asks first."""
        named = self.own(source)
        if isinstance(condition, SchemaAvailable):
            registry, asked = self.registry(named), registry_questions.registry_of(named)
            try:
                streams = named.streams or await self.arun(queries.streams_of(named))
                return await registry.aask(registry_questions.available(asked, streams, condition))
            finally:
                await registry.aclose()
        return await self.arun(cast("PravegaCondition", condition).rule(named.stream))

    # Schemas

    def registry(self, source: PravegaSource) -> SchemaRegistryHook:
        """The registry that has the schemas of a source; close it.

        Raises:
            InvalidRequest: the source names none.
        """
        return SchemaRegistryHook(registry_questions.registry_of(source).conn_id)

    def check_schema(
        self, source: Source, offered: OfferedSchema, check: Check = "write", policy: str | None = None
    ) -> Compatibility:
        """As `StreamHook`: by the group's policy, or another one of the registry's."""
        named = self.own(source)
        with closing(self.registry(named)) as registry:
            asked = registry_questions.registry_of(named)
            return registry.ask(registry_questions.fits_all(asked, self._streams(named), offered, check, policy))

    def _streams(self, source: PravegaSource) -> tuple[str, ...]:
        return source.streams or self.run(queries.streams_of(source))

    # Holds

    def place_hold(self, request: HoldRequest) -> dict[str, Any]:
        """As `StreamHook`: a subscriber without readers; it starts at a cut, by default at the head."""
        self.own(request.source)
        return self.run(hold.place_request(request))

    def move_hold(self, request: HoldRequest) -> dict[str, Any]:
        """As `StreamHook`."""
        self.own(request.source)
        return self.run(hold.move_request(request))

    def release_hold(self, source: Source, name: str, reader: str) -> dict[str, Any]:  # noqa: ARG002 - Pravega does not keep it
        """As `StreamHook`: a name is all that Pravega keeps of a hold."""
        return self.run(hold.release_named(self.own(source), name))

    def holds(self, source: Source, readers: Iterable[str] = ()) -> tuple[Hold, ...]:
        """As `StreamHook`: every subscriber, also those of others; Pravega does not say where one stands."""
        return self.run(hold.holds(self.own(source), readers))

    # Administration

    def create_scope(self, scope: str | None = None) -> bool:
        """Make a scope (default: the connection's); False: it was there."""
        return self.call(stream_calls.create_scope(self.scope(scope)))

    def create_stream(
        self,
        stream: str,
        change: Change | None = None,
        *,
        if_exists: IfExists = "keep",
        make_scope: bool = False,
        rescale: bool = False,
    ) -> CreateResult:
        """Make a stream; see `systems.pravega.operations.administration.create`.

        Args:
            stream: its name.
            change: `StreamSettings(..)` of `systems.pravega.operations.stream_settings`, or a function of the default
                settings (one segment, no retention).
            if_exists: keep it as it is, update its settings, or fail.
            make_scope: make its scope as well.
            rescale: an update may scale it to the number of segments that its fixed policy says.
        """
        name, change = self.stream(stream), change or StreamSettings()
        return self.run(
            administration.create(name, change, if_exists=if_exists, make_scope=make_scope, rescale=rescale)
        )

    def change_settings(self, stream: str, change: Change, *, rescale: bool = False) -> CreateResult:
        """Change a stream's settings; what the change leaves alone stays.

        Raises:
            InvalidRequest: the update would scale the stream, and `rescale` does not allow it.
        """
        return self.run(administration.change_settings(self.stream(stream), change, rescale=rescale))

    def set_tags(self, stream: str, tags: Iterable[str]) -> CreateResult:
        """Give a stream these tags, and no others."""
        return self.change_settings(stream, StreamSettings(tags=tuple(tags)))

    def truncate(self, stream: str, cut: Cut) -> Truncated:
        """Drop everything before a cut; nothing, if the stream starts there already."""
        name = self.stream(stream)
        return self.run(administration.truncate(name, StreamCut.from_model(name, cut)))

    def seal(self, stream: str) -> Cut:
        """End a stream for good; its end."""
        return self.run(administration.seal(self.stream(stream))).to_model()

    def delete_stream(self, stream: str) -> bool:
        """Remove a sealed stream; False: it was not there."""
        return self.call(stream_calls.delete_stream(self.stream(stream)))

    def scale(self, stream: str, choose: Choice) -> tuple[KeyedSegment, ...]:
        """Scale a stream and wait for the end; its open segments afterwards.

        Args:
            stream: its name.
            choose: `to_count(n)`, `split(segment)` or `merge(segments)` of `systems.pravega.operations.scaling`.
        """
        return self.run(scaling.scale(self.stream(stream), choose))


def _stream_cut(stream: str, cut: Cut | None) -> StreamCut | None:
    return None if cut is None else StreamCut.from_model(stream, cut)
