"""Pulsar's commands to bytes and back, and what a broker's answers mean. `commands.proto` generates the messages.

A command is the body alone, such as `CommandFlow`. On the wire, it travels in a `BaseCommand`.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    InvalidName,
    InvalidRequest,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb

MESSAGE: Final = pb.BaseCommand.MESSAGE_FIELD_NUMBER
"""The type of the command that brings an entry."""

_BODIES: Final = {field.number: field for field in pb.BaseCommand.DESCRIPTOR.fields if field.message_type}
"""The field of a command in `BaseCommand`, by the command's type."""
_TYPES: Final = {field.message_type: number for number, field in _BODIES.items()}

TRANSIENT: Final = frozenset(
    {
        pb.UnknownError,
        pb.MetadataError,
        pb.PersistenceError,
        pb.ConsumerBusy,
        pb.ServiceNotReady,
        pb.TooManyRequests,
    }
)
"""The errors that may pass."""

_LONGEST_DETAIL = 300

Command = Message
"""Any of the protocol's commands."""
Place = tuple[int, int]
"""Ledger and entry."""
M = TypeVar("M", bound=Message)


def encode_command(command: Command) -> bytes:
    """A command as a `BaseCommand`."""
    number = _TYPES[command.DESCRIPTOR]
    base = pb.BaseCommand(type=number)
    getattr(base, _BODIES[number].name).CopyFrom(command)
    return base.SerializeToString()


def decode_command(data: bytes) -> Command | None:
    """The command in a `BaseCommand`; None if readers do not need commands of its type.

    Raises:
        ProtocolError: the bytes are not a command.
    """
    base = parse(pb.BaseCommand, data)
    if not base.type:
        raise ProtocolError("a command without a type")
    field = _BODIES.get(base.type)
    command: Command | None = getattr(base, field.name) if field else None
    return command


def parse(kind: type[M], data: bytes) -> M:
    """The message of this kind in these bytes, without unknown fields; raises `ProtocolError` for other bytes."""
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise ProtocolError(f"{len(data)} bytes that should be a {kind.DESCRIPTOR.name} are not: {error}") from error


def as_text(data: bytes) -> str:
    """A text that a broker wrote, with a mark for each broken character."""
    return data.decode("utf-8", "replace")


def place_of(message_id: pb.MessageIdData) -> Place | None:
    """Ledger and entry of an id in an answer; None if there is no such message."""
    return (message_id.ledgerId, message_id.entryId) if message_id.entryId >= 0 else None


def ends_before(answer: pb.CommandGetLastMessageIdResponse, following: Place, *, idle: bool) -> bool:
    """Whether the broker has nothing to send from `following` on.

    After a silence (`idle`), the consumer's own place counts as well. If retention removes the entries meanwhile, the
    broker moves the consumer past them and never sends them.
    """
    last, passed = place_of(answer.last_message_id), place_of(answer.consumer_mark_delete_position)
    return last is None or last < following or (idle and passed is not None and passed >= last)


class Refusal(Protocol):
    """An answer that may carry a `ServerError`."""

    error: int
    message: bytes


def server_error(refusal: Refusal, *, where: str, topic: str = "", action: str = "", note: str = "") -> StreamsError:
    """The error for a refusal of the broker at `where`, with a `note` of what we know of its cause."""
    number = refusal.error
    # brokers append Java stack traces
    detail = redact(as_text(refusal.message).strip().split("\n", 1)[0] + note)[:_LONGEST_DETAIL]
    match number:
        case pb.AuthenticationError:
            return AuthenticationFailed(where, detail)
        case pb.AuthorizationError:
            return NotAuthorized(where, action or "read", detail)
        case pb.TopicNotFound:
            return SourceNotFound(topic, where)
        case pb.InvalidTopicName:
            return InvalidName(topic, detail)
    name = pb.ServerError.Name(number) if number in pb.ServerError.values() else f"error {number}"
    said = f"{action or 'a request'} failed with {name}: {detail}"
    return SystemUnavailable(where, said) if number in TRANSIENT else ProtocolError(f"{where}: {said}")


def lookup_error(refusal: pb.CommandLookupTopicResponse, *, where: str, topic: str, listener: str) -> StreamsError:
    """The error for a refused lookup, which asked for an advertised listener; an empty one is the broker's own.

    Brokers say `ServiceNotReady` if they have no such listener, although waiting does not add one.
    """
    said = as_text(refusal.message)
    if listener and refusal.error == pb.ServiceNotReady and f"{listener} listener" in said:
        return InvalidRequest(
            f"{where} has no advertised listener {listener!r}: give the option listener_name a name in the brokers' "
            "advertisedListeners, or leave it out"
        )
    return server_error(refusal, where=where, topic=topic, action=f"look up {topic}")
