"""Talking to segment stores, as steps of rules: which store, what is said, and the token that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow_provider_streams.systems.pravega import calls, wire
from airflow_provider_streams.systems.pravega.calls import Call
from airflow_provider_streams.systems.pravega.connection import Address
from airflow_provider_streams.systems.pravega.credentials import Tokens
from airflow_provider_streams.systems.rules import Rule


@dataclass(frozen=True, slots=True)
class Talk:
    """Sends requests to a store, and gives the answers, as many, to whoever asked.

    What `take` raises costs the connection: an answer that is still to come would be the next one's.
    """

    address: Address
    requests: Sequence[wire.Message]
    take: Callable[[wire.Message], None]


def token_for(stream: str, tokens: Tokens) -> Rule[Call[str], str]:
    """A delegation token to read a stream, fresh enough to use now."""
    known = tokens.known(stream)
    return tokens.learn(stream, (yield calls.delegation_token(stream))) if known is None else known
