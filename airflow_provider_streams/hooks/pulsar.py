"""A connection to Apache Pulsar."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import Sampled, StreamHook
from airflow_provider_streams.hooks.name_or_source import NameOrSource
from airflow_provider_streams.hooks.settings_hook import SettingsHook
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.window.basis import Chained, EventTime, PublishTime
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient, AsyncAdminClient, acquire, release
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, InternalStats, TopicStats
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.queries import Question, Topic, aask, ask, topics_in, topics_of
from airflow_provider_streams.systems.pulsar.client.queries import topic as topic_named
from airflow_provider_streams.systems.pulsar.metadata import topics as topic_questions
from airflow_provider_streams.systems.pulsar.metadata.schemas import fits
from airflow_provider_streams.systems.pulsar.metadata.topics import Backlog
from airflow_provider_streams.systems.pulsar.operations import hold, retention
from airflow_provider_streams.systems.pulsar.operations.health import check_any_broker
from airflow_provider_streams.systems.pulsar.source import PulsarSource, full_topic_name, pulsar_source
from airflow_provider_streams.windows.plan.readiness import WindowQuestion, timed_request

if TYPE_CHECKING:
    from airflow_provider_streams.model.stream.hold import Hold, HoldRequest
    from airflow_provider_streams.model.stream.retention import Holding
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.model.stream.tail_observation import TailObservation
    from airflow_provider_streams.systems.conditions import Condition
    from airflow_provider_streams.systems.pulsar.operations.conditions import PulsarCondition
    from airflow_provider_streams.systems.schemas import Check, Compatibility, OfferedSchema

T = TypeVar("T")


class PulsarHook(SettingsHook[Endpoint, AdminClient, AsyncAdminClient], StreamHook):
    """A connection to Apache Pulsar, and what its admin API says of topics. It changes nothing.

    Host and port are the service URL, the password is the token; every setting of `client.endpoint.Endpoint` may
    be an extra. Topics are named as in `PulsarSource`.

    Args:
        conn_id: the Airflow connection, of type `pulsar`.
        options: settings that win over the connection's.
    """

    endpoint_class = Endpoint
    default_conn_name = "pulsar_default"
    conn_type = "pulsar"
    hook_name = "Apache Pulsar"
    holds_by_time: ClassVar[bool] = True
    exclusive_options: ClassVar[frozenset[str]] = frozenset({"token", "token_file", "token_env"})
    option_fields: ClassVar[Mapping[str, str]] = {"password": "token"}

    def __init__(self, conn_id: str = default_conn_name, *, options: Mapping[str, str] | None = None) -> None:
        super().__init__(conn_id, system="pulsar", options=options)
        self._borrowed: tuple[Endpoint, AsyncAdminClient] | None = None
        self._topics: dict[str, tuple[Topic, ...]] = {}

    @property
    def admin(self) -> AdminClient:
        """The client of the admin API: call it with one of `systems.pulsar.client.admin.requests`."""
        return self.client

    def own(self, source: Source) -> PulsarSource:
        """As `StreamHook`."""
        return pulsar_source(super().own(source))

    def _opened(self, endpoint: Endpoint) -> AdminClient:
        return AdminClient(endpoint)

    def topics(self, namespace: str) -> tuple[str, ...]:
        """Full names of the persistent topics of `tenant/namespace`, partitioned ones once."""
        return self.answer(topics_in(namespace))

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; 0: it is not partitioned."""
        return self.answer(topic_named(full_topic_name(topic))).partitions

    def stats(self, topic: str) -> TopicStats:
        """Counters and subscriptions of a topic, its partitions summed."""
        name = full_topic_name(topic)
        found = self.answer(topic_named(name))
        return self.answer(topic_questions.stats([found]))[name]

    def internal_stats(self, topic: str) -> dict[str, InternalStats]:
        """The ledgers of each partition, by its full name."""
        return self.answer(topic_questions.of_topic(full_topic_name(topic), requests.internal_stats))

    def last_message_id(self, topic: str) -> dict[str, EntryId]:
        """The last stored entry of each partition; it may be a marker, aborted, or gone already."""
        return self.answer(topic_questions.of_topic(full_topic_name(topic), requests.last_message_id))

    def position_at(self, topic: str, moment: datetime) -> Cut:
        """In each partition, the place before the first entry published at or after a moment.

        Exact only where publish times are in order; a plan looks slack earlier and later, and filters.
        """
        return self.answer(topic_questions.cut_at(full_topic_name(topic), moment))

    def subscriptions(self, topic: str) -> tuple[str, ...]:
        """The names of a topic's subscriptions, sorted."""
        return tuple(sorted(self.stats(topic).subscriptions))

    def backlog(self, topic: str, subscription: str) -> Backlog:
        """What a subscription has not acknowledged: entries (not messages), bytes, and the oldest publish time.

        Raises:
            SourceNotFound: no such topic or subscription.
        """
        return self.backlog_of(PulsarSource(topic, conn_id=self.conn_id), subscription)

    def backlog_of(self, source: PulsarSource, subscription: str) -> Backlog:
        """As `backlog`, over all topics of a source."""
        found = self.answer(topics_of(self.own(source)))
        return self.answer(topic_questions.backlog(found, subscription))

    def check(self, source: Source, condition: Condition) -> Readiness:
        """As `StreamHook`."""
        topics = self.answer(topics_of(self.own(source)))
        return self.answer(cast("PulsarCondition", condition).rule(topics))

    async def acheck(self, source: Source, condition: Condition) -> Readiness:
        """As `StreamHook`: at most one request per partition and call, after the first."""
        topics = await self._known_topics(self.own(source))
        return await self.aanswer(cast("PulsarCondition", condition).rule(topics))

    def place_hold(self, request: HoldRequest) -> dict[str, Any]:
        """As `StreamHook`."""
        self.own(request.source)
        return self.answer(hold.place(request))

    def move_hold(self, request: HoldRequest) -> dict[str, Any]:
        """As `StreamHook`."""
        self.own(request.source)
        return self.answer(hold.move(request))

    def release_hold(self, source: Source, name: str, reader: str) -> dict[str, Any]:
        """As `StreamHook`."""
        return self.answer(hold.release(self.own(source), name, reader))

    def holds(self, source: Source, readers: Iterable[str] = ()) -> tuple[Hold, ...]:  # noqa: ARG002 - it keeps them
        """As `StreamHook`."""
        return self.answer(hold.holds(self.own(source)))

    def check_schema(
        self, source: Source, offered: OfferedSchema, check: Check = "write", policy: str | None = None
    ) -> Compatibility:
        """As `StreamHook`: by the strategy of the topic, or of its namespace."""
        if check == "read" or policy:
            raise InvalidRequest("Pulsar checks schemas only by its topics' strategies: leave out check and policy")
        topics = self.answer(topics_of(self.own(source)))
        found = self.answer(fits(topics, offered))
        refused = {name: one for name, one in found.items() if not one.compatible}
        for name, one in refused.items():
            return one if len(found) == 1 else replace(one, reason=f"{name}: {one.reason}")
        return next(iter(found.values()))

    async def apartitions(self, topic: str) -> int:
        """As `partitions`, for an event loop."""
        return (await self.aanswer(topic_named(full_topic_name(topic)))).partitions

    async def astats(self, topic: str) -> TopicStats:
        """As `stats`, for an event loop."""
        name = full_topic_name(topic)
        found = await self.aanswer(topic_named(name))
        return (await self.aanswer(topic_questions.stats([found])))[name]

    def _check_ready(self, question: WindowQuestion) -> None:
        """By `Planner.check_ready`, which is faster than a plan and says the same."""
        from airflow_provider_streams.systems.pulsar.system import PulsarSystem  # noqa: PLC0415 - loads Arrow

        if not _is_asked_for(question):
            return super()._check_ready(question)
        return PulsarSystem(self.endpoint()).check_ready(timed_request(question, "readiness"))

    async def _acheck_ready(self, question: WindowQuestion) -> None:
        """One request per topic and call, after the first, while nothing is open."""
        if not _is_asked_for(question):
            return await super()._acheck_ready(question)
        admin = await self.aclient()
        topics = await self._known_topics(self.own(question.source))
        await self._load_system()
        from airflow_provider_streams.systems.pulsar.system import check_ready  # noqa: PLC0415

        return await check_ready(admin, timed_request(question, "readiness"), topics)

    def holding(self, source: Source, reader: str | None, recorded: Callable[[], Sampled]) -> Holding:  # noqa: ARG002
        """As `StreamHook`, by publish times."""
        return self.answer(retention.holding(self.own(source), reader, datetime.now(UTC)))

    async def aholding(
        self,
        source: Source,
        reader: str | None,
        recorded: Callable[[], Awaitable[Sampled]],  # noqa: ARG002 - not needed
    ) -> Holding:
        """As `holding`, for an event loop."""
        return await self.aanswer(retention.holding(self.own(source), reader, datetime.now(UTC)))

    async def _atail_observation(self, source: Source) -> TailObservation:
        """Two requests per topic, after the first, on the connections that all triggers share."""
        admin = await self.aclient()
        topics = await self._known_topics(self.own(source))
        await self._load_system()
        from airflow_provider_streams.systems.pulsar.system import observe_topics  # noqa: PLC0415

        return await observe_topics(admin, topics)

    @staticmethod
    async def _load_system() -> None:
        if _SYSTEM not in sys.modules:  # its packages take a second to load, which would block the loop
            await asyncio.to_thread(import_module, _SYSTEM)

    def answer(self, question: Question[T]) -> T:
        """The answer to a question, like those of `systems.pulsar.metadata.topics`."""
        return ask(self.admin, question)

    async def aanswer(self, question: Question[T]) -> T:
        """As `answer`, for an event loop; each call is sent once."""
        return await aask(await self.aclient(), question)

    def _test(self) -> str:
        """Whether the admin API and a broker accept us."""
        endpoint = self.endpoint()
        brokers = f"The broker at {check_any_broker(endpoint)} accepts us"
        if not endpoint.admin_url:
            raise InvalidRequest(
                f"{brokers}, but planning windows needs the admin API: add the extra admin_url, like http://host:8080"
            )
        version = self.admin(requests.brokers_version())
        return f"Pulsar {version} answers at {endpoint.admin_url}. {brokers}."

    async def aclient(self) -> AsyncAdminClient:
        """The client that all triggers of the running event loop share."""
        if self._borrowed is None:
            endpoint = Endpoint.from_options(await self.aoptions())
            self._borrowed = endpoint, self._aclient_of(endpoint)
        return self._borrowed[1]

    async def aclose(self) -> None:
        """Give the shared client back."""
        if self._borrowed is not None:
            endpoint, _ = self._borrowed
            self._borrowed = None
            await release(endpoint)

    def _aclient_of(self, endpoint: Endpoint) -> AsyncAdminClient:
        return acquire(endpoint)

    async def _known_topics(self, source: PulsarSource) -> tuple[Topic, ...]:
        """A pattern is resolved at every call, as new topics may match; names only once."""
        if source.pattern or source.key not in self._topics:
            self._topics[source.key] = await self.aanswer(topics_of(source))
        return self._topics[source.key]


