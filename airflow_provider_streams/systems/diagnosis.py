"""What a system offers to doctor: its services, its clock, and whether the user may do what a reader does.

Nothing here creates or changes anything on the system. Every call takes bounded time.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, Self

from airflow_provider_streams.model.stream.source import Source

LONGEST_SECONDS = 10.0
"""How long one request of an examination may take."""

Action = Literal["plan", "read", "hold"]
"""What a reader does on a stream system. It writes only to its table."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service that a connection names."""

    name: str
    option: str
    """The setting that names it."""
    addresses: Callable[[], Sequence[tuple[str, int]]]
    """Host and port of each of its servers; none: the setting is missing. Raises `StreamsError`."""
    is_tls: bool
    ssl_context: Callable[[], ssl.SSLContext]
    sign_in: Callable[[], str]
    """Sends one request with the connection's credentials, and says what answered; raises `StreamsError`."""
    needed_for: str = ""
    """What does not work without it, where its setting may be missing; empty: it is optional."""
    after: str = ""
    """The service that knows its address; empty: the connection does."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Something that a reader does, and how to find out whether it may."""

    action: Action
    needs: str
    """The permission, in the system's own words."""
    ask: Callable[[], str]
    """Says how it was found out; raises `NotAuthorized` if the user may not, and other errors if it cannot be said."""
    is_needed: bool = True
    """Whether every reader needs it; otherwise only one that uses the feature."""
    unseen: Callable[[], str] = lambda: ""
    """What cannot be found out without a change, once `ask` has answered; empty: nothing."""


@dataclass(frozen=True, slots=True)
class ServerTime:
    """What a server says the time is."""

    where: str
    """Which server says it."""
    time: datetime
    resolution_seconds: float
    """How much later the true time may be."""


class Diagnosis(Protocol):
    """What doctor asks of a system's connection."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """From settings by their option names.

        Raises:
            InvalidRequest: a setting is missing or malformed.
            MissingDependency: a client is not installed.
        """

    def services(self, source: Source | None) -> Sequence[Service]:
        """Its services, in the order in which a reader of the source asks them."""

    def server_time(self, source: Source | None) -> ServerTime | None:
        """What time it is there; None: no service says it to a reader of the source. Raises `StreamsError`."""

    def grants(self, source: Source) -> Sequence[Grant]:
        """What a reader of a source does."""

    def close(self) -> None:
        """Close what was opened."""


def bounded(options: Mapping[str, str]) -> dict[str, str]:
    """The settings with a request timeout of at most `LONGEST_SECONDS`."""
    name = "request_timeout_seconds"
    try:
        given = float(options.get(name) or LONGEST_SECONDS)
    except ValueError:
        return dict(options)  # the endpoint says what is wrong with it
    return {**options, name: f"{min(given, LONGEST_SECONDS):g}"}
