"""The plan: a window resolved to positions, once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.model.plan import tiling
from airflow_provider_streams.model.plan.parts import (
    UNPROVEN,
    Estimate,
    Loss,
    Range,
    Skipped,
    SourceRef,
    Span,
    Split,
    part_from_json,
    part_to_json,
    split_from_json,
    split_to_json,
)
from airflow_provider_streams.model.plan.request import (
    DEFAULT_SPLIT_BYTES,
    NeighborCuts,
    OnLoss,
    OnUnproven,
    PlanRequest,
    RecordedBounds,
)
from airflow_provider_streams.model.plan.row_filter import AnyFilter, filter_from_json
from airflow_provider_streams.model.plan.terms import Terms
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.key_selection import Selection
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.tail_observation import TailObservation
from airflow_provider_streams.model.window.basis import BasisName
from airflow_provider_streams.model.window.window import Window

__all__ = [
    "DEFAULT_SPLIT_BYTES",
    "UNPROVEN",
    "VERSION",
    "Estimate",
    "Loss",
    "NeighborCuts",
    "OnLoss",
    "OnUnproven",
    "Plan",
    "PlanRequest",
    "Range",
    "RecordedBounds",
    "Skipped",
    "SourceRef",
    "Span",
    "Split",
    "Terms",
]


VERSION = 2


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
    """After everything stored when the plan was made; empty: not known."""
    skew_seconds: tuple[float, float] | None = None
    """How much later than the window's start and end its recorded cuts were sampled (basis `append`)."""
    remarks: tuple[str, ...] = ()
    """What a person should know of what the plan promises, a sentence each."""
    terms: Terms | None = None
    """None: the plan was never meant to be pinned."""
    decoding: Decoding | None = None
    """How payloads become columns; None: they stay bytes."""
    selection: Selection | None = None
    """Which keys are chosen; None: all."""
    skipped: tuple[Skipped, ...] = ()
    """Pieces of its ranges that hold no event of the window, and are not read."""
    version: int = field(default=VERSION)

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise PlanMismatch(f"this release reads plans of version {VERSION}, got version {self.version}")
        if [split.index for split in self.splits] != list(range(len(self.splits))):
            raise PlanMismatch("splits must be numbered 0, 1, 2, ..")

    @cached_property
    def fingerprint(self) -> str:
        """32 hex digits of what decides the rows.

        These are source, window, cuts, filter, losses, decoding, keys, and where its ranges and skipped pieces are.
        """
        whole = self._parts()
        names = ("source", "window", "start_cut", "end_cut", "filter", "losses", "decoding", "selection")
        places = {
            name: [(one.shard, str(one.start), str(one.end)) for one in parts]
            for name, parts in (("ranges", self.ranges), ("skipped", self.skipped))
        }
        return _digest({**{name: whole[name] for name in names}, **places})

    def check(self) -> None:
        """Check that ranges tile the cuts, and splits the ranges, without a hole or an overlap.

        Raises:
            PlanMismatch: they do not; the first place where.
        """
        for problem in tiling.problems(self):
            raise PlanMismatch(f"plan {self.fingerprint[:12]} does not hold together: {problem}")

    @property
    def tail_observation(self) -> TailObservation | None:
        """What planning saw of the source, for the plans of later windows; None: not known."""
        if not self.tail:
            return None
        # a segment that is not among the first ones held has all that was ever written to it
        empty = frozenset(shard for shard, end in self.tail.items() if self.head.get(shard, Position.of(0)) == end)
        return TailObservation(self.observed_at, self.tail, self.source.incarnation, empty)

    @property
    def changes(self) -> ChangeFormat | None:
        """How messages become change rows; None: they are no database changes."""
        return self.decoding.changes if self.decoding else None

    @property
    def unproven(self) -> tuple[Range, ...]:
        """The ranges that may lack events removed before the source was first observed."""
        return tuple(part for part in self.ranges if part.verdict.startswith(UNPROVEN))

    @property
    def is_empty(self) -> bool:
        """Nothing is to be read between the cuts."""
        return not self.splits

    def lost_since(self, earlier_plan: Plan) -> str:
        """What of an earlier plan's events this one cannot hold; empty: nothing is known to be gone.

        Counts do not show it: a source that was made again may have as many other events.
        """
        then, read = dict(earlier_plan.source.incarnation), {split.shard for split in earlier_plan.splits}
        for shard, incarnation in self.source.incarnation:
            if shard in read and then.get(shard, incarnation) != incarnation:
                return f"{shard} is another one by now, made at {incarnation}"
        known = {loss.shard for loss in earlier_plan.losses}
        gone = next((loss for loss in self.losses if loss.shard not in known), None)
        return f"{gone.shard}: {gone.cause}" if gone else ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; see `from_json`."""
        parts = self._parts()
        return {**parts, "fingerprint": self.fingerprint, "checksum": _digest(parts)}

    def _parts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "reader": self.reader,
            "source": {
                "system": self.source.system,
                "cluster": self.source.cluster,
                "names": list(self.source.names),
                "incarnation": dict(self.source.incarnation),
            },
            "window": self.window.to_json(),
            "basis": self.basis,
            "filter": self.filter.to_json() if self.filter else None,
            "start_cut": self.start_cut.to_json(),
            "end_cut": self.end_cut.to_json(),
            "ranges": [part_to_json(one) for one in self.ranges],
            "splits": [split_to_json(one) for one in self.splits],
            "estimate": {"bytes": self.estimate.bytes, "events": self.estimate.events},
            "observed_at": self.observed_at.astimezone(UTC).isoformat(),
            "head": self.head.to_json(),
            "tail": self.tail.to_json(),
            "losses": [part_to_json(one) for one in self.losses],
            "skew_seconds": list(self.skew_seconds) if self.skew_seconds else None,
            "remarks": list(self.remarks),
            "terms": self.terms.to_json() if self.terms else None,
            "decoding": self.decoding.to_json() if self.decoding else None,
            "selection": self.selection.to_json() if self.selection else None,
            "skipped": [part_to_json(one) for one in self.skipped],
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
        except KeyError as error:
            raise PlanMismatch(f"this is not a plan: it lacks {error}") from error
        except (TypeError, AttributeError, ValueError) as error:
            raise PlanMismatch(f"this is not a plan: {type(error).__name__}: {error}") from error
        if plan.fingerprint != fingerprint or _digest(plan._parts()) != checksum:  # noqa: SLF001 - its own class
            raise PlanMismatch(f"plan {fingerprint[:12]} was changed after it was made")
        plan.check()
        return plan

    @classmethod
    def _from_json(cls, data: dict[str, Any]) -> Self:
        source, filter_, terms = data["source"], data["filter"], data["terms"]
        decoding, selection, skews = data["decoding"], data["selection"], data["skew_seconds"]
        incarnation = tuple(source["incarnation"].items())
        return cls(
            version=data["version"],
            reader=data["reader"],
            source=SourceRef(source["system"], source["cluster"], tuple(source["names"]), incarnation),
            window=Window.from_json(data["window"]),
            basis=data["basis"],
            filter=filter_from_json(filter_) if filter_ else None,
            start_cut=Cut.from_json(data["start_cut"]),
            end_cut=Cut.from_json(data["end_cut"]),
            ranges=tuple(part_from_json(Range, one) for one in data["ranges"]),
            splits=tuple(split_from_json(one) for one in data["splits"]),
            estimate=Estimate(**data["estimate"]),
            observed_at=datetime.fromisoformat(data["observed_at"]),
            head=Cut.from_json(data["head"]),
            tail=Cut.from_json(data["tail"]),
            losses=tuple(part_from_json(Loss, one) for one in data["losses"]),
            skew_seconds=tuple(skews) if skews else None,
            remarks=tuple(data["remarks"]),
            terms=Terms.from_json(terms) if terms else None,
            decoding=Decoding.from_json(decoding) if decoding else None,
            selection=Selection.from_json(selection) if selection else None,
            skipped=tuple(part_from_json(Skipped, one) for one in data["skipped"]),
        )


def _digest(value: dict[str, Any]) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]
