"""The plan: a window resolved to positions, once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Literal, Self

from airflow_provider_streams.errors import InvalidRequest, PlanMismatch
from airflow_provider_streams.model import tiling
from airflow_provider_streams.model.basis import SLACK, BasisName, EventTime, Rows
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.decoding import Decoding
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.row_filter import AnyFilter, TimeUnit, filter_from_json
from airflow_provider_streams.model.selection import Selection
from airflow_provider_streams.model.sighting import Identity, Sighting
from airflow_provider_streams.model.skipped import Skipped
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.window import Window

VERSION = 2

OnLoss = Literal["fail", "record"]
OnUnproven = Literal["land", "fail"]
"""What becomes of a window of which nobody can say that nothing was removed before we looked."""

DEFAULT_SPLIT_BYTES = 64 * 1024 * 1024
_MOST_BYTES = 1 << 63

_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


UNPROVEN = "unproven"
"""How the verdict of such a range begins."""


@dataclass(frozen=True, slots=True)
class RecordedAround:
    """Basis `event`: recorded cuts around a window, for a system that cannot look a time up."""

    start: Cut | None
    """Sampled before anything of the window can have been stored; None: none was."""
    since: Cut
    """Sampled at the window's start: events without a time behind it are the window's."""
    until: Cut
    """Sampled at its end: those before it are."""
    end: Cut
    """Sampled when everything of the window, that is not late, was stored."""
    start_identity: Identity = ()
    end_identity: Identity = ()


@dataclass(frozen=True, slots=True)
class Beside:
    """Basis `event`: where windows that are pinned right beside one meet it, for events without a time."""

    start: Cut | None = None
    """Where those of the window before it end; None: that was not planned."""
    end: Cut | None = None
    """Where those of the window behind it begin; None: as above."""
    start_identity: Identity = ()
    end_identity: Identity = ()


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is asked of a system's planner; the journal's part (`start_cut`, `end_cut`) is already looked up."""

    source: Source
    window: Window
    reader: str
    basis: BasisName = "publish"
    slack: timedelta = SLACK
    start_cut: Cut | None = None
    """Given by the bases `cuts`, `append` and `chained`; None: resolved from the window, or the head."""
    end_cut: Cut | None = None
    """Given by the bases `cuts` and `append`; None: resolved from the window, or the tail."""
    start_identity: Identity = ()
    """The life of the source that the start is a cut of; of cuts that users give nobody knows it."""
    end_identity: Identity = ()
    """The same of the end."""
    event: EventTime = field(default_factory=EventTime)
    """Basis `event`: what is asked, but for its slack, which stands above."""
    around: RecordedAround | None = None
    """Basis `event`: where the stream has no watermarks."""
    beside: Beside = field(default_factory=Beside)
    on_loss: OnLoss = "fail"
    on_unproven: OnUnproven = "land"
    first_seen: Sighting | None = None
    """The newest sighting of the source that is not later than `seen_before`; where there is none, the first of all.
    None: nobody has looked before."""
    target_split_bytes: int = DEFAULT_SPLIT_BYTES
    whole: Source | None = None
    """The source that this one is a topic or stream of: what is recorded and seen of it counts, too; None: none."""
    with_schemas: bool = True
    """Whether the plan says how payloads are decoded; who only asks for positions does without."""

    def __post_init__(self) -> None:
        if self.slack < timedelta(0):
            raise InvalidRequest(f"slack must not be negative, got {self.slack}")
        # a float from an option may be nan, which no comparison finds
        if not 0 < self.target_split_bytes < _MOST_BYTES:
            raise InvalidRequest(f"target_split_bytes must be positive, got {self.target_split_bytes}")
        if self.basis == "publish":
            self.check_years(self.slack)

    def check_years(self, wider: timedelta) -> None:
        """Whether there are such times.

        Raises:
            InvalidRequest: the window, wider on both sides, leaves the calendar.
        """
        room = min(self.window.start - _EARLIEST, _LATEST - self.window.end)
        if room < wider:
            raise InvalidRequest(f"window {self.window}, {wider} wider on both sides, leaves the years 1 to 9999")

    @property
    def stored(self) -> Window:
        """When what belongs to the window was stored, by its producers' clocks, of all that is not late."""
        if self.basis != "event":
            return self.window
        return Window(_earlier(self.window.start, self.slack), _later(self.window.end, self.event.max_lateness))

    @property
    def seen_before(self) -> datetime:
        """A sighting that is not later lies before all that belongs to the window."""
        return _earlier(self.stored.start, self.slack) if self.basis in ("publish", "event") else self.window.start


