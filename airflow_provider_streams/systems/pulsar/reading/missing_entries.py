"""Explains planned entries that a read never received: withheld from every reader, or lost; else the read fails.

Brokers withhold their own markers and messages of aborted transactions. So a probe before each gap shows which of its
entries no reader is sent. If the probe is sent an entry of the gap, our read has dropped it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_streams.errors import EventsLost
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.plan.plan import OnLoss, Plan, Span, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.systems.pulsar.metadata.incarnation import incarnations_of
from airflow_provider_streams.systems.pulsar.metadata.ledgers import Layout, at
from airflow_provider_streams.systems.pulsar.planning.cluster_state import ClusterState
from airflow_provider_streams.systems.pulsar.planning.entry_probe import ProbePoint, Walk

NEAR_ENTRIES = 16
"""Gaps at most so far from each other share a probe, which costs as much as some entries."""
PROBE_BYTES = 64 * 1024
"""At most so much may lie between them, as entries are sent whole."""

WITHHELD, LOST = "withheld", "lost"
_RANGES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Gap:
    """Entries of one ledger that the read of one split never received."""

    split: int
    shard: str
    span: Span


async def explain(
    cluster: ClusterState, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss
) -> tuple[SplitReceipt, ...]:
    """The receipts with their gaps explained.

    Raises:
        EventsLost: entries are gone, and loss is not accepted.
    """
    reports = tuple(receipts)
    splits = {split.index: split for split in plan.splits}
    # the comparison with the plan handles a receipt without a planned split
    known = [report for report in reports if report.index in splits]
    gaps = [Gap(report.index, splits[report.index].shard, span) for report in known for span in report.gaps]
    lost = await _lost(cluster, gaps)
    walks = {group: sent_in(group) for group in _groups([gap for gap in gaps if gap not in lost], splits)}
    found = await cluster.walk(walks)
    sent = {gap: spans for one in found.values() for gap, spans in one.items()}
    # a ledger that was removed during the probes held more than they were sent
    lost = await _lost(cluster, gaps)
    if lost and on_loss == "fail":
        raise await _events_lost(cluster, plan, [gap for gap in gaps if gap in lost])
    by_split: dict[int, list[Gap]] = {}
    for gap in gaps:
        by_split.setdefault(gap.split, []).append(gap)
    return tuple(explained(report, by_split.get(report.index, ()), lost, sent) for report in reports)


def explained(
    report: SplitReceipt, gaps: Iterable[Gap], lost: Container[Gap], sent: Mapping[Gap, tuple[Span, ...]]
) -> SplitReceipt:
    """The receipt with every gap entry counted by its cause; entries that readers are sent stay gaps. Pure."""
    causes: Counter[str] = Counter()
    dropped: list[Span] = []
    for gap in gaps:
        ours = () if gap in lost else sent[gap]
        dropped += ours
        causes[LOST if gap in lost else WITHHELD] += gap.span.entries - sum(span.entries for span in ours)
    return report.explain(+causes, tuple(dropped)) if report.gaps and (causes or dropped) else report


async def _lost(cluster: ClusterState, gaps: Iterable[Gap]) -> set[Gap]:
    """The gaps whose ledgers no longer exist."""
    stats = await cluster.stats_if_exists(dict.fromkeys(gap.shard for gap in gaps))
    layouts = {shard: Layout.of(one) for shard, one in stats.items()}
    return {gap for gap in gaps if not layouts[gap.shard].holds(gap.span.run)}


def sent_in(gaps: Sequence[Gap]) -> Walk[dict[Gap, tuple[Span, ...]]]:
    """The part of neighbouring gaps that readers are sent: each gap from its first such entry on."""
    run, first, end = gaps[0].span.run, gaps[0].span.first, gaps[-1].span.end
    sent: dict[Gap, tuple[Span, ...]] = dict.fromkeys(gaps, ())
    while first < end:
        probe = yield ProbePoint(gaps[0].shard, run, first, _wanted(gaps, first))
        met = [head.entry for head in probe.heads if head.ledger == run]
        # the probe decides up to its last entry; an entry of a later ledger, or none, decides about the rest
        first = met[-1] + 1 if met and probe.heads[-1].ledger == run else end
        for gap in gaps:
            inside = [entry for entry in met if gap.span.first <= entry < gap.span.end]
            if inside:
                # one is enough to fail the read
                sent[gap] = (Span(run, inside[0], gap.span.end),)
                first = max(first, gap.span.end)
    return sent


def _wanted(gaps: Sequence[Gap], first: int) -> int:
    """How many entries lie between the gaps from a place on, and one after the last gap."""
    rest = [gap.span for gap in gaps if gap.span.end > first]
    missing = sum(span.end - max(span.first, first) for span in rest)
    return rest[-1].end - first - missing + 1


def _groups(gaps: Sequence[Gap], splits: Mapping[int, Split]) -> list[tuple[Gap, ...]]:
    """The gaps in order, grouped by nearness."""
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
    return right.span.first - left.span.end <= min(NEAR_ENTRIES, PROBE_BYTES / max(mean, 1.0))


async def _events_lost(cluster: ClusterState, plan: Plan, lost: Sequence[Gap]) -> EventsLost:
    """The error with all that is lost of one shard, and how much of other shards."""
    shard = lost[0].shard
    spans = sorted((gap.span for gap in lost if gap.shard == shard), key=lambda span: (span.run, span.first))
    texts = [f"{span.run}:{span.first} to {span.run}:{span.end}" for span in spans]
    more = len(texts) - _RANGES_SHOWN
    shown = ", ".join(texts[:_RANGES_SHOWN]) + (f" and {counted(more, 'more range')}" if more > 0 else "")
    others = [gap for gap in lost if gap.shard != shard]
    more_lost = f", and {sum(gap.span.entries for gap in others)} of other shards," if others else ""
    size = f"{counted(sum(span.entries for span in spans), 'entry')} ({shown}){more_lost}"
    start, end = at(spans[0].run, spans[0].first), at(spans[-1].run, spans[-1].end)
    return EventsLost(shard, start, end, size, await _cause(cluster, plan, shard))


async def _cause(cluster: ClusterState, plan: Plan, shard: str) -> str:
    planned = dict(plan.source.incarnation).get(shard)
    if (await cluster.stats_if_exists([shard]))[shard] is None:
        return "the topic was deleted after the window was planned"
    found = dict(incarnations_of(await cluster.infos([shard]))).get(shard)
    if planned is not None and found is not None and found != planned:
        return f"the topic was deleted, and made again at {found}, after the window was planned"
    return "their ledgers were removed by retention, expiry or truncation after the window was planned"
