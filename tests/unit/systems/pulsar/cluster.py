"""A Pulsar cluster in a dictionary, as far as planning can see: entries with publish times, in a mock transport.

What readers are sent (`probe`, `last_message_ids`) is answered without it, as by the binary protocol.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from urllib.parse import unquote

import httpx

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.pulsar.client.admin.client import AsyncAdminClient
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.planning.cluster_state import ClusterState
from airflow_provider_streams.systems.pulsar.planning.entry_probe import EntryHead, EntryProbe, ProbePoint
from airflow_provider_streams.systems.pulsar.planning.planner import Planner, run
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata

ENDPOINT = Endpoint("pulsar://broker:6650", admin_url="http://broker:8080")
EPOCH_MS = 1_795_000_000_000


def at_ms(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def iso(ms: int) -> str:
    return at_ms(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Stored:
    """One entry: `event`, `marker`, `aborted` or `open`."""

    publish_ms: int
    kind: str = "event"
    replicated_from: bytes | None = None


@dataclass
class Topic:
    """Ledgers in order; the last one is open."""

    ledgers: dict[int, list[Stored]] = field(default_factory=lambda: {1: []})
    created_ms: int = EPOCH_MS
    modified_ms: int = EPOCH_MS
    version: int | None = None
    retention: dict | None = field(default_factory=lambda: {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    compacted: int = -1
    cursors: dict[str, str] = field(default_factory=dict)
    state: str = "LedgerOpened"
    trimmed: tuple[int, int] | None = None

    @classmethod
    def of(cls, entries: list[Stored], per_ledger: int = 5, first_ledger: int = 10) -> Topic:
        chunks = [entries[i : i + per_ledger] for i in range(0, len(entries), per_ledger)] or [[]]
        # ledger ids grow, and are not consecutive
        return cls({first_ledger + 3 * i: chunk for i, chunk in enumerate(chunks)})

    def trim(self, ledgers: int, modified_ms: int) -> None:
        for ledger in list(self.ledgers)[:ledgers]:
            gone = self.ledgers.pop(ledger)
            self.trimmed = (ledger, len(gone) - 1)
        self.version = (self.version or len(self.ledgers) + ledgers) + 1
        self.modified_ms = modified_ms

    @property
    def entries(self) -> list[tuple[int, int, Stored]]:
        return [(ledger, i, entry) for ledger, stored in self.ledgers.items() for i, entry in enumerate(stored)]

    @property
    def end(self) -> tuple[int, int]:
        ledger = list(self.ledgers)[-1]
        return ledger, len(self.ledgers[ledger])

    @property
    def last_message(self) -> Position | None:
        last = None
        for ledger, number, entry in self.entries:
            if entry.kind == "open":
                break
            if entry.kind == "event":
                last = Position.of(ledger, number, -1)
        if last is None and self.trimmed and not any(e.kind == "event" for *_, e in self.entries):
            return Position.of(*self.trimmed, -1)
        return last

    @property
    def open(self) -> int:
        return sum(entry.kind == "open" for *_, entry in self.entries)

    def message_id(self, ms: int) -> tuple[int, int]:
        """As the broker: a binary search over all entries for the last one before a time; the place after it."""
        entries = self.entries
        if not entries or entries[0][2].publish_ms >= ms:
            return entries[0][:2] if entries else self.end
        if entries[-1][2].publish_ms < ms:
            return self.end
        before, after = 0, len(entries) - 1
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if entries[middle][2].publish_ms < ms else (before, middle)
        return entries[after][:2]

    @property
    def readable(self) -> list[tuple[int, int, Stored]]:
        """What readers are sent."""
        entries = self.entries
        until = next((index for index, (_, _, entry) in enumerate(entries) if entry.kind == "open"), len(entries))
        return [one for one in entries[:until] if one[2].kind == "event"]

    def probe(self, ledger: int, number: int, wanted: int) -> EntryProbe:
        met = [(led, n, e) for led, n, e in self.readable if (led, n) >= (ledger, number)][:wanted]
        heads = [EntryHead(led, n, EntryMetadata(e.publish_ms, replicated_from=e.replicated_from)) for led, n, e in met]
        last = self.last_message
        return EntryProbe(tuple(heads), (last.parts[0], last.parts[1]) if last else None)

    def internal_stats(self) -> dict:
        *closed, (open_id, open_entries) = self.ledgers.items()
        lac = next(((led, n) for led, n, _ in reversed(self.entries)), self.trimmed or (open_id, -1))
        return {
            "currentLedgerEntries": len(open_entries),
            "currentLedgerSize": 100 * len(open_entries),
            "lastLedgerCreatedTimestamp": iso(self.modified_ms),
            "lastConfirmedEntry": f"{lac[0]}:{lac[1]}",
            "state": self.state,
            "ledgers": [{"ledgerId": k, "entries": len(v), "size": 100 * len(v)} for k, v in closed]
            + [{"ledgerId": open_id, "entries": 0, "size": 0}],
            "cursors": {name: {"markDeletePosition": mark} for name, mark in self.cursors.items()},
            "compactedLedger": {"ledgerId": self.compacted, "entries": -1, "size": -1},
        }

    def internal_info(self) -> dict:
        *closed, (open_id, _) = self.ledgers.items()
        return {
            "version": len(self.ledgers) if self.version is None else self.version,
            "creationDate": iso(self.created_ms),
            "modificationDate": iso(self.modified_ms),
            "ledgers": [
                {"ledgerId": k, "entries": len(v), "size": 1, "timestamp": max((e.publish_ms for e in v), default=0)}
                for k, v in closed
            ]
            + [{"ledgerId": open_id, "timestamp": EPOCH_MS * 2}],
            "cursors": {name: {} for name in self.cursors},
        }

    def peek(self, ledger: int, number: int) -> httpx.Response:
        """What the admin API shows of an open transaction's message."""
        return httpx.Response(200, headers={"X-Pulsar-publish-time": iso(self.ledgers[ledger][number].publish_ms)})

    @property
    def max_read(self) -> tuple[int, int]:
        """The last entry before the first open transaction."""
        before = self.end[0], -1
        for ledger, number, entry in self.entries:
            if entry.kind == "open":
                break
            before = ledger, number
        return before


