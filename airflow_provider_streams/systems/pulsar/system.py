"""Pulsar as a `StreamSystem`: the one class that the rest of the package sees."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from airflow_provider_streams.errors import InvalidRequest, SourceReplaced
from airflow_provider_streams.model.plan.plan import OnLoss, Plan, PlanRequest, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.schema.event_time_field import checked
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.stream.tail_observation import Incarnation, TailObservation
from airflow_provider_streams.systems.base import Recorded, SplitReader
from airflow_provider_streams.systems.change_sampling import with_changes
from airflow_provider_streams.systems.connection.list_options import words
from airflow_provider_streams.systems.explicit_cuts import EARLIEST
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient, AsyncAdminClient
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.queries import Topic, ask, names_of
from airflow_provider_streams.systems.pulsar.client.wire.broker_client import BrokerClient
from airflow_provider_streams.systems.pulsar.declaration import chosen
from airflow_provider_streams.systems.pulsar.metadata.message_id import parse_position
from airflow_provider_streams.systems.pulsar.metadata.schemas import of_source
from airflow_provider_streams.systems.pulsar.planning import cuts
from airflow_provider_streams.systems.pulsar.planning.cluster_state import ClusterState
from airflow_provider_streams.systems.pulsar.planning.planner import Planner, run
from airflow_provider_streams.systems.pulsar.source import PulsarSource, full_topic_name, pulsar_source
from airflow_provider_streams.systems.schemas import Versions

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_SOURCE_OPTIONS = ("topic", "topics", "topicspattern")
_RULES: dict[str, Callable[[cuts.Shard], Position]] = {EARLIEST: cuts.head, "latest": cuts.tail}


class PulsarSystem:
    """One Pulsar cluster. Connects when used; leaves nothing open between two calls."""

    name: ClassVar[str] = "pulsar"

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.endpoint!r})"

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See `Endpoint.from_options`."""
        return cls(Endpoint.from_options(options))

    def source(self, options: Mapping[str, str]) -> PulsarSource:
        """The source that `topic`, `topics` (between commas) or `topicsPattern` names, with its choices.

        Raises:
            InvalidRequest: none or several of them are given.
        """
        folded = {name.lower(): str(value).strip() for name, value in options.items()}
        given = {name: folded[name] for name in _SOURCE_OPTIONS if folded.get(name)}
        if len(given) != 1:
            raise InvalidRequest("name what to read by one of the options topic, topics and topicsPattern")
        if "topicspattern" in given:
            return PulsarSource(pattern=given["topicspattern"], **chosen(folded))
        (text,) = given.values()
        return PulsarSource(words("topics", text), **chosen(folded))

    def singles(self, source: Source) -> tuple[PulsarSource, ...]:
        """See `FanningOut`: a topic with its partitions is one source."""
        asked = pulsar_source(source)
        with AdminClient(self.endpoint) as admin:
            return tuple(asked.only(name) for name in ask(admin, names_of(asked)))

    def parse_cut(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """A user's cut, resolved now.

        `earliest` or `latest`; a message id, if the source is one shard; or one of these for each shard by name, as a
        mapping or its JSON. Message ids: `ledger:entry`, `ledger:entry:partition:batch index` (-1: not said), the
        base64 text of a serialized id, its JSON; `after <id>` is the place just after that message.

        Raises:
            InvalidRequest: an unknown notation, or a shard of the source is missing.
        """
        return self._cut(source, text)

    def parse_start(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """See `StartsByShard`; the text names all shards, as in `parse_cut`."""
        return self._cut(source, text, left_out=EARLIEST)

    def tail(self, source: Source) -> Cut:
        """See `StreamSystem` and `cuts.tail`: after the last readable message of each partition."""
        return self._run(lambda planner: planner.cut_at(pulsar_source(source), cuts.tail))

    def go_on(self, earlier: Cut, tail: Cut) -> Cut | None:
        """See `StreamSystem`: a partition that is no longer visible keeps its place."""
        return earlier.extend(tail)

    def horizon(self, source: Source, recorded: Recorded | None = None) -> datetime | None:  # noqa: ARG002 - it knows
        """See `StreamSystem` and `Planner.horizon`."""
        return self._run(lambda planner: planner.horizon(pulsar_source(source)))

    def plan(self, request: PlanRequest) -> Plan:
        """See `Planner.plan`.

        Raises:
            IncompatibleSchemas: topics whose rows cannot have the same columns.
            InvalidSchema: a schema that no row can be decoded by.
            InvalidRequest: the basis names a field that cannot be an event time; see `event_time_field.checked`.
        """
        plan = self._run(lambda planner: planner.plan(request))
        return checked(with_changes(self, plan, request))

    def schemas(self, source: Source) -> Versions:
        """See `SchemaKeeper`."""
        with AdminClient(self.endpoint) as admin:
            return ask(admin, of_source(pulsar_source(source)))

    def observe_tail(self, source: Source) -> TailObservation:
        """See `StreamSystem` and `Planner.observe_tail`."""
        return self._run(lambda planner: planner.observe_tail(pulsar_source(source)))

    def incarnation(self, source: Source) -> Incarnation:
        """See `StreamSystem` and `Planner.incarnation`."""
        return self._run(lambda planner: planner.incarnation(pulsar_source(source)))

    def other_incarnation(self, source: Source, incarnation: Incarnation) -> SourceReplaced | None:  # noqa: ARG002 - see below
        """None: topics of one source come and go, and each shard's windows know its incarnation."""
        return None

    def check_ready(self, request: PlanRequest) -> None:
        """See `Planner.check_ready`."""
        self._run(lambda planner: planner.check_ready(request))

    def check_origin(self, plan: Plan) -> None:
        """See `StreamSystem` and `Planner.check_origin`."""
        self._run(lambda planner: planner.check_origin(plan))

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """The Arrow schema of these columns; None: the default ones."""
        from airflow_provider_streams.systems.pulsar.reading.decode.columns import arrow_schema  # noqa: PLC0415 - loads Arrow

        return arrow_schema(columns)

    def read(
        self, plan: Plan, split: Split, columns: Sequence[str] | None = None, *, on_loss: OnLoss = "fail"
    ) -> SplitReader:
        """A reader of one split, over the binary protocol."""
        from airflow_provider_streams.systems.pulsar.reading.reader import PulsarSplitReader  # noqa: PLC0415

        return PulsarSplitReader(self.endpoint, plan, split, columns, on_loss=on_loss)

    def explain(self, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss) -> tuple[SplitReceipt, ...]:
        """See `missing_entries.explain`; makes no calls if there are no gaps."""
        from airflow_provider_streams.systems.pulsar.reading.missing_entries import explain  # noqa: PLC0415

        reports = tuple(receipts)
        if not any(report.gaps for report in reports):
            return reports

        return self._connected(lambda cluster: explain(cluster, plan, reports, on_loss=on_loss))

    def close(self) -> None:
        """Nothing stays open between two calls."""

    def _connected(self, work: Callable[[ClusterState], Awaitable[T]]) -> T:
        """The result of work with connections of its own."""

        async def connected() -> T:
            async with AsyncAdminClient(self.endpoint) as admin:
                with BrokerClient(self.endpoint) as brokers:
                    return await work(ClusterState(admin, brokers, str(self.endpoint.addresses[0])))

        return run(connected())

    def _run(self, work: Callable[[Planner], Awaitable[T]]) -> T:
        return self._connected(lambda cluster: work(Planner(cluster)))

    def _cut(self, source: Source, text: str | Mapping[str, str], *, left_out: str | None = None) -> Cut:
        asked, written = pulsar_source(source), _written(text)

        async def resolve(planner: Planner) -> Cut:
            texts = _texts(tuple(await planner.shards(asked)), written)
            rules = {text.lower() for text in texts.values()} & _RULES.keys() - {left_out}
            resolved = {rule: await planner.cut_at(asked, _RULES[rule]) for rule in rules}
            return Cut(
                {
                    shard: resolved[text.lower()][shard] if text.lower() in resolved else parse_position(text, shard)
                    for shard, text in texts.items()
                    if text.lower() != left_out
                }
            )

        return self._run(resolve)


async def check_ready(admin: AsyncAdminClient, request: PlanRequest, topics: tuple[Topic, ...]) -> None:
    """`Planner.check_ready` for an event loop, with its client and known topics."""
    with BrokerClient(admin.endpoint) as brokers:
        await Planner(ClusterState(admin, brokers)).check_ready(request, topics)


async def observe_topics(admin: AsyncAdminClient, topics: tuple[Topic, ...]) -> TailObservation:
    """`Planner.observe_tail` for an event loop, with its client and known topics."""
    with BrokerClient(admin.endpoint) as brokers:
        return await Planner(ClusterState(admin, brokers)).observe_topics(topics)


def _written(text: str | Mapping[str, str]) -> str | Mapping[str, str]:
    """JSON of all shards becomes a mapping; JSON of one id stays text."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return text
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"the cut {text!r} is not JSON: {error}") from error
    if "ledgerId" in data:
        return text
    return {shard: value if isinstance(value, str) else json.dumps(value) for shard, value in data.items()}


def _texts(shards: Sequence[str], written: str | Mapping[str, str]) -> dict[str, str]:
    """The text of each shard."""
    if isinstance(written, Mapping):
        texts = {full_topic_name(name): text.strip() for name, text in written.items()}
        cuts.check_shards(dict.fromkeys(shards), texts)
        return texts
    if len(shards) > 1 and written.strip().lower() not in _RULES:
        raise InvalidRequest(
            f"{written!r} is a place in one shard, but the source has {len(shards)}: "
            f"give a mapping of each shard to its message id: {', '.join(shards)}"
        )
    return {shard: written.strip() for shard in shards}
