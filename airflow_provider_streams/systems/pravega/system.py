"""Pravega as a `StreamSystem`: the one class that the rest of the package sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from airflow_provider_streams.errors import EventsLost, InvalidRequest, InvalidSchema, OtherCluster, SourceNotFound
from airflow_provider_streams.formats.resolve import decoding_of
from airflow_provider_streams.model.cut import Cut, union
from airflow_provider_streams.model.event_field import checked
from airflow_provider_streams.model.payload import Registry
from airflow_provider_streams.model.plan import OnLoss, Plan, PlanRequest, Span, Split
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.model.sighting import Identity, Sighting
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.base import Recorded
from airflow_provider_streams.systems.pravega.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.registry.questions import registry_of, schemas_of
from airflow_provider_streams.systems.pravega.registry.schemas import group_of
from airflow_provider_streams.systems.pravega.shards import by_stream, stream_of
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.spark_options import source_from_options
from airflow_provider_streams.systems.pravega.stream_cut import UNBOUNDED, StreamCut, follows, offsets_from_json
from airflow_provider_streams.systems.schemas import Versions, known_of

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_streams.model.decoding import Decoding
    from airflow_provider_streams.systems.pravega.client import Client
    from airflow_provider_streams.systems.pravega.reader import PravegaSplitReader
    from airflow_provider_streams.systems.pravega.segment_infos import SegmentInfo

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
        """Asks the controller and the segment stores.

        Raises:
            MissingDependency: grpcio is not installed.
        """
        if self._client is None:
            from airflow_provider_streams.systems.pravega.client import Client  # noqa: PLC0415 - gRPC when used

            self._client = Client(self.endpoint)
        return self._client

    def source(self, options: Mapping[str, str]) -> PravegaSource:
        """See `options.source_from_options`."""
        return source_from_options(options, self.endpoint.scope)

    def singles(self, source: Source) -> tuple[PravegaSource, ...]:
        """See `FanningOut`."""
        asked = _pravega(source)
        return tuple(asked.only(stream) for stream in self._streams(asked))

    def parse_cut(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """`earliest`, `latest`, a stream cut as text, or offsets by segment.

        `unbounded` is a cut without segments: as a start the head, as an end the tail, found when planning.
        Segments in a mapping, or in JSON, are full names, or of one stream `<number>.#epoch.<epoch>`.
        """
        asked = _pravega(source)
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
        """See `StreamSystem` and `cuts.tail`."""
        return self._at(_pravega(source), "tail")

    def _at(self, source: PravegaSource, moment: str) -> Cut:
        from airflow_provider_streams.systems.pravega import cuts  # noqa: PLC0415 - gRPC when used

        rule = cuts.head if moment == "head" else cuts.tail
        return union(self._of_all(source, lambda stream: self.client.run(rule(stream)).to_model()).values())

    def _streams(self, source: PravegaSource) -> tuple[str, ...]:
        from airflow_provider_streams.systems.pravega.selection import streams_of  # noqa: PLC0415 - gRPC when used

        return source.streams if source.is_one else self.client.run(streams_of(source))

    def _of_all(self, source: PravegaSource, ask: Callable[[str], T]) -> dict[str, T]:
        """What is found for each stream of a source.

        Raises:
            SourceNotFound: a stream that is named does not exist, or none does.
        """
        found = self._each(self._streams(source), ask, needed=source.streams)
        if not found:
            raise SourceNotFound(f"a stream of {source}")
        return found

    def _each(self, streams: Sequence[str], ask: Callable[[str], T], *, needed: Collection[str]) -> dict[str, T]:
        """What is found for each stream, some asked side by side; the first failure is raised.

        A stream that does not exist (any more) is left out, unless it is needed.
        """
        from airflow_provider_streams.systems.pravega import calls  # noqa: PLC0415 - gRPC when used

        def asked(stream: str) -> tuple[T, ...]:
            try:
                return (ask(stream),)
            except SourceNotFound:  # perhaps of something beside it, like its watermarks
                if stream in needed or self.client.call(calls.stream_exists(stream)):
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
        """See `StreamSystem` and `stream_cut.follows`; streams that only one of the two names came or went."""
        before, after = by_stream(earlier), by_stream(tail)
        if before and not after:
            return None
        return tail if all(follows(before[name], cut) for name, cut in after.items() if name in before) else None

    def horizon(self, source: Source, recorded: Recorded | None = None) -> datetime | None:
        """See `StreamSystem` and `horizon.History`: by recorded cuts, as events carry no time."""
        from airflow_provider_streams.systems.pravega import cuts, horizon, origin  # noqa: PLC0415 - gRPC when used

        asked = _pravega(source)
        history = horizon.History(recorded() if recorded else ())

        def held_since(stream: str) -> datetime | None:
            head = self.client.run(cuts.head(stream))
            return history.held_since(head, lambda life: self.client.run(origin.contradiction(life)) is None)

        found = self._of_all(asked, held_since).values()
        return None if None in found else max(filter(None, found), default=None)

    def plan(self, request: PlanRequest) -> Plan:
        """See `StreamSystem`, `planner.plan` and `several`."""
        from airflow_provider_streams.systems.pravega import several  # noqa: PLC0415 - gRPC when used

        source = _pravega(request.source)
        if source.is_one:
            made = self._plan(request)
            return checked(replace(made, decoding=self._decoding(request, made.source.names)))
        known = several.named(request)
        streams = several.at_end(request) or self._streams(source)
        several.check_named(request, streams)
        plans = self._each(
            streams,
            lambda stream: self._plan(several.of_stream(request, source, stream)),
            needed=set(source.streams) - known,
        )
        if not plans and (source.streams or not self._streams(source)):
            raise SourceNotFound(f"a stream of {source}")
        lost = several.gone(request, source, plans)
        made = several.join(request, source, plans, lost, cluster=self.endpoint.cluster, now=datetime.now(UTC))
        return checked(replace(made, decoding=self._decoding(request, made.source.names)))

    def _plan(self, request: PlanRequest) -> Plan:
        """Of one stream."""
        from airflow_provider_streams.systems.pravega import routing  # noqa: PLC0415 - gRPC when used

        source = _pravega(request.source)
        return self.client.run(routing.narrowed(self._whole(request), source.stream, source.selection))

    def _whole(self, request: PlanRequest) -> Plan:
        """Of one stream, whatever its routing keys."""
        from airflow_provider_streams.systems.pravega import event_time, planner  # noqa: PLC0415 - gRPC when used

        stream, cluster = _pravega(request.source).stream, self.endpoint.cluster
        if request.basis != "event":
            return self.client.run(planner.plan(request, stream=stream, cluster=cluster))
        resolved = event_time.resolve(request, self.client)
        made = self.client.run(planner.plan(resolved.request, stream=stream, cluster=cluster))
        return event_time.finish(resolved, made, self.client)

    def schemas(self, source: Source) -> Versions:
        """See `SchemaKeeper`: of the groups of a source's registry.

        Raises:
            InvalidRequest: the source has none, or nothing says where it is.
        """
        asked = _pravega(source)
        return self._schemas(registry_of(asked), [asked.stream] if asked.is_one else self._streams(asked))

    def _schemas(self, registry: Registry, streams: Iterable[str]) -> Versions:
        from airflow_provider_streams.systems.pravega.registry.client import RegistryClient  # noqa: PLC0415 - httpx

        endpoint = self.endpoint.registry
        if endpoint is None:
            raise InvalidRequest("the option registry_url is missing: where the Schema Registry of the events is")
        with RegistryClient(endpoint) as client:
            return client.ask(schemas_of(registry, streams))

    def _decoding(self, request: PlanRequest, streams: Iterable[str]) -> Decoding | None:
        """How events become columns; None: they do not. The registry is asked behind the end that the plan has."""
        source = _pravega(request.source)
        if source.value is None or not request.with_schemas:
            return None
        value = source.value
        if not isinstance(value, Registry):
            return decoding_of(value, None, {})
        found = self._schemas(value, streams)
        if lacking := [stream for stream, versions in found.items() if not versions]:
            group = str(group_of(value, lacking[0]))
            raise InvalidSchema(f"group {group}", "it holds no schema yet", "Its first writer registers one.")
        return decoding_of(value, None, known_of(found), "header")

    def look(self, source: Source) -> Sighting:
        """See `StreamSystem` and `origin.look`."""
        from airflow_provider_streams.systems.pravega import origin  # noqa: PLC0415 - gRPC when used

        asked = _pravega(source)
        found = self._of_all(asked, lambda stream: self.client.run(origin.look(stream)))
        tail = union(cut.to_model() for cut, _ in found.values())
        return Sighting(datetime.now(UTC), tail, tuple(fact for _, identity in found.values() for fact in identity))

    def identity(self, source: Source) -> Identity:
        """See `StreamSystem` and `origin.look`."""
        return self.look(source).identity

    def other_life(self, source: Source, identity: Identity) -> OtherCluster | None:  # noqa: ARG002 - it names segments
        """See `StreamSystem` and `origin.contradiction`."""
        from airflow_provider_streams.systems.pravega import origin  # noqa: PLC0415 - gRPC when used

        return self.client.run(origin.contradiction(identity))

    def check_origin(self, plan: Plan) -> None:
        """See `StreamSystem` and `origin.check`."""
        from airflow_provider_streams.systems.pravega import origin  # noqa: PLC0415 - gRPC when used

        self.client.run(origin.check(plan.source))

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """See `StreamSystem` and `columns.COLUMNS`."""
        from airflow_provider_streams.systems.pravega.columns import schema  # noqa: PLC0415 - Arrow when used

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
        from airflow_provider_streams.systems.pravega.reader import PravegaSplitReader  # noqa: PLC0415

        return PravegaSplitReader(self.client, split, columns, made=dict(plan.source.identity).get(split.shard, ""))

    def explain(self, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss) -> tuple[SplitReceipt, ...]:
        """The receipts with their gaps explained: every stored byte is an event's, so a gap can only be loss.

        A gap whose bytes are still there stays one: then the read is wrong, and not the stream.

        Raises:
            EventsLost: bytes are gone, and `on_loss` is `fail`.
        """
        shards = {split.index: split.shard for split in plan.splits}
        return tuple(
            self._explained(shards[receipt.index], receipt, on_loss) if receipt.gaps else receipt
            for receipt in receipts
        )

    def _explained(self, shard: str, receipt: SplitReceipt, on_loss: OnLoss) -> SplitReceipt:
        from airflow_provider_streams.systems.pravega.steps import infos  # noqa: PLC0415 - gRPC when used

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


_AT_ONCE = 8
"""So many streams are asked at the same time."""
_MOMENTS = {"earliest": "head", "latest": "tail"}


def _pravega(source: Source) -> PravegaSource:
    if not isinstance(source, PravegaSource):
        raise InvalidRequest(f"{source} is no Pravega stream")
    return source


def _named(source: PravegaSource, offsets: Mapping[str, object]) -> Cut:
    """A cut of offsets by segment, as a person gave them.

    Raises:
        InvalidName: not a segment's name.
        InvalidRequest: of another stream, or none at all.
    """
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
