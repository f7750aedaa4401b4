"""What a broker's `ServerError` means to us."""

from __future__ import annotations

from typing import Final

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    InvalidName,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.redaction import redact

NAMES: Final = {
    0: "UnknownError",
    1: "MetadataError",
    2: "PersistenceError",
    3: "AuthenticationError",
    4: "AuthorizationError",
    5: "ConsumerBusy",
    6: "ServiceNotReady",
    9: "ChecksumError",
    10: "UnsupportedVersionError",
    11: "TopicNotFound",
    12: "SubscriptionNotFound",
    13: "ConsumerNotFound",
    14: "TooManyRequests",
    15: "TopicTerminatedError",
    17: "InvalidTopicName",
    18: "IncompatibleSchema",
    19: "ConsumerAssignError",
    22: "NotAllowedError",
}
TRANSIENT: Final = frozenset({0, 1, 2, 5, 6, 14})
AUTHENTICATION, AUTHORIZATION, TOPIC_NOT_FOUND, INVALID_TOPIC_NAME = 3, 4, 11, 17

_LONGEST_DETAIL = 300


def server_error(number: int, message: str, *, where: str, topic: str = "", action: str = "") -> StreamsError:
    """The error of this package for an answer of the broker at `where`; transient ones are retryable."""
    # brokers append Java stack traces
    detail = redact(message.strip().split("\n", 1)[0])[:_LONGEST_DETAIL]
    if number == AUTHENTICATION:
        return AuthenticationFailed(where, detail)
    if number == AUTHORIZATION:
        return NotAuthorized(where, action or "read", detail)
    if number == TOPIC_NOT_FOUND:
        return SourceNotFound(topic, where)
    if number == INVALID_TOPIC_NAME:
        return InvalidName(topic, detail)
    said = f"{action or 'a request'} failed with {NAMES.get(number, f'error {number}')}: {detail}"
    if number in TRANSIENT:
        return SystemUnavailable(where, said)
    return ProtocolError(f"{where}: {said}")
