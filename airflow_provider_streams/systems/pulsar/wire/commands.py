"""Pulsar's commands as values, to bytes and back. Numbers are those of the public `PulsarApi.proto`.

A command's body is the field of `BaseCommand` whose number is the command's type, so one number names both.
"""

# ruff: noqa: RUF009 - `nested` is a dataclasses.field
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_streams.errors import ProtocolError
from airflow_provider_streams.systems.pulsar.protobuf import encode_field
from airflow_provider_streams.systems.pulsar.wire.schema import (
    Message,
    blob,
    flag,
    integer,
    nested,
    read_fields,
    signed_integer,
    text,
    texts,
)

PROTOCOL_VERSION = 19
MESSAGE, PING, PONG = 9, 18, 19
LOOKUP_REDIRECT, LOOKUP_CONNECT, LOOKUP_FAILED = 0, 1, 2
PARTITIONS_FAILED = 1
EXCLUSIVE = 0


@dataclass(frozen=True, slots=True)
class MessageIdData(Message):
    """Where a message lies; -1 for `batch_index` when it is not one of a batch."""

    ledger: int = signed_integer(1, 0)
    entry: int = signed_integer(2, 0)
    partition: int = signed_integer(3, -1)
    batch_index: int = signed_integer(4, -1)
    batch_size: int | None = signed_integer(6)


LATEST = MessageIdData((1 << 63) - 1, (1 << 63) - 1)
EARLIEST = MessageIdData(-1, -1)


@dataclass(frozen=True, slots=True)
class FeatureFlags(Message):
    """What a side understands."""

    auth_refresh: bool = flag(1, False)
    broker_entry_metadata: bool = flag(2, False)
    partial_producer: bool = flag(3, False)
    topic_watchers: bool = flag(4, False)
    partitions_without_auto_creation: bool = flag(5, False)


@dataclass(frozen=True, slots=True)
class AuthData(Message):
    """An authentication step."""

    method: str | None = text(1)
    data: bytes | None = blob(2)


@dataclass(frozen=True, slots=True)
class Command(Message):
    """What every command has: its type."""

    type: ClassVar[int]

    def encode(self) -> bytes:
        """As a `BaseCommand`."""
        return encode_field(1, self.type) + encode_field(self.type, self.to_bytes())


@dataclass(frozen=True, slots=True)
class Connect(Command):
    """-> who we are."""

    type: ClassVar[int] = 2
    client_version: str = text(1, "")
    auth_data: bytes | None = blob(3)
    protocol_version: int = integer(4, 0)
    auth_method: str | None = text(5)
    proxy_to_broker_url: str | None = text(6)
    feature_flags: FeatureFlags | None = nested(10, FeatureFlags)


@dataclass(frozen=True, slots=True)
class Connected(Command):
    """<- who they are; `max_message_size` in bytes."""

    type: ClassVar[int] = 3
    server_version: str = text(1, "")
    protocol_version: int = integer(2, 0)
    max_message_size: int | None = integer(3)
    feature_flags: FeatureFlags | None = nested(4, FeatureFlags)


@dataclass(frozen=True, slots=True)
class AuthChallenge(Command):
    """<- show your credentials again."""

    type: ClassVar[int] = 36
    server_version: str | None = text(1)
    challenge: AuthData | None = nested(2, AuthData)
    protocol_version: int | None = integer(3)


@dataclass(frozen=True, slots=True)
class AuthResponse(Command):
    """-> our credentials as they are now."""

    type: ClassVar[int] = 37
    client_version: str | None = text(1)
    response: AuthData | None = nested(2, AuthData)
    protocol_version: int | None = integer(3)


@dataclass(frozen=True, slots=True)
class Partitions(Command):
    """-> how many partitions has this topic? Never creates it."""

    type: ClassVar[int] = 21
    topic: str = text(1, "")
    request_id: int = integer(2, 0)
    auto_creation: bool = flag(6, False)


@dataclass(frozen=True, slots=True)
class PartitionsAnswer(Command):
    """<- that many; 0: not partitioned, or not there."""

    type: ClassVar[int] = 22
    partitions: int = integer(1, 0)
    request_id: int = integer(2, 0)
    response: int = integer(3, 0)
    error: int | None = integer(4)
    message: str = text(5, "")


@dataclass(frozen=True, slots=True)
class Lookup(Command):
    """-> which broker owns this topic?"""

    type: ClassVar[int] = 23
    topic: str = text(1, "")
    request_id: int = integer(2, 0)
    authoritative: bool = flag(3, False)
    listener_name: str | None = text(7)


@dataclass(frozen=True, slots=True)
class LookupAnswer(Command):
    """<- that one, or ask there, or call it through the proxy you called."""

    type: ClassVar[int] = 24
    broker_url: str = text(1, "")
    broker_url_tls: str = text(2, "")
    response: int = integer(3, LOOKUP_CONNECT)
    request_id: int = integer(4, 0)
    authoritative: bool = flag(5, False)
    error: int | None = integer(6)
    message: str = text(7, "")
    proxy_through_service_url: bool = flag(8, False)


