"""The two edges of a Schema Registry, blocking and asynchronous; rules of several calls run on both."""

from __future__ import annotations

from typing import Any, TypeVar

from airflow_provider_streams.systems.io_free_rules import Rule, arun, run, together
from airflow_provider_streams.systems.pravega.schema_registry.endpoint import RegistryEndpoint
from airflow_provider_streams.systems.rest.client import AsyncRestClient, RestClient
from airflow_provider_streams.systems.rest.request import AnyRequest

T = TypeVar("T")

Question = Rule[list[AnyRequest], T]


class RegistryClient(RestClient[RegistryEndpoint]):
    """Calls a registry and waits."""

    def ask(self, question: Question[T]) -> T:
        """The answer to a question of several calls."""
        return run(question, lambda asked: [self(one) for one in asked])


class AsyncRegistryClient(AsyncRestClient[RegistryEndpoint]):
    """The same for one event loop; calls that do not depend on each other run side by side."""

    async def ask(self, question: Question[T]) -> T:
        """See `RegistryClient.ask`."""

        async def answer(asked: list[AnyRequest]) -> list[Any]:
            return await together(self(one) for one in asked)

        return await arun(question, answer)
