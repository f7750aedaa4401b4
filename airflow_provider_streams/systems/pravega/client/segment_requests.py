"""Talking to segment stores, as steps of rules: requests, tokens, and tries that failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow_provider_streams.errors import NotAuthorized, SystemUnavailable
from airflow_provider_streams.systems.connection.backoff import Backoff, Pause
from airflow_provider_streams.systems.io_free_rules import Rule
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.client.controller import segment_calls
from airflow_provider_streams.systems.pravega.client.controller.call import Call
from airflow_provider_streams.systems.pravega.client.credentials import Tokens
from airflow_provider_streams.systems.pravega.client.segment_store_connection import Address

_BACKOFF = Backoff(attempts=4, first_seconds=0.2, chance=0.0)
ATTEMPTS = _BACKOFF.attempts


@dataclass(frozen=True, slots=True)
class SegmentRequests:
    """Requests to one store; `take` gets as many answers.

    An error of `take` costs the connection: an answer that is still to come would go to the next request.
    """

    address: Address
    requests: Sequence[wire_protocol.Message]
    take: Callable[[wire_protocol.Message], None]


def token_for(stream: str, tokens: Tokens) -> Rule[Call[str], str]:
    """A delegation token to read a stream, fresh enough to use now."""
    known = tokens.known(stream)
    return tokens.learn(stream, (yield segment_calls.delegation_token(stream))) if known is None else known


class Tries:
    """Tries to get something from the stores of a stream."""

    def __init__(self, stream: str) -> None:
        self.refused: wire_protocol.AuthTokenCheckFailed | None = None
        """How a store refused the token in this try."""
        self._stream = stream
        self._failures = 0

    def end(self, tokens: Tokens, where: str, lacking: str, *, failed: bool) -> Pause:
        """End a try, which may have `failed`: how long to wait before the next one.

        `where` is the stream or segment, and `lacking` what is still missing (empty: nothing), for the error.

        Raises:
            NotAuthorized: a store refused a fresh token.
            SystemUnavailable: too many tries.
        """
        refused, self.refused = self.refused, None
        if refused is not None:
            tokens.forget(self._stream)
            if self._failures and refused.code != wire_protocol.TOKEN_EXPIRED:
                raise NotAuthorized("Pravega's segment store", f"read {self._stream}")
        self._failures += failed or refused is not None
        if lacking and self._failures >= ATTEMPTS:
            raise SystemUnavailable(where, lacking)
        return Pause(_BACKOFF.seconds(self._failures - 1) if lacking and self._failures and not refused else 0.0)
