"""The fake system and its source, as the rest of the package sees them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, cast

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    EventsLost,
    InvalidRequest,
    SourceNotFound,
    SourceReplaced,
    SystemUnavailable,
)
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.plan.plan import OnLoss, Plan, PlanRequest, Span, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.schema.change_payload import ChangePayload
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.stream.tail_observation import Incarnation, TailObservation
from airflow_provider_streams.redaction import register_secret
from airflow_provider_streams.systems.base import Recorded
from airflow_provider_streams.systems.change_sampling import with_changes
from airflow_provider_streams.systems.source_json import payloads_of
from airflow_provider_streams.testing.fake.planner import cut_at, incarnation_of, plan
from airflow_provider_streams.testing.fake.reader import FakeReader
from airflow_provider_streams.testing.fake.server_state import Truth, cause_of
from airflow_provider_streams.testing.fake.source import FakeSource

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_streams.model.stream.source import Source

_COLUMNS = ("value", "publish_time", "shard", "number")
_OPTIONAL = ("key", "properties")


class FakeSystem:
    """Fulfils `systems.base.StreamSystem` without a server. Positions are `(n,)`, spans `(0, first, end)`."""

    name: ClassVar[str] = "fake"

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See `StreamSystem`."""
        Truth.parse(options)
        register_secret(options.get("token", ""))
        return cls(options)

    def __repr__(self) -> str:
        return f"FakeSystem({self.truth})"

    @property
    def truth(self) -> Truth:
        """What the server holds now.

        Raises:
            SystemUnavailable: the truth file is named, but not there: the server is down.
        """
        path = self._options.get("truth")
        if not path:
            return Truth.parse(self._options)
        try:
            return Truth.parse({**self._options, **json.loads(Path(path).read_text())})
        except OSError as error:
            raise SystemUnavailable(path, type(error).__name__) from error

    def source(self, options: Mapping[str, str]) -> FakeSource:
        """See `StreamSystem`."""
        return FakeSource(options.get("stream") or "numbers")

    def singles(self, source: Source) -> tuple[FakeSource, ...]:
        """See `FanningOut`.

        Raises:
            SourceNotFound: there is no stream.
        """
        streams = self._authenticated().streams
        if not streams:
            raise SourceNotFound("a stream of the fake system")
        return tuple(cast("FakeSource", source).only(name) for name in streams.split(","))

    def parse_cut(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """`earliest`, `latest`, a number for every shard, or numbers by shard."""
        truth = self.truth
        if not isinstance(text, str):
            return Cut.from_json(text)
        number = {"earliest": truth.head, "latest": truth.events}.get(text)
        return cut_at(truth, source, int(text) if number is None else number)

    def tail(self, source: Source) -> Cut:
        """See `StreamSystem`: after the last event."""
        truth = self._authenticated()
        return cut_at(truth, source, truth.events)

    def go_on(self, earlier: Cut, tail: Cut) -> Cut | None:
        """See `StreamSystem`."""
        return earlier.extend(tail)

    def horizon(self, source: Source, recorded: Recorded | None = None) -> datetime | None:  # noqa: ARG002 - it knows
        """See `StreamSystem`: when the first event still held was published."""
        truth = self._authenticated()
        return truth.stored_at(truth.head) if truth.head else None

    def plan(self, request: PlanRequest) -> Plan:
        """See `StreamSystem`."""
        truth = self._authenticated()
        asked = str(request.source)
        if truth.streams and asked != "*" and asked not in truth.streams.split(","):
            raise SourceNotFound(str(request.source))
        made = plan(truth, request)
        value = payloads_of(request.source)["value"]
        if isinstance(value, ChangePayload):
            return with_changes(self, made, request)
        return replace(made, decoding=decoding_of(value, None, {str(request.source): {}}, "")) if value else made

    def observe_tail(self, source: Source) -> TailObservation:
        """See `StreamSystem`."""
        return TailObservation(datetime.now(UTC), self.tail(source), incarnation_of(self._authenticated(), str(source)))

    def incarnation(self, source: Source) -> Incarnation:
        """See `StreamSystem`."""
        return incarnation_of(self._authenticated(), str(source))

    def other_incarnation(self, source: Source, incarnation: Incarnation) -> SourceReplaced | None:
        """See `StreamSystem`."""
        found = self.incarnation(source)
        return (
            SourceReplaced(source, str(dict(incarnation)), str(dict(found)))
            if incarnation and incarnation != found
            else None
        )

    def check_origin(self, plan: Plan) -> None:
        """See `StreamSystem`."""
        for name in plan.source.names:
            planned, found = dict(plan.source.incarnation), dict(incarnation_of(self._authenticated(), name))
            if planned != found:
                raise SourceReplaced(name, f"life {planned.get(name)}", f"life {found[name]}")

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """`value, publish_time, shard, number`; on request `key, properties`."""
        import pyarrow as pa  # noqa: PLC0415 - planning needs no Arrow

        types: dict[str, pa.DataType] = {
            "value": pa.binary(),
            "publish_time": pa.timestamp("us", tz="UTC"),
            "shard": pa.string(),
            "number": pa.int64(),
            "key": pa.string(),
            "properties": pa.map_(pa.string(), pa.string()),
        }
        names = _COLUMNS if columns is None else tuple(columns)
        for unknown in set(names) - types.keys():
            raise InvalidRequest(f"no column {unknown!r}; known: {', '.join(_COLUMNS + _OPTIONAL)}")
        return pa.schema([(name, types[name]) for name in names])

    def read(
        self,
        plan: Plan,
        split: Split,
        columns: Sequence[str] | None = None,
        *,
        on_loss: OnLoss = "fail",  # noqa: ARG002 - nothing is found lost while reading
    ) -> FakeReader:
        """See `StreamSystem`."""
        return FakeReader(self._authenticated(), plan, split, self.schema(columns), self._options.get("truth"))

    def explain(self, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss) -> tuple[SplitReceipt, ...]:
        """Markers are markers; events before the head, or before a `trim` fault, are lost."""
        truth = self.truth
        shards = {split.index: split.shard for split in plan.splits}
        explained = []
        for receipt in receipts:
            causes: Counter[str] = Counter()
            unexplained: list[Span] = []
            for number in (n for gap in receipt.gaps for n in range(gap.first, gap.end)):
                cause = cause_of(truth, shards[receipt.index], number)
                if cause is None:
                    unexplained.append(Span(0, number, number + 1))
                else:
                    causes[cause] += 1
            if causes["lost"] and on_loss == "fail":
                gap = receipt.gaps[0]
                raise EventsLost(shards[receipt.index], gap.first, gap.end, counted(causes["lost"], "event"), "trimmed")
            explained.append(receipt.explain(causes, tuple(unexplained)))
        return tuple(explained)

    def close(self) -> None:
        """Nothing is held."""

    def _authenticated(self) -> Truth:
        truth = self.truth
        if truth.password and self._options.get("token") != truth.password:
            raise AuthenticationFailed("the fake server")
        return truth
