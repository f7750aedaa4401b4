"""Pulsar behind the one protocol of all stream systems: where its parts meet."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from airflow_provider_streams.errors import InvalidRequest, OtherCluster
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.event_field import checked
from airflow_provider_streams.model.plan import OnLoss, Plan, PlanRequest, Split
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.model.sighting import Identity, Sighting
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.base import Recorded, SplitReader
from airflow_provider_streams.systems.given_cuts import EARLIEST
from airflow_provider_streams.systems.pulsar import cuts
from airflow_provider_streams.systems.pulsar.admin.client import AdminClient, AsyncAdminClient
from airflow_provider_streams.systems.pulsar.declaration import chosen
from airflow_provider_streams.systems.pulsar.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.message_id import parse_position
from airflow_provider_streams.systems.pulsar.planner import Planner, run
from airflow_provider_streams.systems.pulsar.questions import Topic, ask, names_of
from airflow_provider_streams.systems.pulsar.schemas import of_source
from airflow_provider_streams.systems.pulsar.source import PulsarSource, full_topic_name
from airflow_provider_streams.systems.pulsar.wire.broker import BrokerClient
from airflow_provider_streams.systems.schemas import Versions
from airflow_provider_streams.systems.written import words

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_SOURCE_OPTIONS = ("topic", "topics", "topicspattern")
_RULES: dict[str, Callable[[cuts.Shard], Position]] = {EARLIEST: cuts.head, "latest": cuts.tail}


class PulsarSystem:
    """One Pulsar cluster. Connects when used; leaves nothing open between two calls.

    Args:
        endpoint: where it is, and who we are there.
    """

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
        """The source that `topic`, `topics` (between commas) or `topicsPattern` names, and what it has only.

        Raises:
            InvalidRequest: none, or more than one of them.
        """
        folded = {name.lower(): str(value).strip() for name, value in options.items()}
        given = {name: folded[name] for name in _SOURCE_OPTIONS if folded.get(name)}
        if len(given) != 1:
            raise InvalidRequest("name what to read by one of the options topic, topics and topicsPattern")
        if "topicspattern" in given:
            return PulsarSource(pattern=given["topicspattern"], **chosen(folded))
        (text,) = given.values()
        return PulsarSource(words(text), **chosen(folded))

    def singles(self, source: Source) -> tuple[PulsarSource, ...]:
        """See `FanningOut`: a topic with its partitions is one."""
        asked = _pulsar_source(source)
        with AdminClient(self.endpoint) as admin:
            return tuple(asked.only(name) for name in ask(admin, names_of(asked)))

    def parse_cut(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """A user's cut, resolved now.

        `earliest`, `latest`; a message id, where the source is one shard; or all shards by name, each with one of
        these, as a mapping or its JSON. Message ids: `ledger:entry`, `ledger:entry:partition:batch index` (-1: it does
        not say), the base64 text of a serialized id, its JSON; `after <id>` is the place just after that message.

        Raises:
            InvalidRequest: no such notation, or not every shard of the source is named.
        """
        return run(self._cut(_pulsar_source(source), _written(text)))

    def parse_start(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """See `StartsByShard`; all shards are named, as in `parse_cut`."""
        return run(self._cut(_pulsar_source(source), _written(text), left_out=EARLIEST))

    def tail(self, source: Source) -> Cut:
        """See `StreamSystem` and `cuts.tail`: behind the last readable message of each partition."""
        named = _pulsar_source(source)
        return run(self._with_planner(lambda planner: planner.cut_at(named, cuts.tail)))

    def go_on(self, earlier: Cut, tail: Cut) -> Cut | None:
        """See `StreamSystem`: a partition that cannot be seen any more keeps its place."""
        return earlier.extend(tail)

    def horizon(self, source: Source, recorded: Recorded | None = None) -> datetime | None:  # noqa: ARG002 - it knows
        """See `StreamSystem` and `Planner.horizon`."""
        named = _pulsar_source(source)
        return run(self._with_planner(lambda planner: planner.horizon(named)))

    def plan(self, request: PlanRequest) -> Plan:
        """See `Planner.plan`; schemas are asked for last, so that every version of what lies before the end is known.

        Raises:
            SchemasDiffer: topics whose rows cannot have the same columns.
            InvalidSchema: a schema that no row can be decoded by.
            InvalidRequest: the field of a basis by event time is none; see `event_field.checked`.
        """
        return checked(run(self._with_planner(lambda planner: planner.plan(request))))

    def schemas(self, source: Source) -> Versions:
        """See `SchemaKeeper`."""
        with AdminClient(self.endpoint) as admin:
            return ask(admin, of_source(_pulsar_source(source)))

    def look(self, source: Source) -> Sighting:
        """See `StreamSystem` and `Planner.look_at`."""
        named = _pulsar_source(source)
        return run(self._with_planner(lambda planner: planner.look_at(named)))

    def identity(self, source: Source) -> Identity:
        """See `StreamSystem` and `Planner.identity`."""
        named = _pulsar_source(source)
        return run(self._with_planner(lambda planner: planner.identity(named)))

    def other_life(self, source: Source, identity: Identity) -> OtherCluster | None:  # noqa: ARG002 - see below
        """None: topics of one source come and go. Where positions go on, each shard's windows know its life."""
        return None

    def check_ready(self, request: PlanRequest) -> None:
        """See `Planner.check_ready`."""
        run(self._with_planner(lambda planner: planner.check_ready(request)))

    def check_origin(self, plan: Plan) -> None:
        """See `StreamSystem` and `Planner.check_origin`."""
        run(self._with_planner(lambda planner: planner.check_origin(plan)))

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """The Arrow schema of these columns; None: the default ones."""
        # pyarrow is not needed to plan
        from airflow_provider_streams.systems.pulsar.decode.columns import arrow_schema  # noqa: PLC0415

        return arrow_schema(columns)

    def read(
        self, plan: Plan, split: Split, columns: Sequence[str] | None = None, *, on_loss: OnLoss = "fail"
    ) -> SplitReader:
        """A reader of one split, over the binary protocol."""
        from airflow_provider_streams.systems.pulsar.reader import PulsarSplitReader  # noqa: PLC0415

        return PulsarSplitReader(self.endpoint, plan, split, columns, on_loss=on_loss)

    def explain(self, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss) -> tuple[SplitReceipt, ...]:
        """See `explain.explain`; asks nothing when there are no gaps."""
        from airflow_provider_streams.systems.pulsar.explain import explain  # noqa: PLC0415

        reports = tuple(receipts)
        if not any(report.gaps for report in reports):
            return reports

        async def asked() -> tuple[SplitReceipt, ...]:
            async with AsyncAdminClient(self.endpoint) as admin:
                with BrokerClient(self.endpoint) as brokers:
                    return await explain(admin, brokers, plan, reports, on_loss=on_loss)

        return run(asked())

    def close(self) -> None:
        """Nothing stays open between two calls."""

    async def _with_planner(self, work: Callable[[Planner], Awaitable[T]]) -> T:
        async with AsyncAdminClient(self.endpoint) as admin:
            # the brokers' connections belong to this one call
            with BrokerClient(self.endpoint) as brokers:
                cluster = str(self.endpoint.addresses[0])
                return await work(Planner(admin, brokers, cluster=cluster))

    async def _cut(self, source: PulsarSource, written: str | Mapping[str, str], *, left_out: str | None = None) -> Cut:
        async def resolve(planner: Planner) -> Cut:
            texts = _texts(await planner.shards(source), written)
            rules = {text.lower() for text in texts.values()} & _RULES.keys() - {left_out}
            resolved = {rule: await planner.cut_at(source, _RULES[rule]) for rule in rules}
            return Cut(
                {
                    shard: resolved[text.lower()][shard] if text.lower() in resolved else parse_position(text, shard)
                    for shard, text in texts.items()
                    if text.lower() != left_out
                }
            )

        return await self._with_planner(resolve)


async def check_ready(admin: AsyncAdminClient, request: PlanRequest, topics: tuple[Topic, ...]) -> None:
    """`Planner.check_ready` for an event loop, with its client and the topics that it knows."""
    with BrokerClient(admin.endpoint) as brokers:
        await Planner(admin, brokers, cluster="").check_ready(request, topics)


async def look(admin: AsyncAdminClient, topics: tuple[Topic, ...]) -> Sighting:
    """`Planner.look` for an event loop, with its client and the topics that it knows."""
    with BrokerClient(admin.endpoint) as brokers:
        return await Planner(admin, brokers, cluster="").look(topics)


def _pulsar_source(source: Source) -> PulsarSource:
    if not isinstance(source, PulsarSource):
        raise InvalidRequest(f"{source} is not a Pulsar source")
    return source


def _written(text: str | Mapping[str, str]) -> str | Mapping[str, str]:
    """The JSON of all shards as a mapping; the JSON of one id stays text."""
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
    """Each shard's own text."""
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
