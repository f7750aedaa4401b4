"""Questions that take several calls, without I/O: each yields what to ask next, and receives the answers.

What is asked are admin calls, and looks at what readers are sent. `ask` runs a question with the blocking client,
`aask` with the asynchronous one, so that both edges ask the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.systems.pulsar import names
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.client import AdminClient, AsyncAdminClient
from airflow_provider_streams.systems.pulsar.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.looks import Look, Place
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.rest.request import AnyRequest, Request
from airflow_provider_streams.systems.rules import Rule, arun, run, together

T = TypeVar("T")
Question = Rule[Sequence[AnyRequest | Place], T]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists; 0 partitions: it is not partitioned."""

    name: str
    partitions: int
    chosen: tuple[int, ...] = ()
    """Of a source that has only these partitions; empty: all."""

    @property
    def shards(self) -> tuple[str, ...]:
        """Its (chosen) partitions' names, or its own."""
        if not self.partitions:
            return (self.name,)
        numbers = self.chosen or range(self.partitions)
        return tuple(names.partition_name(self.name, number) for number in numbers if number < self.partitions)

    def of_shard(self, shard: str, request: Request[T]) -> Request[T | None]:
        """A call about one of its shards; None if that is a partition which has not been made yet."""
        return requests.if_made(request) if shard != self.name else request


def topic(name: str) -> Question[Topic]:
    """A topic with its number of partitions.

    Raises:
        SourceNotFound: there is none.
    """
    if names.partition_of(name) >= 0:
        return Topic(name, 0)
    (partitions,) = yield [requests.partitions(name)]
    return Topic(name, partitions)


def topics_in(namespace: str) -> Question[tuple[str, ...]]:
    """Full names of the persistent topics of `tenant/namespace`, partitioned ones once."""
    # a topic may have partitions of which none has been made yet
    listed = yield [requests.topics(namespace), requests.partitioned_topics(namespace)]
    return names.parents(name for one in listed for name in one)


def names_of(source: PulsarSource) -> Question[tuple[str, ...]]:
    """The names of a source's topics, those that its pattern matches now included; named ones need not exist.

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
    """The topics of a source, those that its pattern matches now included; each once.

    Raises:
        SourceNotFound: a topic or a partition does not exist, or nothing matches the pattern.
    """
    found = yield from names_of(source)
    asked = [name for name in found if names.partition_of(name) < 0]
    counts = dict(zip(asked, (yield [requests.partitions(name) for name in asked]), strict=True))
    topics = tuple(Topic(name, counts.get(name, 0), source.partitions) for name in found)
    return _with_partitions(source, topics) if source.partitions else topics


def _with_partitions(source: PulsarSource, topics: Iterable[Topic]) -> tuple[Topic, ...]:
    """Those that have the partitions of a source: named ones all of them, matched ones some."""
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


def ask(client: AdminClient, question: Question[T]) -> T:
    """The answer, with the blocking client.

    Raises:
        AccessError, SystemUnavailable, ProtocolError: the cluster refuses or does not answer.
    """

    def answer(asked: Sequence[AnyRequest | Place]) -> list[Any]:
        looks = iter(look(client.endpoint, [one for one in asked if isinstance(one, Place)]))
        return [next(looks) if isinstance(one, Place) else client(one) for one in asked]

    return run(question, answer)


async def aask(client: AsyncAdminClient, question: Question[T]) -> T:
    """The answer, with the asynchronous client; calls that do not depend on each other run side by side.

    Raises:
        AccessError, SystemUnavailable, ProtocolError: the cluster refuses or does not answer.
    """

    async def answer(asked: Sequence[AnyRequest | Place]) -> list[Any]:
        places = [one for one in asked if isinstance(one, Place)]
        looks = iter(await asyncio.to_thread(look, client.endpoint, places) if places else ())
        answers = iter(await together(client(one) for one in asked if not isinstance(one, Place)))
        return [next(looks) if isinstance(one, Place) else next(answers) for one in asked]

    return await arun(question, answer)


def look(endpoint: Endpoint, places: Sequence[Place]) -> Sequence[Look]:
    """What readers are sent at these places; blocks.

    Raises:
        SourceNotFound: one of the topics does not exist.
        AccessError, SystemUnavailable: a broker refuses or does not answer.
    """
    if not places:
        return ()
    from airflow_provider_streams.systems.pulsar.wire.broker import BrokerClient  # noqa: PLC0415 - loads Arrow

    with BrokerClient(endpoint) as brokers:
        return brokers.look(places)
