"""Asks what the planned entries were that a read never met: markers and aborted messages, or lost ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from airflow_provider_streams.errors import EventsLost, ProtocolError, SystemUnavailable
from airflow_provider_streams.model.plan import OnLoss, Plan, Span
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import EntryId
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient, together
from airflow_provider_streams.systems.pulsar.admin.peek import PeekedEntry
from airflow_provider_streams.systems.pulsar.layout import at

TOGETHER = 1000
"""Entries asked about in one go: a topic with many transactions has a gap for each."""

LOST = "lost"


@dataclass(frozen=True, slots=True)
class Unknown:
    """An entry that could not be looked at."""

    detail: str


Seen = PeekedEntry | Unknown | None
"""None: its ledger is gone."""


def cause_of(seen: Seen) -> str | None:
    """Why an entry was never delivered; None: it should have been."""
    if seen is None:
        return LOST
    if isinstance(seen, Unknown):
        return None
    if seen.marker_type is not None:
        return "marker"
    return "aborted" if seen.aborted else None


def explained(receipt: SplitReceipt, seen: Mapping[EntryId, Seen]) -> SplitReceipt:
    """The receipt with every gap entry counted by its cause; the others stay gaps. Pure."""
    causes: Counter[str] = Counter()
    unexplained: list[EntryId] = []
    for entry in _entries(receipt.gaps):
        cause = cause_of(seen.get(entry, Unknown("not looked at")))
        if cause is None:
            unexplained.append(entry)
        else:
            causes[cause] += 1
    return receipt.explain(causes, tuple(_spans(unexplained)))


def lost_span(receipt: SplitReceipt, seen: Mapping[EntryId, Seen]) -> Span | None:
    """The first run of lost entries of a split."""
    return next(_spans([entry for entry in _entries(receipt.gaps) if entry in seen and seen[entry] is None]), None)


async def explain(
    admin: AsyncAdminClient, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss
) -> tuple[SplitReceipt, ...]:
    """The receipts with their gaps explained.

    Raises:
        EventsLost: entries are gone, and loss is not accepted.
    """
    reports = tuple(receipts)
    shards = {split.index: split.shard for split in plan.splits}
    seen = await _look(admin, reports, shards)
    if on_loss == "fail":
        for report in reports:
            _refuse_loss(report, shards.get(report.index, ""), seen.get(report.index, {}))
    return tuple(explained(report, seen.get(report.index, {})) for report in reports)


async def _look(
    admin: AsyncAdminClient, reports: Iterable[SplitReceipt], shards: Mapping[int, str]
) -> dict[int, dict[EntryId, Seen]]:
    wanted = ((report.index, entry) for report in reports if report.index in shards for entry in _entries(report.gaps))
    found: dict[int, dict[EntryId, Seen]] = {}
    while some := list(islice(wanted, TOGETHER)):
        answers = await together(_peek(admin, shards[index], entry) for index, entry in some)
        for (index, entry), seen in zip(some, answers, strict=True):
            found.setdefault(index, {})[entry] = seen
    return found


async def _peek(admin: AsyncAdminClient, shard: str, entry: EntryId) -> Seen:
    try:
        return await admin(requests.peek(shard, entry.ledger, entry.entry))
    except (SystemUnavailable, ProtocolError) as error:
        # it stays a gap, and the comparison with the plan names it
        return Unknown(str(error))


def _refuse_loss(report: SplitReceipt, shard: str, seen: Mapping[EntryId, Seen]) -> None:
    span = lost_span(report, seen)
    if span is None:
        return
    lost = sum(cause_of(entry) == LOST for entry in seen.values())
    raise EventsLost(
        shard,
        at(span.run, span.first),
        at(span.run, span.end),
        f"{lost} entries",
        f"ledger {span.run} was removed by retention, expiry or truncation after the window was planned",
    )


def _entries(gaps: Iterable[Span]) -> Iterator[EntryId]:
    for gap in gaps:
        for entry in range(gap.first, gap.end):
            yield EntryId(gap.run, entry)


def _spans(entries: Iterable[EntryId]) -> Iterator[Span]:
    """Neighbouring entries as spans."""
    current: Span | None = None
    for entry in sorted(entries):
        if current is not None and (current.run, current.end) == (entry.ledger, entry.entry):
            current = Span(current.run, current.first, entry.entry + 1)
            continue
        if current is not None:
            yield current
        current = Span(entry.ledger, entry.entry, entry.entry + 1)
    if current is not None:
        yield current
