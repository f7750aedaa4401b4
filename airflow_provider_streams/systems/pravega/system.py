"""Pravega as a `StreamSystem`: the one class that the rest of the package sees."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Self

from airflow_provider_streams.errors import EventsLost, InvalidRequest, OtherCluster
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import OnLoss, Plan, PlanRequest, Span, Split
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.model.sighting import Identity, Sighting
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.base import Recorded
from airflow_provider_streams.systems.pravega.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.stream_cut import UNBOUNDED, StreamCut, follows

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_streams.systems.pravega.client import Client
    from airflow_provider_streams.systems.pravega.reader import PravegaSplitReader
    from airflow_provider_streams.systems.pravega.segment_infos import SegmentInfo


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
        """From the options `stream` (`scope/stream`, or a name), `scope` and `event_time_unit`."""
        stream = options.get("stream", "").strip()
        if options.get("streams", "").strip():
            raise InvalidRequest("format 'pravega' reads one stream: give the option stream")
        if not stream:
            raise InvalidRequest("the option stream is missing: 'scope/stream', or a name beside the option scope")
        scope = options.get("scope", "").strip() or self.endpoint.scope
        if "/" in stream:
            if scope and options.get("scope") and stream.partition("/")[0] != scope:
                raise InvalidRequest(f"the options name two scopes: {scope!r} and that of {stream!r}")
        elif not scope:
            raise InvalidRequest(f"the scope of stream {stream!r} is missing: give the option scope")
        else:
            stream = f"{scope}/{stream}"
        return PravegaSource(stream, event_time_unit=options.get("event_time_unit", "ms").strip())  # type: ignore[arg-type]

    def parse_cut(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """`earliest`, `latest`, a stream cut as text, or offsets by segment.

        `unbounded` is a cut without segments: as a start the head, as an end the tail, found when planning.
        Segments in a mapping, or in JSON, are full names, or `<number>.#epoch.<epoch>`.
        """
        stream = _stream(source)
        if not isinstance(text, str):
            return _named(StreamCut.from_mapping(stream, text))
        word = text.strip().lower()
        if word == UNBOUNDED.lower():
            return Cut({})
        if word in _MOMENTS:
            from airflow_provider_streams.systems.pravega import cuts  # noqa: PLC0415 - gRPC when used

            rule = cuts.head if _MOMENTS[word] == "head" else cuts.tail
            return self.client.run(rule(stream)).to_model()
        if text.lstrip().startswith("{"):
            return _named(StreamCut.from_json(stream, text))
        cut = StreamCut.from_text(text)
        if cut.stream != stream:
            raise InvalidRequest(f"this is a cut of {cut.stream}, not of {stream}")
        if not cut.offsets:
            raise InvalidRequest(f"the cut of {stream} names no segment: the tail of a sealed stream; write 'latest'")
        return cut.to_model()

    def tail(self, source: Source) -> Cut:
        """See `StreamSystem` and `cuts.tail`."""
        from airflow_provider_streams.systems.pravega import cuts  # noqa: PLC0415 - gRPC when used

        return self.client.run(cuts.tail(_stream(source))).to_model()

    def go_on(self, earlier: Cut, tail: Cut) -> Cut | None:
        """See `StreamSystem` and `stream_cut.follows`."""
        return tail if follows(earlier, tail) else None

    def horizon(self, source: Source, recorded: Recorded | None = None) -> datetime | None:
        """See `StreamSystem`: when the oldest recorded cut that is still held was sampled; events carry no time.

        Cuts of another life of the stream, which come before those of today's, are not held.
        """
        from airflow_provider_streams.systems.pravega import cuts  # noqa: PLC0415 - gRPC when used

        head = self.client.run(cuts.head(_stream(source))).to_model()
        entries = list(recorded()) if recorded else []
        known = [index for index, (_, _, identity) in enumerate(entries) if identity]
        dead = bisect_left(known, True, key=lambda index: self.other_life(source, entries[index][2]) is None)
        since = known[dead - 1] + 1 if dead else 0
        return next((moment for moment, cut, _ in entries[since:] if follows(head, cut)), None)

    def plan(self, request: PlanRequest) -> Plan:
        """See `StreamSystem` and `planner.plan`."""
        from airflow_provider_streams.systems.pravega import planner, watermarks  # noqa: PLC0415 - gRPC when used

        stream = _stream(request.source)
        remarks: tuple[str, ...] = ()
        if request.basis == "event":
            request, remarks = watermarks.resolve(request, self.client)
        made = self.client.run(planner.plan(request, stream=stream, cluster=self.endpoint.cluster))
        return replace(made, remarks=remarks)

    def look(self, source: Source) -> Sighting:
        """See `StreamSystem` and `origin.look`."""
        from airflow_provider_streams.systems.pravega import origin  # noqa: PLC0415 - gRPC when used

        tail, identity = self.client.run(origin.look(_stream(source)))
        return Sighting(datetime.now(UTC), tail.to_model(), identity)

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


_MOMENTS = {"earliest": "head", "head": "head", "latest": "tail", "tail": "tail"}


def _stream(source: Source) -> str:
    if not isinstance(source, PravegaSource):
        raise InvalidRequest(f"{source} is no Pravega stream")
    return source.stream


def _named(cut: StreamCut) -> Cut:
    if not cut.offsets:
        raise InvalidRequest(f"a cut of {cut.stream} names no segment; write 'earliest' or 'latest'")
    return cut.to_model()


def _cause(gap: Span, info: SegmentInfo | None) -> str:
    """Why a gap's bytes cannot be read; empty: they can."""
    if info is None:
        return "the segment is gone: the stream was truncated or deleted"
    if info.start_offset > gap.first:
        return f"the stream was truncated: the segment now starts at {info.start_offset}"
    if info.write_offset < gap.end:
        return f"the segment now ends at {info.write_offset}: the stream was deleted and made again"
    return ""
