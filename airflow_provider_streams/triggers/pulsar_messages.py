"""Messages of a Pulsar subscription as events, acknowledged once Airflow has stored them."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_streams.airflow_features import shared_stream_producer
from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.hooks.pulsar import PulsarHook, connection_of
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.queries import topics_of
from airflow_provider_streams.systems.pulsar.operations.subscription_messages import (
    Messages,
    Unread,
    acknowledge,
    is_acknowledged,
    is_never_sent,
    read_next,
    unread,
)
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.source_json import source_from_json
from airflow_provider_streams.template_fields import refuse_templates
from airflow_provider_streams.triggers.asset_watcher_base import QUIET_SECONDS
from airflow_provider_streams.triggers.base import StoredTrigger, backoff_seconds, stored_value

if TYPE_CHECKING:
    from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer
else:
    SharedStreamProducer = shared_stream_producer()

log = logging.getLogger(__name__)

_COMMIT_ATTEMPTS = 5
_MARK_LOOKS, _MARK_SECONDS = 50, 0.1
_HANDED_OVER: dict[int | None, tuple[Hashable, Mapping[str, EntryId]]] = {}
"""What ended triggers of this process handed over: of whom, and up to where, by their ids. For `run` alone."""


class PulsarMessagesTrigger(StoredTrigger, BaseEventTrigger):
    """An event for what comes next on a durable subscription, which must exist and have no other consumer.

    The next messages are read only when Airflow has stored the event with the last ones; then those are acknowledged.
    A triggerer that dies in between delivers them again: at least once, in each partition in order. Triggers of the
    same subscription and bounds share one stream. Before Airflow 3.3, a subscription may have one trigger only.

    Events are notices for small topics, at most one in five seconds. To process a stream, read windows of it.

    The event's payload: `subscription`, and `messages`, each with `shard, ledger, entry, batch_index, publish_time,
    key` and `text` (or `base64` where it is no UTF-8; `bytes` alone where it is too long). What cannot be shown has
    a reason instead: `hidden` is `encrypted`, `part` (of a message in chunks), `more` (a batch has so many `messages`
    more than fit), or `unreadable`, with its `cause`: the subscription moves on past it.

    Args:
        topic: the topic, named as in `PulsarSource`; or give `source`.
        source: instead of `topic`, several topics or a pattern, or that as `systems.source_json.source_to_json` gives
            it, or its JSON text.
        subscription: its name on all of them.
        conn_id: the Airflow connection of `topic`, by default `pulsar_default`; a source has its own.
        max_entries: an event holds the messages of so many stored entries (batches) at most.
        max_messages: and so many messages, except that one batch per partition may always begin.
        max_value_bytes: longer values are left out of the event.
        poll_interval: seconds between two looks while nothing comes; one small request per partition each.
    """

    stored = ("source", "subscription", "max_entries", "max_messages", "max_value_bytes", "poll_interval")

    def __init__(
        self,
        *,
        topic: str | None = None,
        source: PulsarSource | dict[str, Any] | str | None = None,
        subscription: str,
        conn_id: str | None = None,
        max_entries: int = 100,
        max_messages: int = 1000,
        max_value_bytes: int = 4096,
        poll_interval: float = 10.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's is not annotated
        if min(max_entries, max_messages) < 1:
            raise InvalidRequest(f"max_entries and max_messages must be positive, got {max_entries} and {max_messages}")
        stored = stored_value(source)
        given = cast("PulsarSource", source_from_json(stored) if isinstance(stored, dict) else stored)
        connection = connection_of(self, topic, given, conn_id)
        self.source = given or PulsarSource(topic or (), conn_id=connection)
        self.subscription = subscription
        refuse_templates("PulsarMessagesTrigger", (), {"source": self.source, "subscription": subscription})
        self.max_entries, self.max_messages, self.max_value_bytes = max_entries, max_messages, max_value_bytes
        self.poll_interval = poll_interval

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """The next event of a triggerer without shared streams; later ones never call this.

        Such a triggerer never says that it stored an event. But it starts a watcher that has ended again, and only
        after it stored the events from before. So this ends after each event, and the next start in the same process
        acknowledges its messages. A triggerer that died has forgotten them: they come again. A watcher that is removed
        meanwhile may have had no asset for its event: it is cancelled while it waits, and remembers nothing.
        """
        producer = PulsarProducer(self)
        try:
            await self._acknowledge_stored(producer)
            async for payload, ends in producer.open_stream():
                if payload["messages"]:
                    yield TriggerEvent(payload)  # type: ignore[no-untyped-call]  # Airflow's is not annotated
                    await asyncio.sleep(QUIET_SECONDS)
                    _HANDED_OVER[self.trigger_id] = self.shared_stream_key(), ends
                    return
                await producer.acknowledge(ends)
        finally:
            await producer.aclose()

    async def _acknowledge_stored(self, producer: PulsarProducer) -> None:
        """Acknowledge what the trigger before this one handed over; a failure is waited out."""
        whose, ends = _HANDED_OVER.get(self.trigger_id, (None, {}))
        waits = whose == self.shared_stream_key()  # SQLite gives the id of a removed trigger to the next one
        failures = 0
        while waits:
            try:
                await producer.acknowledge(ends)
                waits = False
            except StreamsError as error:
                failures += 1
                log.warning("Acknowledging again in a while: %s", error)
                await asyncio.sleep(backoff_seconds(failures, self.poll_interval))
        _HANDED_OVER.pop(self.trigger_id, None)

    def shared_stream_key(self) -> Hashable | None:
        """Triggers of the same subscription and bounds share a stream."""
        return ("pulsar", tuple(sorted((name, str(value)) for name, value in self.arguments().items())))

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> SharedStreamProducer:
        """What reads and acknowledges, for all that share it."""
        return PulsarProducer(cls(**kwargs))

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """Every event is for every trigger."""
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
        self._barren: Unread = {}
        """Shards whose unread entries held nothing when they were read, and which entries those were."""
        self._settled = asyncio.Event()
        self._settled.set()

    async def open_stream(self) -> AsyncIterator[tuple[Any, Any]]:
        """Payload, and up to where it is to be acknowledged, for ever; a failure is waited out."""
        # loads Arrow: that must not stop the loop
        await asyncio.to_thread(
            importlib.import_module, "airflow_provider_streams.systems.pulsar.operations.peeked_messages"
        )
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
            StreamsError: the cluster refuses; the stream starts again, after what was acknowledged.
        """
        for item in batch:
            if item.outcome.is_clean:
                await self._commit(item.broker_payload)
            else:
                log.warning("An event was not stored (%s): its messages are read again", item.outcome)
        self._settled.set()

    async def acknowledge(self, ends: Mapping[str, EntryId]) -> None:
        """Acknowledge the messages of the last event; the next ones are read from there.

        Raises:
            StreamsError: the cluster does not take it.
        """
        await self._commit(ends)
        self._settled.set()

    async def aclose(self) -> None:
        """Close local connections."""
        await self._hook.aclose()

    async def _next(self) -> Messages | None:
        """What comes next, read in a thread; None: nothing that may be shown or acknowledged."""
        topics = await self._hook.aanswer(topics_of(self._asked.source))
        stored = await self._hook.aanswer(unread(topics, self._asked.subscription))
        fresh = {shard: spans for shard, spans in stored.items() if spans != self._barren.get(shard)}
        if not fresh:
            return None
        found = await self._read(fresh)
        found = replace(found, ends=await self._with_never_sent(found))
        silent = [shard for shard in stored if shard not in fresh or (shard in found.left and shard not in found.ends)]
        self._barren = {shard: stored[shard] for shard in silent}
        return found if found.ends else None

    async def _read(self, stored: Unread) -> Messages:
        from airflow_provider_streams.systems.pulsar.operations.peeked_messages import MessageLimits, NextMessages  # noqa: PLC0415

        bounds = MessageLimits(self._asked.max_entries, self._asked.max_messages, self._asked.max_value_bytes)
        reader = NextMessages(Endpoint.from_options(await self._hook.aoptions()))
        try:
            return await asyncio.to_thread(read_next, reader, stored, bounds)
        finally:
            reader.close()

    async def _with_never_sent(self, found: Messages) -> dict[str, EntryId]:
        """The ends, moved over what follows them and is for no consumer; what cannot be looked at waits for more."""
        ends = dict(found.ends)
        for shard, spans in found.left.items():
            places = (EntryId(span.run, number) for span in spans for number in range(span.first, span.end))
            for place in islice(places, self._asked.max_entries):
                try:
                    if not await self._hook.aanswer(is_never_sent(shard, place)):
                        break
                except StreamsError as error:
                    log.info("Not acknowledged yet, as it cannot be looked at: %s", error)
                    break
                ends[shard] = place
        return ends

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
