"""Random model values that are valid."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Estimate, Loss, Plan, Range, RowFilter, SourceRef, Span, Split
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.model.window import Window

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


ranges = st.builds(
    Range,
    shard=texts,
    start=positions,
    end=positions,
    bytes=counts,
    entries=st.none() | counts,
    first_kept=st.none() | positions,
    verdict=st.sampled_from(["ok", "empty", "unknown", "edge: 5 min to expiry", "lost: why"]),
)
filters = st.none() | st.builds(RowFilter, texts, numbers, numbers)
sources = st.builds(SourceRef, texts, texts, st.lists(texts, max_size=3).map(tuple))


@st.composite
def plans(draw):
    count = draw(st.integers(0, 4))
    return Plan(
        reader=draw(texts),
        source=draw(sources),
        window=draw(windows()),
        basis=draw(st.sampled_from(["publish", "append", "event", "chained", "cuts"])),
        filter=draw(filters),
        start_cut=draw(cuts),
        end_cut=draw(cuts),
        ranges=tuple(draw(st.lists(ranges, max_size=3))),
        splits=tuple(
            Split(
                i,
                draw(texts),
                draw(positions),
                draw(positions),
                draw(counts),
                tuple(draw(st.lists(spans(), max_size=2))),
            )
            for i in range(count)
        ),
        estimate=Estimate(draw(counts), draw(st.none() | counts)),
        observed_at=draw(moments),
        head=draw(cuts),
        losses=tuple(draw(st.lists(st.builds(Loss, texts, positions, positions, texts), max_size=2))),
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
)
