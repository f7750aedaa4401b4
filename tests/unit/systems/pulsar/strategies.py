"""Random layouts of a shard, and random places in them."""

from hypothesis import strategies as st

from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, Ledger
from airflow_provider_streams.systems.pulsar.metadata.ledgers import Layout


@st.composite
def layouts(draw, max_entries=60_000):
    counts = draw(st.lists(st.one_of(st.just(0), st.integers(1, 50), st.integers(1, max_entries)), max_size=6))
    steps = draw(st.lists(st.integers(1, 5), min_size=len(counts), max_size=len(counts)))
    ledgers, ledger = [], 7
    for count, step in zip(counts, steps, strict=True):
        ledger += step
        size = draw(st.integers(count, count * 5_000_000)) if count else 0
        ledgers.append(Ledger(ledger, count, size))
    return Layout(tuple(ledgers), EntryId(ledger, max(0, counts[-1]) - 1 if counts else -1))


@st.composite
def places(draw, layout):
    """Entry positions in, between and around the ledgers."""
    last = layout.ledgers[-1].ledger if layout.ledgers else 7
    ledger = draw(st.integers(-1, last + 2))
    entries = next((row.entries for row in layout.ledgers if row.ledger == ledger), 3)
    return Position.of(ledger, draw(st.integers(-1, entries + 2)), -1)
