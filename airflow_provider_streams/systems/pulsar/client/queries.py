"""Questions that take several calls, without I/O: each yields what to ask next, and receives the answers.

They ask the admin API, and probe entries through the binary protocol. `ask` runs a question with the blocking client,
`aask` with the asynchronous one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.systems.io_free_rules import Rule, arun, run, together
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient, AsyncAdminClient
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.metadata import names
from airflow_provider_streams.systems.pulsar.planning.entry_probe import EntryProbe, ProbePoint
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.rest.request import AnyRequest, Request

T = TypeVar("T")
Question = Rule[Sequence[AnyRequest | ProbePoint], T]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists; 0 partitions: it is not partitioned."""

    name: str
    partitions: int
    chosen: tuple[int, ...] = ()
    """The partitions that its source names; empty: all."""

    @property
    def shards(self) -> tuple[str, ...]:
        """The names of its (chosen) partitions, or its own name."""
        if not self.partitions:
            return (self.name,)
        numbers = self.chosen or range(self.partitions)
        return tuple(names.partition_name(self.name, number) for number in numbers if number < self.partitions)

    def of_shard(self, shard: str, request: Request[T]) -> Request[T | None]:
        """A call about one of its shards; the answer is None for a partition that was never created."""
        return requests.if_exists(request) if shard != self.name else request


def topic(name: str) -> Question[Topic]:
    """A topic with its number of partitions; raises `SourceNotFound` if it does not exist."""
    if names.partition_of(name) >= 0:
        return Topic(name, 0)
    (partitions,) = yield [requests.partitions(name)]
    return Topic(name, partitions)


def topics_in(namespace: str) -> Question[tuple[str, ...]]:
    """Full names of the persistent topics of `tenant/namespace`, partitioned ones once."""
    # a topic may have partitions of which none was created so far
    listed = yield [requests.topics(namespace), requests.partitioned_topics(namespace)]
    return names.parents(name for one in listed for name in one)


def names_of(source: PulsarSource) -> Question[tuple[str, ...]]:
    """The names of a source's topics, with the current matches of a pattern; named topics need not exist.

    Raises:
        SourceNotFound: nothing matches the pattern.
    """
    if not source.pattern:
        return source.topics
    listed = yield from topics_in(names.namespace_of(source.pattern))
    found = names.matching(source.pattern, listed)
    if not found:
        raise SourceNotFound(f"a topic that matches {source.pattern}")
    return found


def topics_of(source: PulsarSource) -> Question[tuple[Topic, ...]]:
    """The existing topics of a source, each once; raises `SourceNotFound` for a missing topic, partition or match."""
    return (yield from _topics(source, (yield from names_of(source))))


def remaining_topics_of(source: PulsarSource, seen: Collection[str]) -> Question[tuple[Topic, ...]]:
    """The same without the topics of `seen`, which once existed, if they no longer exist; perhaps none is left."""
    try:
        found = yield from names_of(source)
    except SourceNotFound:
        if not seen:
            raise
        return ()
    doubted = [name for name in found if name in seen]

    def existence(name: str) -> AnyRequest:
        is_partition = names.partition_of(name) >= 0
        return requests.if_exists(requests.internal_stats(name) if is_partition else requests.partitions(name))

    existing = yield from by_shard(doubted, existence)
    left = tuple(name for name in found if existing.get(name, ...) is not None)
    return (yield from _topics(source, left)) if left else ()


def _topics(source: PulsarSource, found: Sequence[str]) -> Question[tuple[Topic, ...]]:
    counts = yield from by_shard([name for name in found if names.partition_of(name) < 0], requests.partitions)
    topics = tuple(Topic(name, counts.get(name, 0), source.partitions) for name in found)
    return _with_partitions(source, topics) if source.partitions else topics


def _with_partitions(source: PulsarSource, topics: Iterable[Topic]) -> tuple[Topic, ...]:
    """The topics that have the partitions of a source: named topics all of them, matched topics some."""
    for one in topics:
        if not source.pattern and (missing := [each for each in source.partitions if each >= one.partitions]):
            raise SourceNotFound(f"partition {missing[0]} of {one.name}, which has {one.partitions}")
    found = tuple(one for one in topics if one.partitions and one.shards)
    if not found:
        raise SourceNotFound(f"a partition of {source}")
    return found


def shards_of(topics: Iterable[Topic]) -> dict[str, Topic]:
    """Every shard of these topics with its topic, partitions in order, each once."""
    return {shard: one for one in topics for shard in one.shards}


def by_shard(shards: Iterable[str], call: Callable[[str], Request[T]]) -> Question[dict[str, T]]:
    """The answer to one call for each shard (or topic), in their order."""
    asked = list(shards)
    answers = yield [call(shard) for shard in asked]
    return dict(zip(asked, answers, strict=True))


def ask(client: AdminClient, question: Question[T]) -> T:
    """The answer, with the blocking client.

    Raises:
        AccessError, SystemUnavailable, ProtocolError: the cluster refuses or does not answer.
    """

    def answer(asked: Sequence[AnyRequest | ProbePoint]) -> list[Any]:
        probes = iter(probe_entries(client.endpoint, [one for one in asked if isinstance(one, ProbePoint)]))
        return [next(probes) if isinstance(one, ProbePoint) else client(one) for one in asked]

    return run(question, answer)


async def aask(client: AsyncAdminClient, question: Question[T]) -> T:
    """The same with the asynchronous client; independent calls run side by side."""

    async def answer(asked: Sequence[AnyRequest | ProbePoint]) -> list[Any]:
        places = [one for one in asked if isinstance(one, ProbePoint)]
        probes = iter(await asyncio.to_thread(probe_entries, client.endpoint, places) if places else ())
        answers = iter(await together(client(one) for one in asked if not isinstance(one, ProbePoint)))
        return [next(probes) if isinstance(one, ProbePoint) else next(answers) for one in asked]

    return await arun(question, answer)


def probe_entries(endpoint: Endpoint, places: Sequence[ProbePoint]) -> Sequence[EntryProbe]:
    """What readers are sent at these places; blocks, and raises as `BrokerClient.probe`."""
    if not places:
        return ()
    from airflow_provider_streams.systems.pulsar.client.wire.broker_client import BrokerClient  # noqa: PLC0415 - loads Arrow

    with BrokerClient(endpoint) as brokers:
        return brokers.probe(places)
