"""The receipt: what was read, compared with the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from airflow_provider_streams.errors import ReceiptMismatch
from airflow_provider_streams.model.plan import Plan, Span, Split
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.seen_times import SeenTimes

Verdict = Literal["complete", "loss recorded", "unproven"]
"""`unproven`: all that is stored was read, but nobody can say whether more was, before anybody looked."""


@dataclass(frozen=True, slots=True)
class SplitReceipt:
    """What one split's reader saw. Counts are of this split only."""

    index: int
    rows: int = 0
    """Rows given to Spark."""
    bytes: int = 0
    """Payload bytes of those rows, decompressed."""
    entries: int = 0
    """Stored units seen inside the split (Pulsar: entries; Pravega: stored bytes of whole events, headers included)."""
    filtered: int = 0
    """Events seen but outside the row filter or the window's edges inside a batch."""
    duplicates: int = 0
    """Events delivered again after a reconnect, and dropped."""
    quarantined: int = 0
    """Events that could not be decoded, kept aside with their position."""
    dropped: int = 0
    """Events that could not be decoded, left out as asked."""
    quarantine_file: str = ""
    """The name of the file that holds those kept aside."""
    untimed: int = 0
    """Rows without an event time, which are in this window as they were stored in its time."""
    first: Position | None = None
    last: Position | None = None
    """Positions of the first and last row given to Spark."""
    gaps: tuple[Span, ...] = ()
    """Planned units never seen and not yet explained."""
    explained: dict[str, int] = field(default_factory=dict)
    """Planned units that hold no event, counted by cause: `marker`, `aborted`, `compacted`, `lost`, .."""
    times: tuple[SeenTimes, ...] = ()
    """Between which times its events lie, of all that were read, piece by piece; empty: the plan has no row filter, or
    nobody can tell."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "index": self.index,
            "rows": self.rows,
            "bytes": self.bytes,
            "entries": self.entries,
            "filtered": self.filtered,
            "duplicates": self.duplicates,
            "quarantined": self.quarantined,
            "dropped": self.dropped,
            "quarantine_file": self.quarantine_file,
            **({"untimed": self.untimed} if self.untimed else {}),
            "first": str(self.first) if self.first else None,
            "last": str(self.last) if self.last else None,
            "gaps": [[gap.run, gap.first, gap.end] for gap in self.gaps],
            "explained": dict(self.explained),
            **({"times": [one.to_json() for one in self.times]} if self.times else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(
            **{
                **data,
                "first": Position.parse(data["first"]) if data["first"] else None,
                "last": Position.parse(data["last"]) if data["last"] else None,
                "gaps": tuple(Span(*gap) for gap in data["gaps"]),
                "times": tuple(SeenTimes.from_json(one) for one in data.get("times", ())),
            }
        )

    def explain(self, causes: Counter[str], unexplained: tuple[Span, ...]) -> Self:
        """The same receipt with (some of) its gaps explained."""
        return replace(self, explained=dict(Counter(self.explained) + causes), gaps=unexplained)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was read of a whole plan, in agreement with it: built only by `compare`."""

    fingerprint: str
    splits: tuple[SplitReceipt, ...]
    seconds: float
    verdict: Verdict

    @property
    def rows(self) -> int:
        """Rows given to Spark."""
        return sum(split.rows for split in self.splits)

    @property
    def bytes(self) -> int:
        """Payload bytes of those rows."""
        return sum(split.bytes for split in self.splits)

    @property
    def undecodable(self) -> int:
        """Events that are no rows, for they could not be decoded."""
        return sum(split.quarantined + split.dropped for split in self.splits)

    @property
    def totals(self) -> dict[str, int]:
        """Every count over all splits, explained causes included."""
        counted = ("rows", "bytes", "entries", "filtered", "duplicates", "quarantined", "dropped")
        totals = {name: sum(getattr(split, name) for split in self.splits) for name in counted}
        if untimed := sum(split.untimed for split in self.splits):
            totals["untimed"] = untimed
        for split in self.splits:
            for cause, entries in split.explained.items():
                totals[cause] = totals.get(cause, 0) + entries
        return totals

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "fingerprint": self.fingerprint,
            "splits": [split.to_json() for split in self.splits],
            "totals": self.totals,
            "seconds": round(self.seconds, 3),
            "verdict": self.verdict,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(
            data["fingerprint"],
            tuple(SplitReceipt.from_json(split) for split in data["splits"]),
            data["seconds"],
            data["verdict"],
        )


def worst(receipts: Iterable[SplitReceipt]) -> list[SplitReceipt]:
    """One receipt per split: a split read twice (a self-join, a lost executor) reports twice; the worse one counts."""
    found: dict[int, SplitReceipt] = {}
    for receipt in receipts:
        known = found.get(receipt.index)
        if known is None or receipt.entries < known.entries:
            found[receipt.index] = receipt
    return list(found.values())


def compare(plan: Plan, splits: Iterable[SplitReceipt], *, seconds: float) -> Receipt:
    """The receipt of a plan, if what was read agrees with it.

    Every planned split must report exactly once, and every planned unit must have been seen or explained; and the plan
    itself must hold together.

    Raises:
        ReceiptMismatch: otherwise, naming each difference.
        PlanMismatch: the plan leaves something out.
    """
    plan.check()
    reports = sorted(splits, key=lambda split: split.index)
    problems = list(_problems(plan, reports))
    if problems:
        raise ReceiptMismatch(plan.fingerprint, problems)
    return Receipt(plan.fingerprint, tuple(reports), seconds, _verdict(plan, reports))


def _verdict(plan: Plan, reports: Iterable[SplitReceipt]) -> Verdict:
    if plan.losses or any(report.explained.get("lost") for report in reports):
        return "loss recorded"
    return "unproven" if plan.unproven else "complete"


def check_split(plan: Plan, split: Split, report: SplitReceipt) -> None:
    """Whether one split was read as planned, where nobody sees the others.

    Raises:
        ReceiptMismatch: otherwise, naming each difference.
    """
    problems = list(_split_problems(split, report))
    if problems:
        raise ReceiptMismatch(plan.fingerprint, problems)


def _problems(plan: Plan, reports: list[SplitReceipt]) -> Iterator[str]:
    reported = Counter(report.index for report in reports)
    for split in plan.splits:
        if reported[split.index] != 1:
            yield f"split {split.index} of {split.shard} reported {reported[split.index]} times instead of once"
    planned = {split.index: split for split in plan.splits}
    for report in reports:
        if report.index in planned:
            yield from _split_problems(planned[report.index], report)
        else:
            yield f"split {report.index} reported, but is not in the plan"


def _split_problems(split: Split, report: SplitReceipt) -> Iterator[str]:
    where = f"split {split.index} of {split.shard}"
    for gap in report.gaps:
        yield f"{where}: {gap.entries} stored units {gap.run}:{gap.first} to {gap.run}:{gap.end} were never seen"
    if split.entries is not None:
        seen = report.entries + sum(report.explained.values()) + sum(gap.entries for gap in report.gaps)
        if seen != split.entries:
            yield f"{where}: {split.entries} stored units planned, {seen} accounted for"
    for name in ("first", "last"):
        position = getattr(report, name)
        if position is not None and not split.start <= position < split.end:
            yield f"{where}: its {name} row {position} is outside [{split.start}, {split.end})"
