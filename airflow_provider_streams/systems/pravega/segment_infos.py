"""Where segments start and end, as a question: asked of every store that serves some of them, until all have said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_streams.errors import NotAuthorized, ProtocolError, SystemUnavailable
from airflow_provider_streams.systems.pravega import wire
from airflow_provider_streams.systems.pravega.connection import Address
from airflow_provider_streams.systems.pravega.credentials import Tokens
from airflow_provider_streams.systems.pravega.names import Segment

_TRIES = 4


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """Where a segment starts and ends, in bytes; both ends are event boundaries."""

    start_offset: int
    write_offset: int
    is_sealed: bool
    last_modified_ms: int


@dataclass(frozen=True, slots=True)
class SegmentQuery:
    """Asks for the infos of a stream's segments; those that do not exist are left out of the answer."""

    stream: str
    segment_ids: tuple[int, ...]


class Answers:
    """The answers to a `SegmentQuery` so far, and when to ask again for the rest."""

    def __init__(self, query: SegmentQuery) -> None:
        self.found: dict[int, SegmentInfo] = {}
        self.left = query.segment_ids
        self._query = query
        self._gone: set[int] = set()
        self._tries = 0
        self._refused: wire.AuthTokenCheckFailed | None = None

    def requests(self, keys: Sequence[int], token: str) -> list[wire.Message]:
        """What to send to one store; an answer's request id is the place of its segment in `keys`."""
        names = (Segment(self._query.stream, key).name for key in keys)
        return [wire.GetStreamSegmentInfo(number, name, token) for number, name in enumerate(names)]

    def take(self, keys: Sequence[int], message: wire.Message) -> None:
        """Sort one answer.

        Raises:
            ProtocolError: it is none.
        """
        match message:
            case wire.StreamSegmentInfo(number, _, True, sealed, _, modified, end, start):
                self.found[keys[number]] = SegmentInfo(start, end, sealed, modified)
            case wire.StreamSegmentInfo(number) | wire.NoSuchSegment(number):
                self._gone.add(keys[number])
            case wire.AuthTokenCheckFailed():
                self._refused = message
            case wire.WrongHost():
                pass
            case _:
                raise ProtocolError(f"a segment store answers with {type(message).__name__} when asked for an end")

    def pause(self, tokens: Tokens) -> float:
        """Ends a try: how many seconds to wait before the next one, if one is needed.

        Raises:
            NotAuthorized: a fresh token was refused.
            SystemUnavailable: too many tries.
        """
        self.left = tuple(key for key in self._query.segment_ids if key not in self.found and key not in self._gone)
        self._tries += 1
        refused, self._refused = self._refused, None
        if refused is not None:
            tokens.forget(self._query.stream)
            if self._tries > 1 and refused.code != wire.TOKEN_EXPIRED:
                raise NotAuthorized("Pravega's segment store", f"read {self._query.stream}")
        if self.left and self._tries >= _TRIES:
            raise SystemUnavailable(self._query.stream, f"{len(self.left)} segments were not found on any store")
        return 0.1 * 2**self._tries if self.left and refused is None else 0.0


def by_store(addresses: Mapping[int, Address]) -> dict[Address, list[int]]:
    """Which segments each store serves."""
    stores: dict[Address, list[int]] = {}
    for key, address in addresses.items():
        stores.setdefault(address, []).append(key)
    return stores
