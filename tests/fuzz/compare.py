"""The package's decoder and the plain one, side by side."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from unittest import mock

import numpy as np
import pyarrow as pa

from airflow_provider_streams.errors import CorruptFrame
from airflow_provider_streams.systems.pulsar.reading.decode import memory
from airflow_provider_streams.systems.pulsar.reading.decode.batches import message_offsets
from airflow_provider_streams.systems.pulsar.reading.decode.columns import COLUMNS
from airflow_provider_streams.systems.pulsar.reading.decode.decoder import Decoder
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import parse_metadata
from tests.fuzz.plain import RefusedError, Stored, columns_of

TOPIC, PARTITION = "persistent://shop/orders/events", 3
COMPARED = tuple(name for name in COLUMNS if name not in {"topic", "partition", "message_id"})
"""Those that the bytes decide."""

Edges = tuple[int, int] | None
"""Only messages with these batch indexes are asked for."""


class DifferentError(AssertionError):
    """The two decoders do not agree."""


def decoder_of(columns: Sequence[str]) -> Decoder:
    """A decoder of the package."""
    return Decoder(columns, TOPIC, PARTITION)


def ours(entries: Iterable[Stored], decoder: Decoder, edges: Edges = None) -> pa.Table:
    """What the package makes of them: of an even number of bytes where they were received, others without a scan.

    Raises:
        CorruptFrame: it refuses one of them.
    """
    listed = list(entries)
    in_place = sum(len(one.payload) for one in listed) % 2 == 0
    try:
        for each, payload in zip(listed, received([one.payload for one in listed]), strict=True):
            add(decoder, each, edges, payload)
    except CorruptFrame:
        decoder.take()
        raise
    shortest = 0 if in_place else memory.FEWEST_BYTES
    longest = message_offsets.LONGEST_TO_SCAN if in_place else 0
    with (
        mock.patch.object(memory, "FEWEST_BYTES", shortest),
        mock.patch.object(message_offsets, "LONGEST_TO_SCAN", longest),
    ):
        return pa.Table.from_batches(decoder.flush(), decoder.schema)


def received(payloads: Sequence[bytes]) -> Iterator[memoryview]:
    """Payloads as they lie in the block that they were received into, with something else around each."""
    dice = random.Random(sum(map(len, payloads)))
    around = [dice.randbytes(dice.randint(0, 60)) for _ in payloads]
    trailing = dice.randbytes(dice.choice([0, 511, 512, 700]))
    block = np.frombuffer(bytearray(b"".join([*chain(*zip(around, payloads, strict=True)), trailing])), np.uint8)
    end = 0
    for before, payload in zip(around, payloads, strict=True):
        begin = end + len(before)
        end = begin + len(payload)
        yield block.data[begin:end]


def add(decoder: Decoder, each: Stored, edges: Edges = None, payload: memoryview | None = None) -> None:
    """One entry, as a reader adds it."""
    metadata = parse_metadata(each.metadata)
    if metadata.marker_type is not None or metadata.encrypted or metadata.num_chunks > 1:
        return  # of which readers make something else
    first, end = edges or (0, None)
    place = each.ledger, each.entry
    there = memoryview(each.payload) if payload is None else payload
    decoder.add(*place, each.broker, metadata, there, first_batch_index=first, end_batch_index=end)


def theirs(entries: Iterable[Stored], columns: Sequence[str], edges: Edges = None) -> dict[str, pa.Array]:
    """What the plain decoder makes of them.

    Raises:
        RefusedError: it refuses one of them.
    """
    asked = frozenset(columns)
    found = [columns_of(each, asked, *(edges or ())) for each in entries]
    return {name: pa.array(list(chain(*(each[name] for each in found))), COLUMNS[name]) for name in columns}


def check_equal(entries: Sequence[Stored], columns: Sequence[str], edges: Edges = None) -> tuple[int, Decoder]:
    """How many rows these legal entries have; both decoders give the same ones.

    Raises:
        DifferentError: they do not.
    """
    expected = theirs(entries, columns, edges)
    decoder = decoder_of(columns)
    table = ours(entries, decoder, edges)
    for name in columns:
        got = table.column(name).combine_chunks()
        got.validate(full=True)
        if not got.equals(expected[name]):
            raise DifferentError(f"column {name} differs ({len(got)} rows, expected {len(expected[name])})")
    return table.num_rows, decoder


def check_refused(entry: Stored, among: Sequence[Stored], decoder: Decoder) -> CorruptFrame:
    """Why this entry, which the plain decoder refuses, is refused by ours too, by name, in the midst of good ones.

    Raises:
        DifferentError: it is not.
    """
    half = len(among) // 2
    try:
        ours([*among[:half], entry, *among[half:]], decoder)
    except CorruptFrame as error:
        # what is no metadata is named by its receiver
        if error.place != (entry.ledger, entry.entry) and not str(error).startswith("its metadata ("):
            raise DifferentError(f"another entry is named: {error}") from error
        return error
    raise DifferentError("it is taken")


def is_legal(entry: Stored, columns: Sequence[str]) -> bool:
    """Whether the plain decoder takes it."""
    try:
        columns_of(entry, frozenset(columns))
    except RefusedError:
        return False
    return True
