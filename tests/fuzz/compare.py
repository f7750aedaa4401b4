"""The package's decoder and the plain one, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from airflow_provider_streams.errors import CorruptFrame
from airflow_provider_streams.systems.pulsar.decode import COLUMNS, Decoder, parse_metadata
from tests.fuzz.plain import RefusedError, Stored, rows

TOPIC, PARTITION = "persistent://shop/orders/events", 3
COMPARED = tuple(name for name in COLUMNS if name not in {"topic", "partition", "message_id"})
"""Those that the bytes decide."""

Edges = tuple[int, int] | None
"""Only messages with these batch indexes are asked for."""


class DifferentError(AssertionError):
    """The two decoders do not agree."""


def ours(entries: Iterable[Stored], columns: Sequence[str], edges: Edges = None) -> tuple[pa.Table, Decoder]:
    """What the package makes of them.

    Raises:
        CorruptFrame: it refuses one of them.
    """
    decoder = Decoder(columns, TOPIC, PARTITION)
    for each in entries:
        add(decoder, each, edges)
    batches = decoder.flush()
    return pa.Table.from_batches(batches, decoder.schema), decoder


def add(decoder: Decoder, each: Stored, edges: Edges = None) -> None:
    """One entry, as a reader adds it."""
    metadata = parse_metadata(each.metadata)
    if metadata.marker_type is not None or metadata.encrypted or metadata.num_chunks > 1:
        return  # of which readers make something else
    first, end = edges or (0, None)
    place = each.ledger, each.entry
    payload = memoryview(each.payload)
    decoder.add(*place, each.broker, metadata, payload, first_batch_index=first, end_batch_index=end)


def theirs(entries: Iterable[Stored], columns: Sequence[str], edges: Edges = None) -> dict[str, pa.Array]:
    """What the plain decoder makes of them.

    Raises:
        RefusedError: it refuses one of them.
    """
    asked = frozenset(columns)
    found = [row for each in entries for row in rows(each, asked, *(edges or ()))]
    return {name: pa.array([row[name] for row in found], COLUMNS[name]) for name in columns}


def check_equal(entries: Sequence[Stored], columns: Sequence[str], edges: Edges = None) -> tuple[int, Decoder]:
    """How many rows these legal entries have; both decoders give the same ones.

    Raises:
        DifferentError: they do not.
    """
    expected = theirs(entries, columns, edges)
    table, decoder = ours(entries, columns, edges)
    for name in columns:
        got = table.column(name).combine_chunks()
        got.validate(full=True)
        if not got.equals(expected[name]):
            raise DifferentError(f"column {name} differs ({len(got)} rows, expected {len(expected[name])})")
    return table.num_rows, decoder


def check_refused(entry: Stored, among: Sequence[Stored], columns: Sequence[str]) -> str:
    """Why this entry, which the plain decoder refuses, is refused by ours too, by name, in the midst of good ones."""
    half = len(among) // 2
    try:
        ours([*among[:half], entry, *among[half:]], columns)
    except CorruptFrame as error:
        why = str(error)
        if f"entry {entry.ledger}:{entry.entry} " not in why and not why.startswith("its metadata ("):
            raise DifferentError(f"another entry is named: {why}") from error
        return why
    raise DifferentError("it is taken")


def is_legal(entry: Stored, columns: Sequence[str]) -> bool:
    """Whether the plain decoder takes it."""
    try:
        rows(entry, frozenset(columns))
    except RefusedError:
        return False
    return True
