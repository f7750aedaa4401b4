"""What planned entries were that a read never met: withheld from every reader, or lost; anything else fails the read.

Readers are not sent the broker's own markers, nor messages of aborted transactions. So a reader is set before each gap,
and what it is sent first tells which entries of the gap nobody is sent. An entry that it is sent was dropped by us.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_streams.errors import EventsLost
from airflow_provider_streams.model.plan import OnLoss, Plan, Span, Split
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient
from airflow_provider_streams.systems.pulsar.identity import identities
from airflow_provider_streams.systems.pulsar.layout import Layout, at
from airflow_provider_streams.systems.pulsar.looks import Place, Walk, walk_all
from airflow_provider_streams.systems.pulsar.survey import Readers, infos_of, stats_if_there

NEAR_ENTRIES = 16
"""Gaps at most so far from each other are looked at together: a reader costs as much as some entries."""
LOOK_BYTES = 64 * 1024
"""What lies between them shall be no more than this, as entries are sent whole."""

WITHHELD, LOST = "withheld", "lost"
_RANGES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Gap:
    """Entries of one ledger that the read of one split never met."""

    split: int
    shard: str
    span: Span


async def explain(
    admin: AsyncAdminClient, readers: Readers, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss
) -> tuple[SplitReceipt, ...]:
    """The receipts with their gaps explained.

    Raises:
        EventsLost: entries are gone, and loss is not accepted.
    """
    reports = tuple(receipts)
    splits = {split.index: split for split in plan.splits}
    # a report of no planned split is left to the comparison
    known = [report for report in reports if report.index in splits]
    gaps = [Gap(report.index, splits[report.index].shard, span) for report in known for span in report.gaps]
    lost = await _lost(admin, gaps)
    sent = await asyncio.to_thread(_sent, readers, splits, [gap for gap in gaps if gap not in lost])
    # a ledger that went while readers were asked held more than they were sent
    lost = await _lost(admin, gaps)
    if lost and on_loss == "fail":
        raise await _events_lost(admin, plan, [gap for gap in gaps if gap in lost])
    by_split: dict[int, list[Gap]] = {}
    for gap in gaps:
        by_split.setdefault(gap.split, []).append(gap)
    return tuple(explained(report, by_split.get(report.index, ()), lost, sent) for report in reports)


def explained(
    report: SplitReceipt, gaps: Iterable[Gap], lost: Container[Gap], sent: Mapping[Gap, tuple[Span, ...]]
) -> SplitReceipt:
    """The receipt with every gap entry counted by its cause; those that readers are sent stay gaps. Pure."""
    causes: Counter[str] = Counter()
    dropped: list[Span] = []
    for gap in gaps:
        ours = () if gap in lost else sent[gap]
        dropped += ours
        causes[LOST if gap in lost else WITHHELD] += gap.span.entries - sum(span.entries for span in ours)
    return report.explain(+causes, tuple(dropped)) if report.gaps and (causes or dropped) else report


async def _lost(admin: AsyncAdminClient, gaps: Iterable[Gap]) -> set[Gap]:
    """The gaps whose ledgers are not there any more."""
    stats = await stats_if_there(admin, dict.fromkeys(gap.shard for gap in gaps))
    layouts = {shard: Layout.of(one) for shard, one in stats.items()}
    return {gap for gap in gaps if not layouts[gap.shard].holds(gap.span.run)}


def _sent(readers: Readers, splits: Mapping[int, Split], gaps: Sequence[Gap]) -> dict[Gap, tuple[Span, ...]]:
    """The part of each gap that readers are sent; blocks."""
    walks = {group: sent_in(group) for group in _groups(gaps, splits)}
    return {gap: spans for found in walk_all(readers.look, walks).values() for gap, spans in found.items()}


def sent_in(gaps: Sequence[Gap]) -> Walk[dict[Gap, tuple[Span, ...]]]:
    """What of neighbouring gaps readers are sent: of each gap the first such entry, and the rest behind it."""
    run, first, end = gaps[0].span.run, gaps[0].span.first, gaps[-1].span.end
    sent: dict[Gap, tuple[Span, ...]] = dict.fromkeys(gaps, ())
    while first < end:
        look = yield Place(gaps[0].shard, run, first, _wanted(gaps, first))
        met = [head.entry for head in look.heads if head.ledger == run]
        # all up to the last entry that was met is known; behind a later ledger's, or none at all, there is nothing more
        first = met[-1] + 1 if met and look.heads[-1].ledger == run else end
        for gap in gaps:
            inside = [entry for entry in met if gap.span.first <= entry < gap.span.end]
            if inside:
                # one is enough to fail the read: the others need not be looked at
                sent[gap] = (Span(run, inside[0], gap.span.end),)
                first = max(first, gap.span.end)
    return sent


def _wanted(gaps: Sequence[Gap], first: int) -> int:
    """How many entries lie between the gaps from a place on, and the one behind the last of them."""
    rest = [gap.span for gap in gaps if gap.span.end > first]
    missing = sum(span.end - max(span.first, first) for span in rest)
    return rest[-1].end - first - missing + 1


def _groups(gaps: Sequence[Gap], splits: Mapping[int, Split]) -> list[tuple[Gap, ...]]:
    """The gaps in order, those near each other together."""
    groups: list[list[Gap]] = []
    for gap in sorted(gaps, key=lambda gap: (gap.shard, gap.span.run, gap.span.first)):
        last = groups[-1][-1] if groups else None
        if last is not None and _are_near(last, gap, splits[gap.split]):
            groups[-1].append(gap)
        else:
            groups.append([gap])
    return [tuple(group) for group in groups]


def _are_near(left: Gap, right: Gap, split: Split) -> bool:
    if (left.split, left.span.run) != (right.split, right.span.run):
        return False
    mean = split.bytes / (split.entries or 1)
    return right.span.first - left.span.end <= min(NEAR_ENTRIES, LOOK_BYTES / max(mean, 1.0))


async def _events_lost(admin: AsyncAdminClient, plan: Plan, lost: Sequence[Gap]) -> EventsLost:
    """All that is lost of the first shard that lost something, and how much of the others."""
    shard = lost[0].shard
    spans = sorted((gap.span for gap in lost if gap.shard == shard), key=lambda span: (span.run, span.first))
    texts = [f"{span.run}:{span.first} to {span.run}:{span.end}" for span in spans]
    more = len(texts) - _RANGES_SHOWN
    shown = ", ".join(texts[:_RANGES_SHOWN]) + (f" and {more} more ranges" if more > 0 else "")
    others = [gap for gap in lost if gap.shard != shard]
    beside = f", and {sum(gap.span.entries for gap in others)} of other shards," if others else ""
    size = f"{sum(span.entries for span in spans)} entries ({shown}){beside}"
    start, end = at(spans[0].run, spans[0].first), at(spans[-1].run, spans[-1].end)
    return EventsLost(shard, start, end, size, await _cause(admin, plan, shard))


async def _cause(admin: AsyncAdminClient, plan: Plan, shard: str) -> str:
    planned = dict(plan.source.identity).get(shard)
    if (await stats_if_there(admin, [shard]))[shard] is None:
        return "the topic was deleted after the window was planned"
    found = dict(identities(await infos_of(admin, [shard]))).get(shard)
    if planned is not None and found is not None and found != planned:
        return f"the topic was deleted, and made anew at {found}, after the window was planned"
    return "their ledgers were removed by retention, expiry or truncation after the window was planned"
