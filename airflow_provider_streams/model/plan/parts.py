"""The parts of a plan: its source, its ranges and splits, and what is left out; and these as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.tail_observation import Incarnation

UNPROVEN = "unproven"
"""How the verdict of such a range begins."""

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class SourceRef:
    """Where a plan's positions are valid: a system, one of its clusters, and names resolved there."""

    system: str
    cluster: str
    names: tuple[str, ...]
    incarnation: Incarnation = ()
    """By name or shard, what differs in another incarnation of the source under the same names.

    These facts never change, such as when it was made. A plan is read only where the same facts are found."""


@dataclass(frozen=True, slots=True)
class Range:
    """Half-open span of one shard, `[start, end)`."""

    shard: str
    start: Position
    end: Position
    bytes: int
    entries: int | None = None
    """Stored units (Pulsar: entries, which are not messages; Pravega: bytes); None where they cannot be counted."""
    first_kept: Position | None = None
    """The first position the system still held when the plan was made."""
    verdict: str = "ok"
    """`ok`, `empty`, `unproven: ..`, `unknown` (retention not readable), `edge: ..` (about to expire) or `lost: ..`."""


@dataclass(frozen=True, slots=True)
class Span:
    """Stored units `[first, end)` of one run that a split must account for.

    Pulsar: entries of one ledger. Pravega: bytes of one segment, `run` being its 64-bit id; so an event that a
    reader drops is missed by its bytes.
    """

    run: int
    first: int
    end: int

    @property
    def entries(self) -> int:
        """How many units it holds."""
        return self.end - self.first


@dataclass(frozen=True, slots=True)
class Split:
    """What one Spark task reads: a piece of one range."""

    index: int
    shard: str
    start: Position
    end: Position
    bytes: int
    spans: tuple[Span, ...] = ()
    """Everything the system stores in `[start, end)`, so that a dropped unit is seen; empty: not countable."""

    @property
    def entries(self) -> int | None:
        """How many stored units the receipt must account for; None: not countable."""
        return sum(span.entries for span in self.spans) if self.spans else None


@dataclass(frozen=True, slots=True)
class Loss:
    """A part of a window that the stream no longer holds, accepted by `on_loss="record"`."""

    shard: str
    start: Position
    end: Position
    cause: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A piece of a range that no split reads. Splits and skipped pieces tile the range together."""

    shard: str
    start: Position
    end: Position
    bytes: int
    entries: int
    """Stored units, counted like the entries of splits."""
    because: str
    """What proves that none of its events is the window's."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What reading the plan will move."""

    bytes: int
    events: int | None = None


def part_to_json(part: Range | Split | Loss | Skipped) -> dict[str, Any]:
    """Its fields, positions as text."""
    return {
        name: str(value) if isinstance(value := getattr(part, name), Position) else value for name in part.__slots__
    }


def split_to_json(split: Split) -> dict[str, Any]:
    """As `part_to_json`, with the units that it must account for."""
    spans = [[span.run, span.first, span.end] for span in split.spans]
    return {**part_to_json(split), "entries": split.entries, "spans": spans}


def part_from_json(kind: Callable[..., P], data: dict[str, Any]) -> P:
    """The reverse of `part_to_json`."""
    fields = {**data, "start": Position.parse(data["start"]), "end": Position.parse(data["end"])}
    if fields.get("first_kept"):
        fields["first_kept"] = Position.parse(fields["first_kept"])
    return kind(**fields)


def split_from_json(data: dict[str, Any]) -> Split:
    """The reverse of `split_to_json`."""
    fields = {**data, "spans": tuple(Span(*span) for span in data["spans"])}
    del fields["entries"]
    return part_from_json(Split, fields)
