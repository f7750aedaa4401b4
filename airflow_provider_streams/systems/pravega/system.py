"""Pravega as a `StreamSystem`: the one class that the rest of the package sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from airflow_provider_streams.errors import (
    EventsLost,
    InvalidRequest,
    InvalidSchema,
    NotAuthorized,
    SourceNotFound,
    SourceReplaced,
)
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.plan.plan import OnLoss, Plan, PlanRequest, Span, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.schema.change_payload import ChangePayload
from airflow_provider_streams.model.schema.event_time_field import checked
from airflow_provider_streams.model.schema.payload import Registry
from airflow_provider_streams.model.stream.cut import Cut, union
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.stream.tail_observation import Incarnation, TailObservation
from airflow_provider_streams.systems.base import Recorded
from airflow_provider_streams.systems.change_sampling import with_changes
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps, infos
from airflow_provider_streams.systems.pravega.metadata import incarnation as origin
from airflow_provider_streams.systems.pravega.metadata.queries import streams_of
from airflow_provider_streams.systems.pravega.metadata.segment_bounds import SegmentInfo
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment, stream_of
from airflow_provider_streams.systems.pravega.metadata.stream_cut import (
    UNBOUNDED,
    StreamCut,
    by_stream,
    follows,
    offsets_from_json,
)
from airflow_provider_streams.systems.pravega.planning import (
    cuts,
    event_time,
    multi_stream_plan,
    planner,
    retention_horizon,
    routing_keys,
)
from airflow_provider_streams.systems.pravega.schema_registry.schemas import group_of, registry_of, schemas_of
from airflow_provider_streams.systems.pravega.source import PravegaSource, pravega_source
from airflow_provider_streams.systems.pravega.spark_options import source_from_options
from airflow_provider_streams.systems.schemas import Versions, known_of, types_of

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_streams.model.schema.decoding import Decoding
    from airflow_provider_streams.systems.pravega.client.stream_client import Client
    from airflow_provider_streams.systems.pravega.reading.reader import PravegaSplitReader

T = TypeVar("T")


class PravegaSystem:
    """A Pravega cluster. Connects when used; not for several threads."""

    name: ClassVar[str] = "pravega"

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._client: Client | None = None

    def __repr__(self) -> str:
        return f"PravegaSystem({self.endpoint.controller})"

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See `StreamSystem`."""
        return cls(Endpoint.from_options(options))

    @property
    def client(self) -> Client:
        """Asks the controller and the segment stores; `MissingDependency` without grpcio."""
        if self._client is None:
            from airflow_provider_streams.systems.pravega.client.stream_client import Client  # noqa: PLC0415 - gRPC when used

            self._client = Client(self.endpoint)
        return self._client

    def source(self, options: Mapping[str, str]) -> PravegaSource:
        """See `source_from_options`."""
        return source_from_options(options, self.endpoint.scope)

    def singles(self, source: Source) -> tuple[PravegaSource, ...]:
        """See `FanningOut`."""
        asked = pravega_source(source)
        return tuple(asked.only(stream) for stream in self._streams(asked))

    def parse_cut(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """`earliest`, `latest`, a stream cut as text, or offsets by segment.

        `unbounded` is a cut without segments: planning finds the head or the tail. Segments in a mapping, or in JSON,
        have full names, or for one stream `<number>.#epoch.<epoch>`.
        """
        asked = pravega_source(source)
        if not isinstance(text, str):
            return _named(asked, text)
        word = text.strip().lower()
        if word == UNBOUNDED.lower():
            return Cut({})
        if word in _MOMENTS:
            return self._at(asked, _MOMENTS[word])
        if text.lstrip().startswith("{"):
            return _named(asked, offsets_from_json(str(asked), text))
        cut = StreamCut.from_text(text)
        if cut.stream != asked.stream:
            raise InvalidRequest(f"this is a cut of {cut.stream}, not of {asked}")
        if not cut.offsets:
            raise InvalidRequest(f"the cut of {asked} names no segment: the tail of a sealed stream; write 'latest'")
        return cut.to_model()

    def tail(self, source: Source) -> Cut:
        """See `cuts.tail`."""
        return self._at(pravega_source(source), cuts.tail)

    def _at(self, source: PravegaSource, rule: Callable[[str], Steps[StreamCut]]) -> Cut:
        return union(
            cut.to_model() for cut in self._of_all(source, lambda stream: self.client.run(rule(stream))).values()
        )

    def _streams(self, source: PravegaSource) -> tuple[str, ...]:
        return source.streams if source.is_one else self.client.run(streams_of(source))

    def _of_all(self, source: PravegaSource, ask: Callable[[str], T]) -> dict[str, T]:
        """The answer of each stream of a source; `SourceNotFound` if a named one does not exist, or none does."""
        found = self._each(self._streams(source), ask, needed=source.streams)
        if not found:
            raise SourceNotFound(f"a stream of {source}")
        return found

    def _each(self, streams: Sequence[str], ask: Callable[[str], T], *, needed: Collection[str]) -> dict[str, T]:
        """The answer of each stream, some asked side by side; raises the first failure.

        Streams that do not exist are left out, unless they are needed.
        """

        def asked(stream: str) -> tuple[T, ...]:
            try:
                return (ask(stream),)
            except SourceNotFound:  # perhaps only its watermarks are missing
                if stream in needed or self.client.call(stream_calls.stream_exists(stream)):
                    raise
                return ()

        if len(streams) <= 1:
            return {stream: one for stream in streams for one in asked(stream)}
        self.client  # noqa: B018 - made by one thread
        with ThreadPoolExecutor(min(len(streams), _AT_ONCE), "pravega") as threads:
            return {
                stream: one for stream, found in zip(streams, threads.map(asked, streams), strict=True) for one in found
            }

    def go_on(self, earlier: Cut, tail: Cut) -> Cut | None:
        """See `stream_cut.follows`; `NotAuthorized` if the user may not read a missing stream any more."""
        before, after = by_stream(earlier), by_stream(tail)
        self._refuse_hidden(before.keys() - after.keys())
        if before and not after:
            return None
        return tail if all(follows(before[name], cut) for name, cut in after.items() if name in before) else None

    def _refuse_hidden(self, unlisted: Iterable[str]) -> None:
        multi_stream_plan.refuse_hidden("the recorded cut before", self._hidden(unlisted), _RECORD_ANEW)

    def horizon(self, source: Source, recorded: Recorded | None = None) -> datetime | None:
        """See `retention_horizon.History`: recorded cuts tell it, as events carry no time."""
        history = retention_horizon.History(recorded() if recorded else ())

        def held_since(stream: str) -> datetime | None:
            head = self.client.run(cuts.head(stream))
            return history.held_since(head, lambda life: self.client.run(origin.contradiction(life)) is None)

        found = self._of_all(pravega_source(source), held_since).values()
        return None if None in found else max(filter(None, found), default=None)

    def plan(self, request: PlanRequest) -> Plan:
        """See `planner.plan` and `multi_stream_plan`."""
        source = pravega_source(request.source)
        made = self._plan_of_one(request, source) if source.is_one else self._plan_of_several(request, source)
        made = replace(made, decoding=self._decoding(request, made.source.names))
        return checked(with_changes(self, made, request))

    def _plan_of_one(self, request: PlanRequest, source: PravegaSource) -> Plan:
        """The plan of a source that is one stream, which may have been deleted since it was seen."""
        try:
            return self._plan(request)
        except SourceNotFound:  # perhaps only its watermarks are missing
            is_users_word = request.basis == "cuts" and not request.tail_observations
            if is_users_word or self.client.call(stream_calls.stream_exists(source.stream)):
                raise
        return multi_stream_plan.join(request, source, {}, cluster=self.endpoint.cluster, now=datetime.now(UTC))

    def _plan_of_several(self, request: PlanRequest, source: PravegaSource) -> Plan:
        was_there, at_end = multi_stream_plan.was_there(request), multi_stream_plan.at_end(request)
        try:
            listed = self._streams(source)
        except SourceNotFound:
            if not was_there:
                raise
            listed = ()
        known = was_there | set(request.named_before)
        hidden = set() if source.streams else self._hidden(known - set(listed))
        if request.on_loss == "fail":
            multi_stream_plan.refuse_hidden(
                str(source), hidden, "to leave it out from now on, accept that with on_loss='record'"
            )
        streams = [one for one in at_end or listed if one not in hidden]
        multi_stream_plan.check_named(request, streams)
        plans = self._each(
            streams,
            lambda stream: self._plan(multi_stream_plan.of_stream(request, source, stream)),
            needed=set(source.streams) - was_there,
        )
        later = listed if not source.streams or at_end else ()  # a named stream need not exist
        made = multi_stream_plan.join(
            request, source, plans, later, hidden, cluster=self.endpoint.cluster, now=datetime.now(UTC)
        )
        if self._has_user and (shown := multi_stream_plan.listed_as(source, self.endpoint.username, listed)):
            made = replace(made, remarks=(shown, *made.remarks))
        return made

    def _hidden(self, unlisted: Iterable[str]) -> set[str]:
        """The unlisted streams that this user may not even ask about."""

        def is_hidden(stream: str) -> bool:
            try:
                self.client.call(stream_calls.stream_exists(stream))
            except NotAuthorized:
                return True
            return False

        # without credentials, streams are not hidden but refused
        return {stream for stream in unlisted if is_hidden(stream)} if self._has_user else set()

    @property
    def _has_user(self) -> bool:
        return self.endpoint.method != "none"

    def _plan(self, request: PlanRequest) -> Plan:
        """Of one stream."""
        source, cluster, run = pravega_source(request.source), self.endpoint.cluster, self.client.run
        if request.basis == "event":
            resolved = event_time.resolve(request, self.client)
            made = run(planner.plan(resolved.request, stream=source.stream, cluster=cluster))
            made = event_time.finish(resolved, made, self.client)
        else:
            made = run(planner.plan(request, stream=source.stream, cluster=cluster))
        return run(routing_keys.narrowed(made, source.stream, source.selection))

    def schemas(self, source: Source) -> Versions:
        """See `SchemaKeeper`: of the groups of a source's registry.

        Raises:
            InvalidRequest: the source has none, or nothing says where it is.
        """
        asked = pravega_source(source)
        return self._schemas(registry_of(asked), self._streams(asked))

    def _schemas(self, registry: Registry, streams: Iterable[str]) -> Versions:
        from airflow_provider_streams.systems.pravega.schema_registry.client import RegistryClient  # noqa: PLC0415 - httpx

        endpoint = self.endpoint.registry
        if endpoint is None:
            raise InvalidRequest("the option registry_url is missing: where the Schema Registry of the events is")
        with RegistryClient(endpoint) as client:
            return client.ask(schemas_of(registry, streams))

    def _decoding(self, request: PlanRequest, streams: Iterable[str]) -> Decoding | None:
        """How events become columns; None: they do not. The registry is asked after the plan has its end."""
        source = pravega_source(request.source)
        value = source.value
        if value is None or isinstance(value, ChangePayload) or not request.with_schemas:
            return None
        if not isinstance(value, Registry):
            return decoding_of(value, None, {})
        found = self._schemas(value, streams)
        if lacking := [stream for stream, versions in found.items() if not versions]:
            group = str(group_of(value, lacking[0]))
            raise InvalidSchema(f"group {group}", "it holds no schema yet", "Its first writer registers one.")
        types = types_of(found, value)
        return decoding_of(value, None, known_of(found, types), "header", types)

    def observe_tail(self, source: Source) -> TailObservation:
        """See `incarnation.observe_tail`."""
        found = self._of_all(pravega_source(source), lambda stream: self.client.run(origin.observe_tail(stream)))
        tail = union(cut.to_model() for cut, _ in found.values())
        empty = frozenset(shard for shard, end in tail.items() if end == Position.of(0))
        facts = tuple(fact for _, life in found.values() for fact in life)
        return TailObservation(datetime.now(UTC), tail, facts, empty)

    def incarnation(self, source: Source) -> Incarnation:
        """See `incarnation.observe_tail`."""
        return self.observe_tail(source).incarnation

    def other_incarnation(self, source: Source, incarnation: Incarnation) -> SourceReplaced | None:  # noqa: ARG002 - it names segments
        """See `incarnation.contradiction`; `NotAuthorized` if the user may not read one of the streams any more."""
        try:
            return self.client.run(origin.contradiction(incarnation))
        except NotAuthorized:
            self._refuse_hidden({stream_of(shard) for shard, _ in incarnation})
            raise

    def check_origin(self, plan: Plan) -> None:
        """See `incarnation.check`."""
        self.client.run(origin.check(plan.source))

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """See `columns.COLUMNS`."""
        from airflow_provider_streams.systems.pravega.reading.columns import schema  # noqa: PLC0415 - Arrow when used

        return schema(columns)

    def read(
        self,
        plan: Plan,
        split: Split,
        columns: Sequence[str] | None = None,
        *,
        on_loss: OnLoss = "fail",  # noqa: ARG002 - what is lost becomes a gap; `explain` accepts it, or does not
    ) -> PravegaSplitReader:
        """A reader of one split, on connections of its own."""
        from airflow_provider_streams.systems.pravega.reading.reader import PravegaSplitReader  # noqa: PLC0415

        return PravegaSplitReader(self.client, split, columns, made=dict(plan.source.incarnation).get(split.shard, ""))

    def explain(self, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss) -> tuple[SplitReceipt, ...]:
        """The receipts with their gaps explained: every stored byte belongs to an event, so a gap is a loss.

        A gap whose bytes are still there stays a gap: then the read is wrong, and not the stream.

        Raises:
            EventsLost: bytes are gone, and `on_loss` is `fail`.
        """
        shards = {split.index: split.shard for split in plan.splits}
        return tuple(
            self._explained(shards[receipt.index], receipt, on_loss) if receipt.gaps else receipt
            for receipt in receipts
        )

    def _explained(self, shard: str, receipt: SplitReceipt, on_loss: OnLoss) -> SplitReceipt:
        segment = Segment.parse(shard)
        info = self.client.run(infos(segment.stream, [segment.id])).get(segment.id)
        causes: Counter[str] = Counter()
        for gap in receipt.gaps:
            cause = _cause(gap, info)
            if cause and on_loss == "fail":
                raise EventsLost(shard, gap.first, gap.end, f"{gap.entries} bytes", cause)
            causes["lost"] += gap.entries if cause else 0
        return receipt.explain(causes, tuple(gap for gap in receipt.gaps if not _cause(gap, info)))

    def close(self) -> None:
        """Close what was opened."""
        if self._client is not None:
            self._client.close()


_RECORD_ANEW = "to leave it out from now on, record the next cut with `airflow streams cuts record .. --start-over`"
_AT_ONCE = 8
"""The streams that are asked at the same time."""
_MOMENTS: dict[str, Callable[[str], Steps[StreamCut]]] = {"earliest": cuts.head, "latest": cuts.tail}


def _named(source: PravegaSource, offsets: Mapping[str, object]) -> Cut:
    """A cut of offsets by segment, as a user gave them."""
    parts: dict[str, dict[str, object]] = {source.stream: {}} if source.is_one else {}
    for name, offset in offsets.items():
        stream = source.stream if source.is_one else stream_of(name)
        parts.setdefault(stream, {})[name] = offset
    named = [StreamCut.from_mapping(stream, part) for stream, part in parts.items()]
    if not named or not all(cut.offsets for cut in named):
        raise InvalidRequest(f"a cut of {source} names no segment; write 'earliest' or 'latest'")
    if strange := [cut.stream for cut in named if not source.may_have(cut.stream)]:
        raise InvalidRequest(f"a cut of {source} names a segment of another stream, {strange[0]}")
    return union(cut.to_model() for cut in named)


def _cause(gap: Span, info: SegmentInfo | None) -> str:
    """Why a gap's bytes cannot be read; empty: they can."""
    if info is None:
        return "the segment is gone: the stream was truncated or deleted"
    if info.start_offset > gap.first:
        return f"the stream was truncated: the segment now starts at {info.start_offset}"
    if info.write_offset < gap.end:
        return f"the segment now ends at {info.write_offset}: the stream was deleted and made again"
    return ""
