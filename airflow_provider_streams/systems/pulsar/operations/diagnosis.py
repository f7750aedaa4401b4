"""What doctor asks of a Pulsar cluster. Nothing is created: consumers are not durable, and no subscription exists."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Self
from urllib.parse import urlsplit

from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.diagnosis import Grant, ServerTime, Service, bounded
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.queries import Topic, ask, topics_of
from airflow_provider_streams.systems.pulsar.operations.health import check_any_broker
from airflow_provider_streams.systems.pulsar.operations.hold import subscription_name
from airflow_provider_streams.systems.pulsar.source import pulsar_source
from airflow_provider_streams.systems.rest.server_date import HTTP_SECONDS, parse_date

_MOST_TOPICS = 20
"""How many topics of a source are asked: permissions are usually alike in a namespace."""
_TRIES = Backoff(attempts=2)
_HTTP_PORTS = {"http": 80, "https": 443}
_CONSUME = "'consume' on the topic or its namespace"


class PulsarDiagnosis:
    """See `Diagnosis`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._opened = ExitStack()
        self._topics: dict[str, tuple[Topic, ...]] = {}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See `Diagnosis`."""
        return cls(Endpoint.from_options(bounded(options)))

    @cached_property
    def _admin(self) -> AdminClient:
        return self._opened.enter_context(AdminClient(self.endpoint, backoff=_TRIES))

    def services(self, source: Source | None) -> Sequence[Service]:  # noqa: ARG002 - the same for all
        """The brokers' binary port, and the admin API."""
        endpoint, admin = self.endpoint, urlsplit(self.endpoint.admin_url)
        brokers = tuple((one.host, one.port) for one in endpoint.addresses)
        port = admin.port or _HTTP_PORTS.get(admin.scheme, 0)
        return (
            Service(
                "broker", "service_url", lambda: brokers, endpoint.tls, endpoint.ssl_context, self._sign_in_at_broker
            ),
            Service(
                "admin API",
                "admin_url",
                lambda: ((admin.hostname, port),) if admin.hostname else (),
                admin.scheme == "https",
                endpoint.ssl_context,
                lambda: f"Pulsar {self._admin(requests.brokers_version())} accepts us",
                "planning windows",
            ),
        )

    def _sign_in_at_broker(self) -> str:
        how = self.endpoint.auth_method or "no credentials"
        return f"{check_any_broker(self.endpoint)} accepts us ({how})"

    def server_time(self, source: Source | None) -> ServerTime | None:  # noqa: ARG002 - the same for all
        """By the `Date` header of the admin API."""
        if not self.endpoint.admin_url:
            return None
        told = parse_date(self._admin(requests.server_date()))
        return None if told is None else ServerTime(f"the admin API at {self.endpoint.admin_url}", told, HTTP_SECONDS)

    def grants(self, source: Source) -> Sequence[Grant]:
        """To plan and to read need `consume`, and so does a hold."""
        return (
            Grant("plan", _CONSUME, lambda: self._each(source, self._plan)),
            Grant("read", _CONSUME, lambda: self._read(source)),
            Grant("hold", f"{_CONSUME}, for subscriptions", lambda: self._each(source, self._hold), is_needed=False),
        )

    def _plan(self, shard: str) -> str:
        for request in (requests.internal_stats(shard), requests.stats(shard), requests.message_id_at(shard, 0)):
            self._admin(requests.if_exists(request))
        return "the admin API gave ledgers, statistics and a message id by time"

    def _hold(self, shard: str) -> str:
        name = subscription_name(f"doctor-{secrets.token_hex(8)}")
        self._admin(requests.may_subscribe(shard, name))
        return "the admin API lets us ask for a subscription of a hold's name, which does not exist"

    def _read(self, source: Source) -> str:
        from airflow_provider_streams.systems.pulsar.client.wire.broker_client import BrokerClient  # noqa: PLC0415 - loads Arrow

        with BrokerClient(self.endpoint) as brokers:
            brokers.last_message_ids(self._shards(source))
        return self._scoped(source, "the brokers let a consumer without a durable subscription in")

    def _each(self, source: Source, act: Callable[[str], str]) -> str:
        said = [act(shard) for shard in self._shards(source)]
        return self._scoped(source, said[0] if said else "there is no partition yet")

    def _shards(self, source: Source) -> list[str]:
        """One partition of each of the first topics: topics have permissions, partitions have none of their own."""
        return [topic.shards[0] for topic in self._all(source)[:_MOST_TOPICS] if topic.shards]

    def _all(self, source: Source) -> tuple[Topic, ...]:
        if source.key not in self._topics:
            self._topics[source.key] = ask(self._admin, topics_of(pulsar_source(source)))
        return self._topics[source.key]

    def _scoped(self, source: Source, said: str) -> str:
        number = len(self._all(source))
        return f"{said} (asked for {_MOST_TOPICS} of {number} topics)" if number > _MOST_TOPICS else said

    def close(self) -> None:
        """See `Diagnosis`."""
        self._opened.close()
