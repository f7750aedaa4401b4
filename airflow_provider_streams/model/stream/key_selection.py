"""The choice of a source's events by their keys, as a plan pins it. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.text_arguments import several

SLOTS = 65536
"""The number of slots for the hashes of keys, as for Pulsar's `Key_Shared` consumers."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen keys, in one of three ways.

    Raises:
        InvalidRequest: it is not exactly one way, or there are no such slots.
    """

    keys: tuple[bytes, ...] = ()
    """Only events with one of these keys land."""
    slots: tuple[tuple[int, int], ...] = ()
    """Only events whose keys are in one of these spans of slots land. A span includes its last slot."""
    routing_keys: tuple[str, ...] = ()
    """Only shards that may hold events of these routing keys are read, as a whole."""

    def __post_init__(self) -> None:
        if (bool(self.keys), bool(self.slots), bool(self.routing_keys)).count(True) != 1:
            raise InvalidRequest("keys are chosen in one way: by themselves, or by ranges of their hashes")
        for first, last in self.slots:
            if not 0 <= first <= last < SLOTS:
                raise InvalidRequest(f"a range of key hashes is within 0 to {SLOTS - 1}, got {first} to {last}")

    def __str__(self) -> str:
        if self.slots:
            return f"key hashes {', '.join(f'{first} to {last}' for first, last in self.slots)}"
        keys = self.routing_keys or tuple(key.decode(errors="backslashreplace") for key in self.keys)
        more = f", and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        return f"{'routing keys' if self.routing_keys else 'keys'} {', '.join(map(repr, keys[:_SHOWN]))}{more}"

    @property
    def text(self) -> str:
        """Its identity, in a source's key."""
        if self.slots:
            return f"slots:{','.join(f'{first}-{last}' for first, last in self.slots)}"
        kind = "routing_keys" if self.routing_keys else "keys"
        keys = self.keys or tuple(key.encode(errors="surrogatepass") for key in self.routing_keys)
        return f"{kind}:{','.join(base64.urlsafe_b64encode(key).decode() for key in keys)}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        if self.slots:
            return {"slots": [list(span) for span in self.slots]}
        if self.routing_keys:
            return {"routing_keys": list(self.routing_keys)}
        return {"keys": [base64.b64encode(key).decode() for key in self.keys]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(
            tuple(base64.b64decode(key) for key in data.get("keys", ())),
            tuple((first, last) for first, last in data.get("slots", ())),
            tuple(data.get("routing_keys", ())),
        )


_SHOWN = 5


def key_texts(owner: str, name: str, given: object) -> tuple[str, ...]:
    """An owner's keys in order, each once.

    Raises:
        InvalidRequest: one is no text.
    """
    parts = several(owner, name, given)
    found = [key for key in parts if isinstance(key, str)]
    if len(found) < len(parts):
        raise InvalidRequest(f"{owner}: {name}: keys are texts; others can be chosen by their hashes")
    return tuple(sorted(set(found)))


def joined_slots(given: Iterable[object]) -> tuple[tuple[int, int], ...]:
    """Spans in order, those that touch joined.

    Raises:
        InvalidRequest: one is no pair of whole numbers.
    """
    joined: list[tuple[int, int]] = []
    for first, last in sorted(map(_span, given)):
        if joined and first <= joined[-1][1] + 1 and first <= last:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def _span(given: object) -> tuple[int, int]:
    if not isinstance(given, tuple | list) or [type(edge) for edge in given] != [int, int]:
        raise InvalidRequest(f"key_hash_ranges are pairs of whole numbers, like (0, 32767), not {given!r:.80}")
    first, last = given
    return first, last
