"""Transactions: opened, kept open, committed, aborted."""

from __future__ import annotations

import enum
from typing import NamedTuple

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, SourceNotFound
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.client.controller.call import (
    Call,
    KeyedSegment,
    change,
    keyed_segment,
    stream_name,
)

NO_TIME = -(1 << 63)
"""A commit that notes no time."""

_TRANSACTION_OVER = (2, 4, 5, 6, 7)


class TransactionState(enum.IntEnum):
    """Where a transaction stands."""

    UNKNOWN = 0
    OPEN = 1
    COMMITTING = 2
    COMMITTED = 3
    ABORTING = 4
    ABORTED = 5


class Transaction(NamedTuple):
    """A transaction made, and the segments its events go to."""

    high: int
    low: int
    segments: tuple[KeyedSegment, ...]


def begin_transaction(stream: str, lease_ms: int) -> Call[Transaction]:
    """Open a transaction that the controller aborts unless it is pinged every `lease_ms` (600,000 at most)."""
    message = pb.TransactionOrder(stream=stream_name(stream), lease_ms=lease_ms)

    def parse(answer: pb.TransactionAnswer) -> Transaction:
        return Transaction(answer.id.high, answer.id.low, tuple(map(keyed_segment, answer.segments)))

    return Call("createTransaction", stream, message, pb.TransactionAnswer, parse, repeatable=False)


def ping_transaction(stream: str, high: int, low: int, lease_ms: int) -> Call[bool]:
    """Keep a transaction open; False: it is over, whatever its end was."""
    message = pb.TransactionPing(stream=stream_name(stream), id=pb.TransactionId(high=high, low=low), lease_ms=lease_ms)
    refused = {1: InvalidRequest(f"a lease of {lease_ms} ms is too long")}
    action = "keep the transaction open"
    return change("pingTransaction", action, stream, message, refused, unchanged=_TRANSACTION_OVER)


def commit_transaction(stream: str, high: int, low: int, writer: str = "", time: int = NO_TIME) -> Call[bool]:
    """Commit; done when the state says so. Committing twice does no harm."""
    return _end("commit", _key(stream, high, low, writer, time))


def abort_transaction(stream: str, high: int, low: int) -> Call[bool]:
    """Abort; refused after a commit."""
    return _end("abort", _key(stream, high, low, time=NO_TIME))


def _end(verb: str, key: pb.TransactionKey) -> Call[bool]:
    stream, action = f"{key.stream.scope}/{key.stream.stream}", f"{verb} the transaction"
    refused = {
        1: InvalidRequest(f"{stream}: could not {action}: it is unknown, or has ended another way"),
        2: SourceNotFound(stream),
        3: InvalidRequest(f"{stream}: could not {action}: it is unknown"),
    }
    return change(f"{verb}Transaction", action, stream, key, refused)


def transaction_state(stream: str, high: int, low: int) -> Call[TransactionState]:
    """Where a transaction stands; an unknown one is UNKNOWN."""
    return Call("checkTransactionState", stream, _key(stream, high, low), pb.StatusAnswer, _state)


def _state(answer: pb.StatusAnswer) -> TransactionState:
    try:
        return TransactionState(answer.status)
    except ValueError as error:
        raise ProtocolError(f"the controller answers with a transaction's state that is not known: {error}") from error


def _key(stream: str, high: int, low: int, writer: str = "", time: int = 0) -> pb.TransactionKey:
    return pb.TransactionKey(
        stream=stream_name(stream), id=pb.TransactionId(high=high, low=low), writer=writer, timestamp=time
    )
