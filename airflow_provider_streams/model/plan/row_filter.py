"""Which of the rows between a plan's cuts belong to the window: by a time that each of them carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

from airflow_provider_streams.model.stream.cut import Cut, union

TimeUnit = Literal["s", "ms", "us", "ns"]
"""Since 1970."""

TIME_UNITS: Final = ("s", "ms", "us", "ns")


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Keeps the rows of a time column with `start_ms <= value < end_ms` (milliseconds since 1970); readers apply it.

    Of the column `event_time`: messages without one count by their publish time.
    """

    column: str
    start_ms: int
    end_ms: int

    @property
    def span_us(self) -> tuple[int, int]:
        """The same in microseconds."""
        return self.start_ms * 1000, self.end_ms * 1000

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"column": self.column, "start_ms": self.start_ms, "end_ms": self.end_ms}


@dataclass(frozen=True, slots=True)
class Stored:
    """Finds the window of rows without a time of their own: the one in which they were stored.

    Args:
        column: of the system, never decoded: `publish_time`, which must be in the window; or the name of an offset.
        spans: of an offset: which ones are the window's, by shard, half-open. Shards that are not named hold none.
            None: the column is a time.
        edges: the cuts of these spans; of plans of adjacent windows, one ends where the other begins. None: the column
            is a time.
    """

    column: str
    spans: Mapping[str, tuple[int, int]] | None = None
    edges: tuple[Cut, Cut] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "column": self.column,
            "spans": self.spans and {shard: list(span) for shard, span in self.spans.items()},
            "edges": self.edges and [cut.to_json() for cut in self.edges],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        spans, edges = data["spans"], data["edges"]
        return cls(
            data["column"],
            None if spans is None else {shard: (span[0], span[1]) for shard, span in spans.items()},
            None if edges is None else (Cut.from_json(edges[0]), Cut.from_json(edges[1])),
        )


@dataclass(frozen=True, slots=True)
class FieldFilter:
    """Keeps the rows of a decoded field with `start_us <= value < end_us`; the decoder applies it.

    Args:
        column: the field: a name, or a path through structs, `meta.created_at`.
        start_us: microseconds since 1970.
        end_us: the same.
        unit: of a field of whole numbers, since 1970; None: the field is a time, or a date.
        stored: finds the window of rows without the field's value; None: they belong to no window.
    """

    column: str
    start_us: int
    end_us: int
    unit: TimeUnit | None = None
    stored: Stored | None = None

    @property
    def span_us(self) -> tuple[int, int]:
        """Start and end."""
        return self.start_us, self.end_us

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        span = {"start_us": self.start_us, "end_us": self.end_us}
        return {"field": self.column, **span, "unit": self.unit, "stored": self.stored and self.stored.to_json()}


AnyFilter = RowFilter | FieldFilter


def joined(filters: Iterable[AnyFilter | None]) -> AnyFilter | None:
    """The one filter of several streams that are read as one; each knows only its own shards.

    Raises:
        ValueError: they filter by something else.
    """
    parts = list(filters)
    first = parts[0] if parts else None
    fields = [one for one in parts if isinstance(one, FieldFilter)]
    if isinstance(first, FieldFilter) and len(fields) == len(parts):
        known = [one.stored for one in fields if one.stored is not None]
        parts = [replace(one, stored=_all_stored(known)) for one in fields]
    if any(one != parts[0] for one in parts):
        raise ValueError(f"streams of one plan have one filter: {parts}")
    return parts[0] if parts else None


def _all_stored(known: list[Stored]) -> Stored | None:
    if not known or known[0].spans is None:
        return known[0] if known else None
    spans = {shard: span for one in known for shard, span in (one.spans or {}).items()}
    starts, ends = zip(*(one.edges or (Cut({}), Cut({})) for one in known), strict=True)
    return Stored(known[0].column, spans, (union(starts), union(ends)))


def filter_from_json(data: Mapping[str, Any]) -> AnyFilter:
    """The reverse of `to_json`."""
    if "field" not in data:
        return RowFilter(**data)
    stored = data["stored"]
    column, start_us, end_us, unit = (data[name] for name in ("field", "start_us", "end_us", "unit"))
    return FieldFilter(column, start_us, end_us, unit, None if stored is None else Stored.from_json(stored))