@dataclass(frozen=True, slots=True)
class Subscribe(Command):
    """-> send me the topic from `start`. The defaults leave nothing behind: not durable, never creating."""

    type: ClassVar[int] = 4
    topic: str = text(1, "")
    subscription: str = text(2, "")
    subscription_type: int = integer(3, EXCLUSIVE)
    consumer_id: int = integer(4, 0)
    request_id: int = integer(5, 0)
    consumer_name: str | None = text(6)
    durable: bool = flag(8, False)
    start: MessageIdData | None = nested(9, MessageIdData)
    read_compacted: bool = flag(11, False)
    force_topic_creation: bool = flag(15, False)


@dataclass(frozen=True, slots=True)
class Success(Command):
    """<- done."""

    type: ClassVar[int] = 13
    request_id: int = integer(1, 0)


@dataclass(frozen=True, slots=True)
class Error(Command):
    """<- not done; `error` is a `ServerError`."""

    type: ClassVar[int] = 14
    request_id: int = signed_integer(1, -1)
    error: int = integer(2, 0)
    message: str = text(3, "")


@dataclass(frozen=True, slots=True)
class Flow(Command):
    """-> so many messages more (not entries)."""

    type: ClassVar[int] = 11
    consumer_id: int = integer(1, 0)
    permits: int = integer(2, 0)


@dataclass(frozen=True, slots=True)
class CloseConsumer(Command):
    """Both ways: this consumer ends here; from the broker with the new owner, if it knows."""

    type: ClassVar[int] = 16
    consumer_id: int = integer(1, 0)
    request_id: int = integer(2, 0)
    broker_url: str | None = text(3)
    broker_url_tls: str | None = text(4)


@dataclass(frozen=True, slots=True)
class MessageHeader(Command):
    """<- an entry; it follows in the same frame (`frames.py`)."""

    type: ClassVar[int] = MESSAGE
    consumer_id: int = integer(1, 0)
    message_id: MessageIdData | None = nested(2, MessageIdData)
    redelivery_count: int = integer(3, 0)


@dataclass(frozen=True, slots=True)
class BrokerEntry(Message):
    """What the broker notes beside an entry, if it is set up to: its own clock, and the index of the last message."""

    timestamp_ms: int | None = signed_integer(1)
    index: int | None = signed_integer(2)


@dataclass(frozen=True, slots=True)
class Ping(Command):
    """Both ways: are you there?"""

    type: ClassVar[int] = PING


@dataclass(frozen=True, slots=True)
class Pong(Command):
    """Both ways: I am."""

    type: ClassVar[int] = PONG


@dataclass(frozen=True, slots=True)
class EndOfTopic(Command):
    """<- a terminated topic has no more."""

    type: ClassVar[int] = 27
    consumer_id: int = integer(1, 0)


@dataclass(frozen=True, slots=True)
class LastMessageId(Command):
    """-> which is the last message that can be sent?"""

    type: ClassVar[int] = 29
    consumer_id: int = integer(1, 0)
    request_id: int = integer(2, 0)


@dataclass(frozen=True, slots=True)
class LastMessageIdAnswer(Command):
    """<- that one; `mark_delete`: everything up to there is behind this consumer's cursor."""

    type: ClassVar[int] = 30
    last: MessageIdData | None = nested(1, MessageIdData)
    request_id: int = integer(2, 0)
    mark_delete: MessageIdData | None = nested(3, MessageIdData)


@dataclass(frozen=True, slots=True)
class TopicsOfNamespace(Command):
    """-> which topics are there?"""

    type: ClassVar[int] = 32
    request_id: int = integer(1, 0)
    namespace: str = text(2, "")
    mode: int = integer(3, 0)


@dataclass(frozen=True, slots=True)
class TopicsOfNamespaceAnswer(Command):
    """<- these, partitions one by one."""

    type: ClassVar[int] = 33
    request_id: int = integer(1, 0)
    topics: tuple[str, ...] = texts(2)


@dataclass(frozen=True, slots=True)
class TopicMigrated(Command):
    """<- the topic lives in another cluster now."""

    type: ClassVar[int] = 68
    resource_id: int = integer(1, 0)
    resource_type: int = integer(2, 0)
    broker_url: str = text(3, "")
    broker_url_tls: str = text(4, "")


@dataclass(frozen=True, slots=True)
class Ignored(Command):
    """<- a command that a reader need not know."""

    type: ClassVar[int] = 0
    number: int = integer(1, 0)


COMMANDS: dict[int, type[Command]] = {
    command.type: command
    for command in (
        Connect,
        Connected,
        AuthChallenge,
        AuthResponse,
        Partitions,
        PartitionsAnswer,
        Lookup,
        LookupAnswer,
        Subscribe,
        Success,
        Error,
        Flow,
        CloseConsumer,
        MessageHeader,
        Ping,
        Pong,
        EndOfTopic,
        LastMessageId,
        LastMessageIdAnswer,
        TopicsOfNamespace,
        TopicsOfNamespaceAnswer,
        TopicMigrated,
    )
}
"""By type."""


def decode_command(data: bytes) -> Command:
    """The command in a `BaseCommand`.

    Raises:
        ProtocolError: the bytes are not one.
    """
    number, bodies = 0, dict[int, bytes]()
    for field, value in read_fields(data):
        if isinstance(value, bytes):
            bodies[field] = value
        elif field == 1:
            number = value
    if not number:
        raise ProtocolError("a command without a type")
    command = COMMANDS.get(number)
    return command.from_bytes(bodies.get(number, b"")) if command else Ignored(number)