_SYSTEM = "airflow_provider_streams.systems.pulsar.system"


def one_topic(owner: object, topic: str | None, source: PulsarSource | None, conn_id: str | None) -> tuple[str, str]:
    """The name and the connection of a topic that an operator is given by its name or as a source.

    Raises:
        InvalidRequest: both are given, or none; or a source of several topics, of some partitions, or of another
            connection.
    """
    connection = connection_of(owner, topic, source, conn_id)
    if source is None:
        return topic or "", connection
    given = pulsar_source(source)
    if given.pattern or len(given.topics) != 1:
        raise InvalidRequest(f"{type(owner).__name__} takes one topic, but {source} may be several")
    if given.partitions:
        raise InvalidRequest(
            f"{type(owner).__name__} takes a whole topic, but {source} has partitions={list(given.partitions)}: leave "
            f"them out, or name the partition, like topic='{given.topics[0]}-partition-{given.partitions[0]}'"
        )
    return given.topics[0], connection


def connection_of(owner: object, topic: str | None, source: PulsarSource | None, conn_id: str | None) -> str:
    """The connection of topics that a sensor or a trigger is given by name or as a source.

    Raises:
        InvalidRequest: both are given, or none; or the source has another connection.
    """
    return NameOrSource(owner, "topic", topic, source, conn_id).connection(PulsarHook.default_conn_name)


def _is_asked_for(question: WindowQuestion) -> bool:
    """Whether a window's end is looked up in the topics, and not in recorded cuts or a user's own."""
    return isinstance(question.basis, PublishTime | EventTime | Chained)
