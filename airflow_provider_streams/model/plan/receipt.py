"""The receipt: what was read, compared with the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from airflow_provider_streams.errors import ReceiptMismatch
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.plan.plan import Plan, Span, Split
from airflow_provider_streams.model.plan.time_statistics import TimeStatistics
from airflow_provider_streams.model.stream.position import Position

Verdict = Literal["complete", "loss recorded", "unproven"]
"""`unproven`: everything stored was read, but events may have been removed before the source was first observed."""


@dataclass(frozen=True, slots=True)
class SplitReceipt:
    """What one split's reader saw. Counts are for this split only."""

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
    """Events that could not be decoded, put in quarantine with their position."""
    dropped: int = 0
    """Events that could not be decoded, left out as asked."""
    other_type: int = 0
    """Events of a record type that the source does not read."""
    kinds: dict[str, int] = field(default_factory=dict)
    """Messages of a change data connector by kind (`tombstone`, `heartbeat`, ..), except those that change a row.

    All but truncates are no rows."""
    quarantine_file: str = ""
    """The name of the file with the quarantined ones."""
    untimed: int = 0
    """Rows without an event time, which are in this window because they were stored in its time."""
    unmatched_keys: int = 0
    """JSON objects with keys that no column takes, if a column is empty in all of the split's objects.

    Perhaps its values are there under another name."""
    other_keys: tuple[str, ...] = ()
    """Some of these keys; see `some_names`."""
    empty_columns: tuple[str, ...] = ()
    """Some of these columns."""
    first: Position | None = None
    last: Position | None = None
    """Positions of the first and last row given to Spark."""
    gaps: tuple[Span, ...] = ()
    """Planned units never seen and not yet explained."""
    explained: dict[str, int] = field(default_factory=dict)
    """Planned units that hold no event, counted by cause: `marker`, `aborted`, `compacted`, `lost`, .."""
    times: tuple[TimeStatistics, ...] = ()
    """The times of all events that were read, piece by piece; empty: there is no row filter, or they are not known."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **{name: getattr(self, name) for name in self.__slots__},
            "other_keys": list(self.other_keys),
            "empty_columns": list(self.empty_columns),
            "first": str(self.first) if self.first else None,
            "last": str(self.last) if self.last else None,
            "gaps": [[gap.run, gap.first, gap.end] for gap in self.gaps],
            "times": [one.to_json() for one in self.times],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(
            **{
                **data,
                "first": Position.parse(data["first"]) if data["first"] else None,
                "last": Position.parse(data["last"]) if data["last"] else None,
                "other_keys": tuple(data["other_keys"]),
                "empty_columns": tuple(data["empty_columns"]),
                "gaps": tuple(Span(*gap) for gap in data["gaps"]),
                "times": tuple(map(TimeStatistics.from_json, data["times"])),
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
        """Events that are no rows, because they could not be decoded."""
        return sum(split.quarantined + split.dropped for split in self.splits)

    @property
    def other_type(self) -> int:
        """Events that are no rows, because the source does not read their record type."""
        return sum(split.other_type for split in self.splits)

    @property
    def kinds(self) -> dict[str, int]:
        """Messages of a change data connector by kind, except those that change a row."""
        return dict(sum((Counter(split.kinds) for split in self.splits), Counter[str]()))

    @property
    def other_keys(self) -> tuple[str, ...]:
        """Some of the keys that no column takes."""
        return some_names(key for split in self.splits for key in split.other_keys)

    @property
    def empty_columns(self) -> tuple[str, ...]:
        """Some of the columns that are empty in all objects of a split that have such keys."""
        return some_names(column for split in self.splits for column in split.empty_columns)

    @property
    def totals(self) -> dict[str, int]:
        """Every count over all splits, explained causes included."""
        names = ("rows", "bytes", "entries", "filtered", "duplicates", "quarantined", "dropped")
        totals = {name: sum(getattr(split, name) for split in self.splits) for name in names}
        for name in ("untimed", "other_type", "unmatched_keys"):
            if count := sum(getattr(split, name) for split in self.splits):
                totals[name] = count
        totals |= self.kinds
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


def some_names(names: Iterable[str]) -> tuple[str, ...]:
    """The first of these names in order, few and short enough for a person to read."""
    return tuple(sorted({name[:_NAME_LENGTH] for name in names})[:_NAMES])


_NAMES = 8
_NAME_LENGTH = 60


def worst(receipts: Iterable[SplitReceipt]) -> list[SplitReceipt]:
    """One receipt per split: a split read twice (a self-join, a lost executor) reports twice; the worse one counts."""
    found: dict[int, SplitReceipt] = {}
    for receipt in receipts:
        known = found.setdefault(receipt.index, receipt)
        found[receipt.index] = min(known, receipt, key=lambda one: one.entries)
    return list(found.values())


def compare(plan: Plan, splits: Iterable[SplitReceipt], *, seconds: float) -> Receipt:
    """The receipt of a plan, if what was read agrees with it.

    Every planned split must report exactly once, every planned unit must have been seen or explained, and the plan
    itself must hold together.

    Raises:
        ReceiptMismatch: otherwise, naming each difference.
        PlanMismatch: the plan leaves something out.
    """
    plan.check()
    reports = sorted(splits, key=lambda split: split.index)
    if problems := list(_problems(plan, reports)):
        raise ReceiptMismatch(plan.fingerprint, problems)
    return Receipt(plan.fingerprint, tuple(reports), seconds, _verdict(plan, reports))


def _verdict(plan: Plan, reports: Iterable[SplitReceipt]) -> Verdict:
    if plan.losses or any(report.explained.get("lost") for report in reports):
        return "loss recorded"
    return "unproven" if plan.unproven else "complete"


def check_split(plan: Plan, split: Split, report: SplitReceipt) -> None:
    """Check that one split was read as planned, for a task that does not see the others.

    Raises:
        ReceiptMismatch: otherwise, naming each difference.
    """
    if problems := list(_split_problems(split, report)):
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
        yield f"{where}: {counted(gap.entries, 'stored unit')} never seen, {gap.run}:{gap.first} to {gap.run}:{gap.end}"
    if split.entries is not None:
        seen = report.entries + sum(report.explained.values()) + sum(gap.entries for gap in report.gaps)
        if seen != split.entries:
            yield f"{where}: {counted(split.entries, 'stored unit')} planned, {seen:,} accounted for"
    for name in ("first", "last"):
        position = getattr(report, name)
        if position is not None and not split.start <= position < split.end:
            yield f"{where}: its {name} row {position} is outside [{split.start}, {split.end})"
