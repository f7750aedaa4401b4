"""Messages of a Pulsar subscription as events, acknowledged once Airflow has stored them."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.hooks.pulsar_messages import Bounds, Messages, acknowledge, is_acknowledged, next_messages
from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.systems.pulsar.admin.answers import EntryId
from airflow_provider_streams.systems.pulsar.questions import topics_of
from airflow_provider_streams.triggers.state import backoff_seconds
from airflow_provider_streams.triggers.watching import QUIET_SECONDS

log = logging.getLogger(__name__)

_COMMIT_ATTEMPTS = 5
_MARK_LOOKS, _MARK_SECONDS = 50, 0.1


class PulsarMessagesTrigger(BaseEventTrigger):
    """An event for what comes next on a durable subscription, which must exist and have no other consumer.

    The next messages are read only when Airflow has stored the event with the last ones; then those are acknowledged.
    A triggerer that dies in between delivers them again: at least once, in each partition in order. Triggers of the
    same subscription and bounds share one stream.

    Events are notices for small topics, at most one in five seconds. To process a stream, read windows of it.

    The event's payload: `subscription`, and `messages`, each with `shard, ledger, entry, batch_index, publish_time,
    key` and `text` (or `base64` where it is no UTF-8; `bytes` alone where it is too long).

    Args:
        topics: a topic or several, named as in `PulsarSource`.
        subscription: its name on all of them.
        conn_id: the Airflow connection.
        max_entries: an event holds the messages of so many stored entries (batches) at most.
        max_value_bytes: longer values are left out of the event.
        poll_interval: seconds between two looks while nothing comes; one small request per partition each.
    """

    def __init__(
        self,
        *,
        topics: str | Sequence[str],
        subscription: str,
        conn_id: str = PulsarHook.default_conn_name,
        max_entries: int = 100,
        max_value_bytes: int = 4096,
        poll_interval: float = 10.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's is not annotated
        if max_entries < 1:
            raise InvalidRequest(f"max_entries must be positive, got {max_entries}")
        self.source = PulsarSource(topics, conn_id=conn_id)
        self.subscription = subscription
        self.max_entries, self.max_value_bytes, self.poll_interval = max_entries, max_value_bytes, poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no secret."""
        return (
            "airflow_provider_streams.triggers.pulsar_messages.PulsarMessagesTrigger",
            {
                "topics": list(self.source.topics),
                "subscription": self.subscription,
                "conn_id": self.source.conn_id,
                "max_entries": self.max_entries,
                "max_value_bytes": self.max_value_bytes,
                "poll_interval": self.poll_interval,
            },
        )

    def run(self) -> AsyncIterator[TriggerEvent]:
        """Never used: every triggerer that this package supports shares streams."""
        raise NotImplementedError("acknowledgement needs Airflow's shared streams")

    def shared_stream_key(self) -> Hashable | None:
        """Triggers of the same subscription and bounds share a stream."""
        _, arguments = self.serialize()
        return ("pulsar", tuple(sorted((name, str(value)) for name, value in arguments.items())))

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> SharedStreamProducer:
        """What reads and acknowledges, for all that share it."""
        return PulsarProducer(cls(**kwargs))

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """Every event is for everyone."""
        async for payload in shared_stream:
            if payload["messages"]:
                yield TriggerEvent(payload)  # type: ignore[no-untyped-call]  # Airflow's is not annotated


class PulsarProducer(SharedStreamProducer):
    """Reads the next messages when the last ones were acknowledged: at most one event is under way.

    Args:
        asked: whose messages.
        hook: another way to reach the cluster, for tests.
        quiet_seconds: the least time between two events.
    """

    def __init__(
        self, asked: PulsarMessagesTrigger, *, hook: PulsarHook | None = None, quiet_seconds: float = QUIET_SECONDS
    ) -> None:
        self._asked, self._quiet_seconds = asked, quiet_seconds
        self._hook = hook or PulsarHook(asked.source.conn_id)
        self._settled = asyncio.Event()
        self._settled.set()

    async def open_stream(self) -> AsyncIterator[tuple[Any, Any]]:
        """Payload, and up to where it is to be acknowledged, for ever; a failure is waited out."""
        # batches are taken apart by code that loads Arrow: that must not stop the loop
        await asyncio.to_thread(importlib.import_module, "airflow_provider_streams.systems.pulsar.decode.protobuf")
        failures = 0
        while True:
            await self._settled.wait()
            try:
                found = await self._next()
            except StreamsError as error:
                failures += 1
                log.warning("Looking again in a while: %s", error)
                await asyncio.sleep(backoff_seconds(failures, self._asked.poll_interval))
                continue
            failures = 0
            if found is None:
                await asyncio.sleep(self._asked.poll_interval)
                continue
            self._settled.clear()
            yield {"subscription": self._asked.subscription, "messages": list(found.messages)}, found.ends
            await asyncio.sleep(self._quiet_seconds)

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Acknowledge what was stored; what was not is read again.

        Raises:
            StreamsError: the cluster does not take it; the stream starts anew, from what was acknowledged.
        """
        for item in batch:
            if item.outcome.is_clean:
                await self._commit(item.broker_payload)
            else:
                log.warning("An event was not stored (%s): its messages are read again", item.outcome)
        self._settled.set()

    async def aclose(self) -> None:
        """Close local connections."""
        await self._hook.aclose()

    async def _next(self) -> Messages | None:
        bounds = Bounds(self._asked.max_entries, self._asked.max_value_bytes)
        topics = await self._hook.aanswer(topics_of(self._asked.source))
        return await self._hook.aanswer(next_messages(topics, self._asked.subscription, bounds))

    async def _commit(self, ends: Mapping[str, EntryId]) -> None:
        for attempt in range(1, _COMMIT_ATTEMPTS + 1):
            try:
                await self._hook.aanswer(acknowledge(ends, self._asked.subscription))
                return await self._await_marks(ends)
            except StreamsError as error:
                if attempt == _COMMIT_ATTEMPTS or not error.retryable:
                    raise
                await asyncio.sleep(backoff_seconds(attempt, 1.0))
        raise AssertionError("the last attempt returns or raises")

    async def _await_marks(self, ends: Mapping[str, EntryId]) -> None:
        """Until the broker has moved the marks: reading before that would give the same messages again."""
        for _ in range(_MARK_LOOKS):
            if await self._hook.aanswer(is_acknowledged(ends, self._asked.subscription)):
                return
            await asyncio.sleep(_MARK_SECONDS)
        log.warning("The broker has not moved subscription %s: messages may come again", self._asked.subscription)