def _earlier(moment: datetime, length: timedelta) -> datetime:
    return moment - min(length, moment - _EARLIEST)


def _later(moment: datetime, length: timedelta) -> datetime:
    return moment + min(length, _LATEST - moment)


@dataclass(frozen=True, slots=True)
class SourceRef:
    """Where a plan's positions are valid: a system, one of its clusters, and names resolved there."""

    system: str
    cluster: str
    names: tuple[str, ...]
    identity: Identity = ()
    """What tells this life of the source from another one under the same names, by name or shard: facts that never
    change while it lives, such as when it was made. A plan is read only where the same facts are found."""


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
class Terms:
    """What was asked when a plan was made, as far as it decides which rows it holds."""

    slack: timedelta | None = None
    """Bases `publish` and `event`."""
    max_skew: timedelta | None = None
    """Basis `append`."""
    on_loss: OnLoss = "fail"
    max_lateness: timedelta | None = None
    """Basis `event`; and what follows."""
    event_time: str | None = None
    unit: TimeUnit | None = None
    rows: Rows | None = None
    cuts: str | None = None
    """Basis `cuts`: `Cuts.digest`."""

    @property
    def lengths(self) -> dict[str, timedelta]:
        """The lengths of time that its basis has, by name."""
        named = {"slack": self.slack, "max_skew": self.max_skew, "max_lateness": self.max_lateness}
        return {name: length for name, length in named.items() if length is not None}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "slack_seconds": None if self.slack is None else self.slack.total_seconds(),
            "max_skew_seconds": None if self.max_skew is None else self.max_skew.total_seconds(),
            "on_loss": self.on_loss,
            **({} if self.max_lateness is None else self._of_event(self.max_lateness)),
            **({} if self.cuts is None else {"cuts": self.cuts}),
        }

    def _of_event(self, lateness: timedelta) -> dict[str, Any]:
        how = {"event_time": self.event_time, "unit": self.unit, "rows": self.rows}
        return {"max_lateness_seconds": lateness.total_seconds(), **how}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        slack, skew, lateness = (
            None if (seconds := data.get(f"{name}_seconds")) is None else timedelta(seconds=seconds)
            for name in ("slack", "max_skew", "max_lateness")
        )
        how = (data.get(name) for name in ("event_time", "unit", "rows", "cuts"))
        return cls(slack, skew, data["on_loss"], lateness, *how)

    def changes(self, now: Terms) -> list[str]:
        """What is asked otherwise now, each for a person: `slack 0:01:00 instead of 0:05:00`."""
        pairs = (
            ("slack", self.slack, now.slack),
            ("max_skew", self.max_skew, now.max_skew),
            ("on_loss", self.on_loss, now.on_loss),
            ("max_lateness", self.max_lateness, now.max_lateness),
            ("rows", self.rows, now.rows),
            ("event_time", self._told_time, now._told_time),
        )
        return [
            f"{name} {then} instead of {asked}"
            for name, then, asked in pairs
            if None not in (then, asked) and then != asked
        ]

    def has_other_cuts(self, now: Terms) -> bool:
        """Whether it is read between other cuts now."""
        return None not in (self.cuts, now.cuts) and self.cuts != now.cuts

    def has_other_time(self, now: Terms) -> bool:
        """Whether another time of an event counts now."""
        return (self.event_time, self.unit) != (now.event_time, now.unit)

    @property
    def _told_time(self) -> str | None:
        """Which time counts, for a person; None: not an event's."""
        if self.max_lateness is None:
            return None
        return " in ".join(filter(None, (self.event_time, self.unit))) or "of the broker"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What reading the plan will move."""

    bytes: int
    events: int | None = None


@dataclass(frozen=True)
class Plan:
    """A window resolved to positions. Holds no secret; JSON round trips are exact.

    The two cuts need not name the same shards: a Pravega segment that was split inside the window is named by
    the start cut, its successors by the end cut, and segments made and sealed in between by the ranges alone.
    """

    reader: str
    source: SourceRef
    window: Window
    basis: BasisName
    filter: AnyFilter | None
    start_cut: Cut
    end_cut: Cut
    ranges: tuple[Range, ...]
    splits: tuple[Split, ...]
    estimate: Estimate
    observed_at: datetime
    head: Cut
    losses: tuple[Loss, ...] = ()
    tail: Cut = field(default_factory=lambda: Cut({}))
    """Behind everything stored when the plan was made; empty: not known."""
    skew_seconds: tuple[float, float] | None = None
    """How much later than the window's start and end its recorded cuts were sampled (basis `append`)."""
    remarks: tuple[str, ...] = ()
    """What a person should know of what the plan promises, a sentence each."""
    terms: Terms | None = None
    """What was asked; None: by somebody who pins nothing."""
    decoding: Decoding | None = None
    """How payloads become columns; None: they stay bytes."""
    selection: Selection | None = None
    """Which keys are chosen; None: all."""
    skipped: tuple[Skipped, ...] = ()
    """Pieces of its ranges that hold nothing of the window, and are not read."""
    version: int = field(default=VERSION)

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise PlanMismatch(f"this release reads plans of version {VERSION}, got version {self.version}")
        if [split.index for split in self.splits] != list(range(len(self.splits))):
            raise PlanMismatch("splits must be numbered 0, 1, 2, ..")

    @cached_property
    def fingerprint(self) -> str:
        """32 hex digits that decide the rows: source, window, cuts, ranges, skips, losses, filter, decoding, keys."""
        whole = self._parts()
        ranges = [(one.shard, str(one.start), str(one.end)) for one in self.ranges]
        names = (
            "source",
            "window",
            "start_cut",
            "end_cut",
            "filter",
            "losses",
            *(["decoding"] if self.decoding else []),
            *(["selection"] if self.selection else []),
        )
        decided = {**{name: whole[name] for name in names}, "ranges": ranges}
        if self.skipped:
            decided["skipped"] = [(one.shard, str(one.start), str(one.end)) for one in self.skipped]
        return _digest(decided)

    def check(self) -> None:
        """Whether the plan holds together: ranges tile the cuts, splits the ranges, without a hole or an overlap.

        Raises:
            PlanMismatch: it does not; the first place where.
        """
        for problem in tiling.problems(self):
            raise PlanMismatch(f"plan {self.fingerprint[:12]} does not hold together: {problem}")

    @property
    def sighting(self) -> Sighting | None:
        """What planning saw of the source, for the plans of later windows; None: not told."""
        return Sighting(self.observed_at, self.tail, self.source.identity) if self.tail else None

    @property
    def unproven(self) -> tuple[Range, ...]:
        """The ranges of which nobody can say that nothing was removed before we looked."""
        return tuple(part for part in self.ranges if part.verdict.startswith(UNPROVEN))

    @property
    def is_empty(self) -> bool:
        """Nothing is to be read between the cuts."""
        return not self.splits

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; see `from_json`."""
        parts = self._parts()
        return {**parts, "fingerprint": self.fingerprint, "checksum": _digest(parts)}

    def _parts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "reader": self.reader,
            "source": _source_json(self.source),
            "window": self.window.to_json(),
            "basis": self.basis,
            "filter": self.filter.to_json() if self.filter else None,
            "start_cut": self.start_cut.to_json(),
            "end_cut": self.end_cut.to_json(),
            "ranges": [
                {
                    "shard": r.shard,
                    "start": str(r.start),
                    "end": str(r.end),
                    "bytes": r.bytes,
                    "entries": r.entries,
                    "first_kept": str(r.first_kept) if r.first_kept else None,
                    "verdict": r.verdict,
                }
                for r in self.ranges
            ],
            "splits": [
                {
                    "index": s.index,
                    "shard": s.shard,
                    "start": str(s.start),
                    "end": str(s.end),
                    "bytes": s.bytes,
                    "entries": s.entries,
                    "spans": [[span.run, span.first, span.end] for span in s.spans],
                }
                for s in self.splits
            ],
            "estimate": {"bytes": self.estimate.bytes, "events": self.estimate.events},
            "observed_at": self.observed_at.astimezone(UTC).isoformat(),
            "head": self.head.to_json(),
            "tail": self.tail.to_json(),
            "losses": [
                {"shard": x.shard, "start": str(x.start), "end": str(x.end), "cause": x.cause} for x in self.losses
            ],
            "skew_seconds": list(self.skew_seconds) if self.skew_seconds else None,
            "remarks": list(self.remarks),
            "terms": self.terms.to_json() if self.terms else None,
            **({"decoding": self.decoding.to_json()} if self.decoding else {}),
            **({"selection": self.selection.to_json()} if self.selection else {}),
            **({"skipped": [one.to_json() for one in self.skipped]} if self.skipped else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`.

        Raises:
            PlanMismatch: another version, a missing part, a digest that is not the plan's own, or one that does not
                hold together.
        """
        try:
            plan, fingerprint, checksum = cls._from_json(data), str(data["fingerprint"]), str(data["checksum"])
        except PlanMismatch:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise PlanMismatch(f"this is not a plan: {type(error).__name__}: {error}") from error
        if plan.fingerprint != fingerprint or _digest(plan._parts()) != checksum:  # noqa: SLF001 - its own class
            raise PlanMismatch(f"plan {fingerprint[:12]} was changed after it was made")
        plan.check()
        return plan

    @classmethod
    def _from_json(cls, data: dict[str, Any]) -> Self:
        source = data["source"]
        return cls(
            version=data["version"],
            reader=data["reader"],
            source=SourceRef(
                source["system"], source["cluster"], tuple(source["names"]), tuple(source.get("identity", {}).items())
            ),
            window=Window.from_json(data["window"]),
            basis=data["basis"],
            filter=filter_from_json(data["filter"]) if data["filter"] else None,
            start_cut=Cut.from_json(data["start_cut"]),
            end_cut=Cut.from_json(data["end_cut"]),
            ranges=tuple(
                Range(
                    r["shard"],
                    Position.parse(r["start"]),
                    Position.parse(r["end"]),
                    r["bytes"],
                    r["entries"],
                    Position.parse(r["first_kept"]) if r["first_kept"] else None,
                    r["verdict"],
                )
                for r in data["ranges"]
            ),
            splits=tuple(
                Split(
                    s["index"],
                    s["shard"],
                    Position.parse(s["start"]),
                    Position.parse(s["end"]),
                    s["bytes"],
                    tuple(Span(*span) for span in s["spans"]),
                )
                for s in data["splits"]
            ),
            estimate=Estimate(**data["estimate"]),
            observed_at=datetime.fromisoformat(data["observed_at"]),
            head=Cut.from_json(data["head"]),
            tail=Cut.from_json(data["tail"]),
            losses=tuple(
                Loss(x["shard"], Position.parse(x["start"]), Position.parse(x["end"]), x["cause"])
                for x in data["losses"]
            ),
            skew_seconds=tuple(data["skew_seconds"]) if data["skew_seconds"] else None,
            remarks=tuple(data["remarks"]),
            terms=Terms.from_json(data["terms"]) if data["terms"] else None,
            decoding=Decoding.from_json(data["decoding"]) if data.get("decoding") else None,
            selection=Selection.from_json(data["selection"]) if data.get("selection") else None,
            skipped=tuple(Skipped.from_json(one) for one in data.get("skipped", ())),
        )


def _digest(value: dict[str, Any]) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def _source_json(source: SourceRef) -> dict[str, Any]:
    plain: dict[str, Any] = {"system": source.system, "cluster": source.cluster, "names": list(source.names)}
    return {**plain, "identity": dict(source.identity)} if source.identity else plain
