"""How fast entries become record batches, with nothing before or after: `python tests/bench/decode.py`.

CPU seconds, so that other work on the machine counts as little as possible; best of several rounds.
"""

from __future__ import annotations

import argparse
import random
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_streams.systems.pulsar.client.protobuf import write_varint
from airflow_provider_streams.systems.pulsar.reading.decode.decoder import Decoder
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import parse_metadata

FLUSH_BYTES, FLUSH_ENTRIES = 16 << 20, 4096
"""As the split reader flushes."""


@dataclass(frozen=True)
class Case:
    """Entries of one shape: how many messages each holds, and how to make one message's key and value."""

    name: str
    entries: int
    messages: int
    key: Callable[[random.Random], bytes]
    value: Callable[[random.Random], bytes]
    properties: int = 0


@dataclass(frozen=True)
class Speed:
    """Of one case."""

    name: str
    messages_per_second: float
    bytes_per_second: float
    entries_per_second: float
    paths: dict[str, int]

    def __str__(self) -> str:
        return (
            f"{self.name:38} {self.messages_per_second / 1e6:6.2f} M msg/s {self.bytes_per_second / 1e6:7.0f} MB/s "
            f"{self.entries_per_second / 1e3:8.1f} k entries/s  {self.paths}"
        )


def nothing(_: random.Random) -> bytes:
    return b""


def sized(low: int, high: int) -> Callable[[random.Random], bytes]:
    return lambda dice: dice.randbytes(dice.randint(low, high))


def text(low: int, high: int) -> Callable[[random.Random], bytes]:
    return lambda dice: b"%0*x" % (dice.randint(low, high), dice.getrandbits(4 * low))


CASES = (
    Case("uniform 100 B, 1000 per entry", 400, 1000, nothing, sized(100, 100)),
    Case("uniform 1 KB, 1000 per entry", 64, 1000, nothing, sized(1024, 1024)),
    Case("keys of one size, 100 B", 400, 1000, text(8, 8), sized(100, 100)),
    Case("no keys, 80-120 B", 400, 1000, nothing, sized(80, 120)),
    Case("keyed 80-120 B, 1000 per entry", 400, 1000, text(4, 9), sized(80, 120)),
    Case("keyed 900-1100 B, 100 per entry", 400, 100, text(4, 9), sized(900, 1100)),
    Case("keyed 80-120 B, 10 per entry", 20_000, 10, text(4, 9), sized(80, 120)),
    Case("2 properties, 80-120 B, 500 per entry", 300, 500, text(4, 9), sized(80, 120), properties=2),
    Case("keyed 80-120 B, single", 50_000, 0, text(4, 9), sized(80, 120)),
)


def entries(case: Case, seed: int = 1) -> list[tuple[bytes, bytes]]:
    """Metadata and payload of each entry, as Pulsar's producers write them."""
    dice = random.Random(seed)
    made = []
    for number in range(case.entries):
        head = b"\x0a\x0cstandalone-7\x10" + write_varint(number) + b"\x18" + write_varint(1_763_700_000_000 + number)
        if case.messages:
            payload = b"".join(_message(case, dice, 1_000_000 + index) for index in range(case.messages))
            made.append((head + b"\x48" + write_varint(len(payload)) + b"\x58" + write_varint(case.messages), payload))
        else:
            key, value = case.key(dice), case.value(dice)
            made.append((head + b"\x32" + write_varint(len(key)) + key, value))
    return made


def measure(case: Case, *, rounds: int = 3, columns: list[str] | None = None) -> Speed:
    """Parse, add and flush all entries; flushes as a reader makes them."""
    made = entries(case)
    blocks = [(metadata, memoryview(payload)) for metadata, payload in made]
    best = min(_round(blocks, columns)[0] for _ in range(rounds))
    _, decoder = _round(blocks, columns)
    size = sum(len(payload) for _, payload in made)
    rows = decoder.totals.rows
    return Speed(case.name, rows / best, size / best, len(made) / best, dict(decoder.paths))


def _message(case: Case, dice: random.Random, sequence_id: int) -> bytes:
    key, value = case.key(dice), case.value(dice)
    header = b"".join(_property(name, text(4, 9)(dice)) for name in (b"region", b"source")[: case.properties])
    header += b"\x12" + write_varint(len(key)) + key if key else b""
    header += b"\x18" + write_varint(len(value)) + b"\x40" + write_varint(sequence_id)
    return struct.pack(">I", len(header)) + header + value


def _property(name: bytes, value: bytes) -> bytes:
    pair = b"\x0a" + write_varint(len(name)) + name + b"\x12" + write_varint(len(value)) + value
    return b"\x0a" + write_varint(len(pair)) + pair


def _round(blocks: list[tuple[bytes, memoryview]], columns: list[str] | None) -> tuple[float, Decoder]:
    decoder = Decoder(columns, "persistent://public/default/bench", 0)
    began = time.process_time()
    for number, (metadata, payload) in enumerate(blocks):
        decoder.add(7, number, None, parse_metadata(metadata), payload)
        if decoder.pending_bytes >= FLUSH_BYTES or not (number + 1) % FLUSH_ENTRIES:
            decoder.flush()
    decoder.flush()
    return time.process_time() - began, decoder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", nargs="*")
    asked = parser.parse_args().columns
    for each in CASES:
        print(measure(each, columns=asked), flush=True)
