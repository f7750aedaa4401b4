"""Random model values that are valid."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

from hypothesis import strategies as st

from airflow_provider_streams.model.plan.plan import Estimate, Loss, Plan, Range, SourceRef, Span, Split, Terms
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.plan.row_filter import FieldFilter, RowFilter, Stored
from airflow_provider_streams.model.plan.time_statistics import TimeStatistics
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window

zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1900, 1, 2), datetime(9999, 12, 30), timezones=st.one_of(st.just(UTC), zones))  # noqa: DTZ001 - bounds are naive
texts = st.text(max_size=20)
numbers = st.integers(-(2**63), 2**64 - 1)
counts = st.integers(0, 2**62)
positions = st.lists(numbers, min_size=1, max_size=4).map(lambda parts: Position(tuple(parts)))
cuts = st.dictionaries(texts, positions, max_size=4).map(Cut)


@st.composite
def windows(draw):
    start, end = draw(moments), draw(moments)
    if start > end:
        start, end = end, start
    return Window(start, end if end > start else start + timedelta(microseconds=1))


@st.composite
def spans(draw):
    first = draw(counts)
    return Span(draw(numbers), first, first + draw(st.integers(1, 1000)))


stored = st.builds(
    Stored,
    texts,
    st.none() | st.dictionaries(texts, st.tuples(numbers, numbers), max_size=2),
    st.none() | st.tuples(cuts, cuts),
)
filters = (
    st.none()
    | st.builds(RowFilter, texts, numbers, numbers)
    | st.builds(FieldFilter, texts, numbers, numbers, st.sampled_from([None, "s", "ns"]), st.none() | stored)
)
incarnations_of = st.dictionaries(texts, texts, max_size=2).map(lambda facts: tuple(facts.items()))
sources = st.builds(SourceRef, texts, texts, st.lists(texts, max_size=3).map(tuple), incarnations_of)
slacks = st.none() | st.timedeltas(timedelta(0), timedelta(days=9))
terms = st.builds(Terms, slacks, slacks, st.sampled_from(["fail", "record"])) | st.builds(
    Terms,
    slacks,
    st.none(),
    st.just("fail"),
    st.timedeltas(timedelta(0), timedelta(days=9)),
    st.none() | texts,
    st.sampled_from([None, "ms"]),
    st.sampled_from(["exact", "superset"]),
)


@st.composite
def shards(draw, name, index):
    """A range, its splits numbered from `index`, and its loss, if any; its positions are all of one length."""
    edges = sorted(draw(st.sets(numbers, min_size=2, max_size=4)))
    start, end = Position.of(edges[0]), Position.of(edges[-1])
    splits = [
        Split(index + n, name, Position.of(a), Position.of(b), draw(counts), tuple(draw(st.lists(spans(), max_size=2))))
        for n, (a, b) in enumerate(pairwise(edges))
    ]
    counted = [split.entries for split in splits]
    entries = None if None in counted else sum(counted)
    lost = draw(st.none() | st.builds(Loss, st.just(name), st.just(Position.of(edges[0] - 1)), st.just(start), texts))
    verdict = draw(st.sampled_from(["ok", "empty", "unknown", "edge: 5 min to expiry", "lost: why"]))
    held = Range(name, start, end, draw(counts), entries, draw(st.none() | positions), verdict)
    return held, splits, lost


@st.composite
def plans(draw):
    """Plans that hold together."""
    ranges, splits, losses = [], [], []
    for name in draw(st.sets(texts, max_size=3)):
        held, parts, lost = draw(shards(name, len(splits)))
        ranges.append(held)
        splits += parts
        losses += [lost] if lost else []
    begins = {one.shard: one.start for one in ranges}
    return Plan(
        reader=draw(texts),
        source=draw(sources),
        window=draw(windows()),
        basis=draw(st.sampled_from(["publish", "append", "event", "chained", "cuts"])),
        filter=draw(filters),
        start_cut=Cut({**begins, **{loss.shard: loss.start for loss in losses}}),
        end_cut=Cut({one.shard: one.end for one in ranges}),
        ranges=tuple(ranges),
        splits=tuple(splits),
        estimate=Estimate(draw(counts), draw(st.none() | counts)),
        observed_at=draw(moments),
        head=draw(cuts),
        losses=tuple(losses),
        terms=draw(st.none() | terms),
    )


split_receipts = st.builds(
    SplitReceipt,
    index=counts,
    rows=counts,
    bytes=counts,
    entries=counts,
    filtered=counts,
    duplicates=counts,
    quarantined=counts,
    first=st.none() | positions,
    last=st.none() | positions,
    gaps=st.lists(spans(), max_size=2).map(tuple),
    explained=st.dictionaries(texts, st.integers(1, 2**40), max_size=3),
    times=st.lists(
        st.builds(TimeStatistics, spans(), st.none() | numbers, st.none() | numbers, counts), max_size=2
    ).map(tuple),
)