def refuse(status: int, reason: str) -> httpx.Response:
    return httpx.Response(status, json={"reason": reason})


@dataclass
class Cluster:
    topics: dict[str, Topic] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    looked: list[ProbePoint] = field(default_factory=list)

    def add(self, name: str, topic: Topic) -> Topic:
        self.topics[f"persistent://public/default/{name}"] = topic
        return topic

    def handle(self, request: httpx.Request) -> httpx.Response:
        path = unquote(request.url.path)
        self.requests.append(f"{request.method} {path}")
        if path == "/admin/v2/clusters":
            return httpx.Response(200, json=["standalone"])
        buffer = re.fullmatch(r"/admin/v3/transactions/transactionBufferStats/(.+)", path)
        if buffer:
            ledger, entry = self.topics[f"persistent://{buffer[1]}"].max_read
            return httpx.Response(200, json={"state": "Ready", "maxReadPosition": f"{ledger}:{entry}"})
        match = re.fullmatch(r"/admin/v2/persistent/([^/]+/[^/]+)(?:/([^/]+)(?:/(.+))?)?", path)
        assert match, path
        if match[2] is None:
            return httpx.Response(200, json=list(self.topics))
        if match[2] == "partitioned" and match[3] is None:
            return httpx.Response(200, json=list(self.partitions))
        return self._topic(f"persistent://{match[1]}/{match[2]}", match[3])

    def _topic(self, name: str, call: str) -> httpx.Response:
        if name in self.partitions and call in {"partitions", "partitioned-internalStats", "internal-info"}:
            shards = [f"{name}-partition-{number}" for number in range(self.partitions[name])]
            made = {shard: self.topics[shard] for shard in shards if shard in self.topics}
            if call == "internal-info" and len(made) < len(shards):
                return refuse(500, "\n --- An unexpected error occurred in the server ---\n\nMessage: HTTP 500 {}")
            of_all = {
                "partitions": len(shards),
                "partitioned-internalStats": {shard: topic.internal_stats() for shard, topic in made.items()},
                "internal-info": {shard: topic.internal_info() for shard, topic in made.items()},
            }
            return httpx.Response(200, json={"partitions": of_all[call]})
        if name in self.partitions and call == "partitioned-stats":
            shards = [self.topics.get(f"{name}-partition-{number}") for number in range(self.partitions[name])]
            return httpx.Response(200, json={"ongoingTxnCount": sum(topic.open for topic in shards if topic)})
        topic = self.topics.get(name) or (Topic() if name in self.partitions and call == "retention" else None)
        if topic is None:
            return refuse(404, f"Topic {name} not found")
        kind, _, rest = call.partition("/")
        return {
            "messageid": lambda: httpx.Response(
                200, json=dict(zip(("ledgerId", "entryId"), topic.message_id(int(rest)), strict=True))
            ),
            "ledger": lambda: topic.peek(*map(int, rest.split("/entry/"))),
            "partitions": lambda: httpx.Response(200, json={"partitions": 0}),
            "stats": lambda: httpx.Response(200, json={"ongoingTxnCount": topic.open}),
            "internalStats": lambda: httpx.Response(200, json=topic.internal_stats()),
            "internal-info": lambda: httpx.Response(200, json=topic.internal_info()),
            "retention": lambda: (
                httpx.Response(200, json=topic.retention)
                if topic.retention is not None
                else refuse(403, "Unauthorized to validateNamespacePolicyOperation for operation [READ]")
            ),
        }[kind]()

    def last_message_ids(self, shards) -> dict[str, Position | None]:
        return {shard: self._there(shard).last_message for shard in shards}

    def probe(self, places) -> list[EntryProbe]:
        self.looked += places
        return [self._there(place.topic).probe(place.ledger, place.entry, place.wanted) for place in places]

    def _there(self, shard: str) -> Topic:
        if shard not in self.topics:
            raise SourceNotFound(shard)
        return self.topics[shard]

    def ask(self, work, *, now: datetime | None = None):
        """Run `work(planner)` against this cluster."""

        async def inner():
            transport = httpx.MockTransport(self.handle)
            async with AsyncAdminClient(ENDPOINT, transport=transport, backoff=Backoff(2, 0, 0)) as admin:
                clock = {} if now is None else {"clock": lambda: now}
                return await work(Planner(ClusterState(admin, self, "here"), **clock))

        return run(inner())

    def plan(self, request, *, now: datetime | None = None):
        return self.ask(lambda planner: planner.plan(request), now=now)


def replace_kind(entries: list[Stored], kinds: list[str]) -> list[Stored]:
    return [replace(entry, kind=kind) for entry, kind in zip(entries, kinds, strict=True)]
