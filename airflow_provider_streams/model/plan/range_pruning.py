"""Leaves out of a plan what the receipts of earlier windows prove to hold no event of its window. Pure.

Windows by event time read more than their own events, and their neighbors read it again. A piece that was read whole,
with all its events outside another window, need not be read for that one. Nothing is inferred: a piece that receipts
do not describe, or only in part, is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import groupby
from typing import Final

from airflow_provider_streams.model.plan.plan import Estimate, Plan, Skipped, Span, Split
from airflow_provider_streams.model.plan.plan_summary import bytes_text
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.plan.row_filter import AnyFilter, FieldFilter
from airflow_provider_streams.model.plan.time_statistics import TimeStatistics, earliest, latest
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.coverage import merged
from airflow_provider_streams.model.window.window import moment_of_ms

WORTH_A_SPLIT: Final = 4 * 1024 * 1024
"""A piece between two others that are read is skipped if it has so many bytes: each split is one more task."""

PositionOf = Callable[[int, int], Position]
"""Where a stored unit of a run begins."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A plan that was read, and the receipt that agrees with it."""

    plan: Plan
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Neighbouring stored units that are read, or skipped, together."""

    spans: tuple[Span, ...]
    seen: tuple[TimeStatistics, ...] = ()
    """What proves that they may be skipped; none: they are read."""

    @property
    def entries(self) -> int:
        return sum(span.entries for span in self.spans)


def narrowed(plan: Plan, proofs: Iterable[Proof], position_of: PositionOf) -> Plan:
    """The plan without what is proven to hold no event of its window; rows and counts of rows stay the same.

    Only what was read of the same incarnation of a shard, and by the same time of the same decoded events, counts.

    Args:
        plan: of a basis with a row filter; others stay as they are.
        proofs: of the same source.
        position_of: the system's.
    """
    if plan.filter is None or plan.skipped:
        return plan
    elsewhen = _elsewhen(plan, plan.filter, proofs)
    splits: list[Split] = []
    skipped: list[Skipped] = []
    for split in plan.splits:
        for part in _parts(split, elsewhen.get(split.shard, {}), position_of):
            if isinstance(part, Skipped):
                skipped.append(part)
            else:
                splits.append(replace(part, index=len(splits)))
    if not skipped:
        return plan
    return replace(
        plan,
        splits=tuple(splits),
        skipped=tuple(skipped),
        estimate=Estimate(sum(split.bytes for split in splits)),
        remarks=(*plan.remarks, _remark(plan, skipped)),
    )


def _remark(plan: Plan, skipped: Sequence[Skipped]) -> str:
    size, whole = (bytes_text(sum(one.bytes for one in some)) for some in (skipped, plan.splits))
    return f"{size} of {whole} are skipped: windows read before have proven that nothing of this one is there"


# What is proven


def _elsewhen(plan: Plan, rows: AnyFilter, proofs: Iterable[Proof]) -> Mapping[str, Mapping[int, list[TimeStatistics]]]:
    """By shard and run, in order: what is proven to hold no event of the window."""
    start_us, end_us = rows.span_us
    found: dict[str, dict[int, list[TimeStatistics]]] = defaultdict(lambda: defaultdict(list))
    for proof in proofs:
        for shard, seen in _seen(plan, proof):
            if not seen.may_meet(start_us, end_us):
                found[shard][seen.span.run].append(seen)
    for runs in found.values():
        for some in runs.values():
            some.sort(key=lambda seen: (seen.span.first, seen.span.end))
    return found


def _seen(plan: Plan, proof: Proof) -> Iterator[tuple[str, TimeStatistics]]:
    earlier = proof.plan
    if proof.receipt.fingerprint != earlier.fingerprint or _rule(earlier) != _rule(plan):
        return
    then, now = dict(earlier.source.incarnation), dict(plan.source.incarnation)
    for report in proof.receipt.splits:
        shard = earlier.splits[report.index].shard
        is_same = shard in now and now[shard] == then.get(shard)
        for seen in report.times if is_same and _is_whole(report) else ():
            yield shard, seen


def _rule(plan: Plan) -> tuple[object, ...]:
    """What decides which time an event has."""
    rows, source = plan.filter, plan.source
    where = (source.system, source.cluster, plan.selection)
    if isinstance(rows, FieldFilter):
        instead = rows.stored.column if rows.stored and rows.stored.spans is None else None
        return (*where, rows.column, rows.unit, instead, plan.decoding)
    return (*where, rows and rows.column)


def _is_whole(report: SplitReceipt) -> bool:
    """Whether every event of a split was seen."""
    return not report.gaps and not report.explained.get("lost")


# What is left out


def _parts(
    split: Split, elsewhen: Mapping[int, Sequence[TimeStatistics]], position_of: PositionOf
) -> Iterator[Split | Skipped]:
    """Pieces that tile a split: those that are read still, and those that are not."""
    stretches = _worthy(split, _stretches(split, elsewhen))
    if all(not one.seen for one in stretches):
        yield split
        return
    firsts = [one.spans[0] for one in stretches[1:]]
    edges = [split.start, *(position_of(span.run, span.first) for span in firsts), split.end]
    for number, one in enumerate(stretches):
        start, end = edges[number : number + 2]
        size = _bytes_of(split, one)
        if one.seen:
            yield Skipped(split.shard, start, end, size, one.entries, _because(one.seen))
        else:
            yield Split(split.index, split.shard, start, end, size, one.spans)


def _stretches(split: Split, elsewhen: Mapping[int, Sequence[TimeStatistics]]) -> list[_Stretch]:
    pieces = [piece for span in split.spans for piece in _pieces(span, elsewhen.get(span.run, ()))]
    return _joined(_Stretch((span,), () if seen is None else (seen,)) for span, seen in pieces)


def _pieces(span: Span, elsewhen: Iterable[TimeStatistics]) -> Iterator[tuple[Span, TimeStatistics | None]]:
    at = span.first
    for seen in elsewhen:
        first, end = max(seen.span.first, at), min(seen.span.end, span.end)
        if first < end:
            if at < first:
                yield Span(span.run, at, first), None
            yield Span(span.run, first, end), seen
            at = end
    if at < span.end:
        yield Span(span.run, at, span.end), None


def _joined(stretches: Iterable[_Stretch]) -> list[_Stretch]:
    joined = []
    for _, some in groupby(stretches, key=lambda one: bool(one.seen)):
        same = list(some)
        spans = tuple(_whole_spans(span for one in same for span in one.spans))
        joined.append(_Stretch(spans, tuple(seen for one in same for seen in one.seen)))
    return joined


def _whole_spans(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in order, those that touch as one."""
    for run, of_run in groupby(spans, key=lambda span: span.run):
        for first, end in merged((span.first, span.end) for span in of_run):
            yield Span(run, first, end)


def _worthy(split: Split, stretches: list[_Stretch]) -> list[_Stretch]:
    """Without skipping what is too small to begin another split after it."""
    inner = range(1, len(stretches) - 1)
    return _joined(
        replace(one, seen=()) if number in inner and _bytes_of(split, one) < WORTH_A_SPLIT else one
        for number, one in enumerate(stretches)
    )


def _bytes_of(split: Split, one: _Stretch) -> int:
    return round(split.bytes * one.entries / (split.entries or 1))


def _because(seen: Sequence[TimeStatistics]) -> str:
    first, last = earliest(seen), latest(seen)
    if first is None or last is None:
        return "an earlier window read it, and met no event"
    return f"an earlier window read it, and its events are of {_moment(first)} to {_moment(last)}"


def _moment(time_us: int) -> str:
    moment = moment_of_ms(time_us // 1000)
    return f"{time_us} us" if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds")
