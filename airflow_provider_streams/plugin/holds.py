"""What keeps a stream's events from its retention for somebody: pins of Pulsar topics, holds on Pravega streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pulsar.source import PulsarSource

if TYPE_CHECKING:
    from airflow_provider_streams.hooks.pravega import PravegaHook
    from airflow_provider_streams.hooks.pulsar import PulsarHook
    from airflow_provider_streams.systems.pulsar.hold_subscription import PinSubscription


@dataclass(frozen=True, slots=True)
class Hold:
    """One of them."""

    name: str
    reader: str | None
    """For whom; None: not a reader that the journal knows."""
    since: datetime | None = None
    """Where it stands, as a time; None: not known."""
    bytes: int | None = None
    """What it keeps; None: not known."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        since = None if self.since is None else self.since.timestamp()
        return {"name": self.name, "reader": self.reader, "since": since, "bytes": self.bytes}


def holds_on(source: Source, readers: Iterable[str]) -> tuple[Hold, ...]:
    """All that hold a source.

    Args:
        source: what is held.
        readers: those that the journal knows of it.

    Raises:
        AccessError, SystemUnavailable: the system refuses or does not answer.
    """
    if isinstance(source, PulsarSource):
        return _pins(source)
    return _subscribers(source, readers) if isinstance(source, PravegaSource) else ()


def _pins(source: PulsarSource) -> tuple[Hold, ...]:
    from airflow_provider_streams.systems.pulsar.hold import pins_of  # noqa: PLC0415 - who asks loads it

    with closing(cast("PulsarHook", hook_for(source))) as hook:
        return tuple(by_name(hook.answer(pins_of(source))))


def by_name(pins: Iterable[PinSubscription]) -> Iterator[Hold]:
    """A pin stands on every shard: it keeps what all of them keep, from the earliest place."""
    ordered = sorted(pins, key=lambda pin: (pin.name, pin.mark.reader, pin.shard))
    for (name, reader), group in groupby(ordered, key=lambda pin: (pin.name, pin.mark.reader)):
        shards = list(group)
        since = [pin.mark.since or pin.oldest for pin in shards]
        known = [pin.bytes for pin in shards if pin.bytes is not None]
        yield Hold(
            name,
            reader,
            min((moment for moment in since if moment is not None), default=None),
            sum(known) if len(known) == len(shards) else None,
        )


def _subscribers(source: PravegaSource, readers: Iterable[str]) -> tuple[Hold, ...]:
    from airflow_provider_streams.systems.pravega import calls, hold  # noqa: PLC0415 - gRPC when used

    with closing(cast("PravegaHook", hook_for(source))) as hook:
        stream = hook.stream(source.stream)
        found = hook.call(calls.list_holds(stream))
    return tuple(
        Hold(name, next((reader for reader in readers if hold.is_held({name}, stream, reader)), None)) for name in found
    )
