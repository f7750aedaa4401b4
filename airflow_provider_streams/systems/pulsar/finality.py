"""Whether what is stored before a place can still become readable: open transactions hold back all behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_streams.errors import ProtocolError, SystemUnavailable
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import EntryId, TopicStats, TransactionBuffer
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient
from airflow_provider_streams.systems.pulsar.admin.peek import PeekedEntry
from airflow_provider_streams.systems.pulsar.cuts import Shard, waiting_entry
from airflow_provider_streams.systems.pulsar.layout import after
from airflow_provider_streams.systems.pulsar.questions import Topic


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an open transaction holds back in a shard."""

    shard: Shard
    last: EntryId
    """The last entry before the wanted end that waits."""
    first: Position
    """The first one: a message of the transaction."""

    def __str__(self) -> str:
        return f"entry {self.last.ledger}:{self.last.entry} waits for an open transaction"


async def waiting_shards(
    admin: AsyncAdminClient, shards: Sequence[Shard], ends: Mapping[str, Position]
) -> tuple[dict[str, Waiting], set[str]]:
    """The shards whose end is not final; and those with something behind their tail that is.

    Only a shard that stores entries between its tail and its end is asked about. Once everything there is final, a
    tail that is asked for after that has all that is readable before it.
    """
    asked = [(shard, entry) for shard in shards if (entry := waiting_entry(shard, ends[shard.name]))]
    buffers = await admin.all([requests.transaction_buffer(shard.name) for shard, _ in asked])
    waiting = {
        shard.name: Waiting(shard, entry, _first_open(shard, buffer))
        for (shard, entry), buffer in zip(asked, buffers, strict=True)
        if buffer is not None and not is_final(entry, buffer)
    }
    return waiting, {shard.name for shard, _ in asked} - waiting.keys()


def is_final(entry: EntryId, buffer: TransactionBuffer) -> bool:
    """Whether an entry and all before it are readable now or never."""
    return buffer.max_read is not None and entry <= buffer.max_read


def _first_open(shard: Shard, buffer: TransactionBuffer) -> Position:
    layout = shard.layout
    return layout.head if buffer.max_read is None else layout.shifted(layout.inside(after(buffer.max_read)), 0)


async def published_open(admin: AsyncAdminClient, waiting: Waiting) -> int | None:
    """When the first message that waits was published, in milliseconds; None: that cannot be told.

    Readers are not sent it, so it is the admin API that tells, as far as it can: not of a chunk of a compressed
    message, nor of one whose key and properties are larger than an HTTP header may be.
    """
    ledger, entry, _ = waiting.first.parts
    try:
        seen: PeekedEntry | None = await admin(requests.peek(waiting.shard.name, ledger, entry))
    except (SystemUnavailable, ProtocolError):
        return None
    if seen is None or seen.marker_type is not None or seen.publish_time is None:
        return None
    return int(seen.publish_time.timestamp() * 1000)


async def has_open_transactions(admin: AsyncAdminClient, topics: Iterable[Topic]) -> bool:
    """Whether some transaction is open on one of these topics; one call for each."""
    calls = [
        requests.partitioned_stats(topic.name) if topic.partitions else requests.stats(topic.name) for topic in topics
    ]
    stats: list[TopicStats] = await admin.all(calls)
    return any(one.open_transactions for one in stats)
