"""Transactions: opened, kept open, committed, aborted."""

from __future__ import annotations

import enum
from typing import NamedTuple

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, SourceNotFound
from airflow_provider_streams.systems.pravega import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.calls.call import (
    Call,
    Failure,
    KeyedSegment,
    done,
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
    """Open a transaction that is aborted when nobody pings it for `lease_ms` (servers allow 600,000 at most)."""
    message = pb.TransactionOrder(stream=stream_name(stream), lease_ms=lease_ms)

    def parse(answer: pb.TransactionAnswer) -> Transaction:
        return Transaction(answer.id.high, answer.id.low, tuple(map(keyed_segment, answer.segments)))

    return Call("createTransaction", stream, message, pb.TransactionAnswer, parse, repeatable=False)


def ping_transaction(stream: str, high: int, low: int, lease_ms: int) -> Call[bool]:
    """Keep a transaction open; False: it is over, whatever its end was."""

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {1: lambda: InvalidRequest(f"a lease of {lease_ms} ms is too long")}
        if answer.status in _TRANSACTION_OVER:
            return False
        return done("keep the transaction open", answer.status, refused, stream)

    message = pb.TransactionPing(stream=stream_name(stream), id=pb.TransactionId(high=high, low=low), lease_ms=lease_ms)
    return Call("pingTransaction", stream, message, pb.StatusAnswer, parse)


def commit_transaction(stream: str, high: int, low: int, writer: str = "", time: int = NO_TIME) -> Call[bool]:
    """Commit; done when the state says so. Committing twice does no harm."""
    return _end_transaction(
        "commitTransaction", "commit the transaction", stream, (high, low), writer=writer, time=time
    )


def abort_transaction(stream: str, high: int, low: int) -> Call[bool]:
    """Abort; refused after a commit."""
    return _end_transaction("abortTransaction", "abort the transaction", stream, (high, low))


def transaction_state(stream: str, high: int, low: int) -> Call[TransactionState]:
    """Where a transaction stands; an unknown one is UNKNOWN."""
    message = pb.TransactionKey(stream=stream_name(stream), id=pb.TransactionId(high=high, low=low))
    return Call("checkTransactionState", stream, message, pb.StatusAnswer, _state)


def _state(answer: pb.StatusAnswer) -> TransactionState:
    try:
        return TransactionState(answer.status)
    except ValueError as error:
        raise ProtocolError(f"the controller answers with a transaction's state that is not known: {error}") from error


def _end_transaction(
    method: str, action: str, stream: str, key: tuple[int, int], *, writer: str = "", time: int = NO_TIME
) -> Call[bool]:
    message = pb.TransactionKey(
        stream=stream_name(stream), id=pb.TransactionId(high=key[0], low=key[1]), writer=writer, timestamp=time
    )

    def parse(answer: pb.StatusAnswer) -> bool:
        refused: dict[int, Failure] = {
            1: lambda: InvalidRequest(f"{stream}: could not {action}: it is unknown, or has ended another way"),
            2: lambda: SourceNotFound(stream),
            3: lambda: InvalidRequest(f"{stream}: could not {action}: it is unknown"),
        }
        return done(action, answer.status, refused, stream)

    return Call(method, stream, message, pb.StatusAnswer, parse)
