"""Random entries as producers may write them: batches of every shape and codec, single messages, compacted batches."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.fuzz.plain import LATEST_MS, Stored
from tests.fuzz.writer import METADATA, SINGLE, Writer

PUBLISHED = 1_763_700_000_000
TEXTS = (b"", b"k", b"name", "ключ".encode(), b"\xff\xfe", b"x" * 200, b"y" * 300, b"\xed\xa0\x80")
NUMBERS = (0, 1, 127, 128, 1 << 31, 1 << 48, 1 << 49, 1 << 56, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
TIMES = (0, 1, PUBLISHED, -1, -PUBLISHED, LATEST_MS, -LATEST_MS, 1 << 49)

Dice = random.Random
Fields = list[tuple[int, Any]]
"""Of a SingleMessageMetadata, but for its size."""


@dataclass(frozen=True)
class Message:
    """What a producer sends; its fields in the order in which clients write them."""

    fields: Fields
    value: bytes


def plain(dice: Dice, size: int | None = None) -> Message:
    """Without a key."""
    return Message(
        [(8, dice.randrange(1 << 20, 1 << 21))], dice.randbytes(dice.randint(0, 120) if size is None else size)
    )


def alike(dice: Dice) -> Message:
    """All of one size."""
    return plain(dice, 40)


def alike_keyed(dice: Dice) -> Message:
    """All of one size, with keys of one size."""
    return Message([(2, b"%08d" % dice.randrange(10**8)), (8, dice.randrange(1 << 20, 1 << 21))], dice.randbytes(60))


def keyed(dice: Dice) -> Message:
    """With keys of any size."""
    return Message([(2, b"k%d" % dice.getrandbits(dice.randint(1, 60))), (8, dice.getrandbits(40))], plain(dice).value)


def rich(dice: Dice) -> Message:
    """With anything that a message may have."""
    pairs = [(1, _pair(dice)) for _ in range(dice.choice((0, 0, 1, 2, 3, 70 if dice.random() < 0.05 else 0)))]
    more = [
        (2, dice.choice(TEXTS)),
        (4, int(dice.random() < 0.1)),
        (5, dice.choice(TIMES)),
        (6, dice.randint(0, 1)),
        (7, dice.choice(TEXTS)),
        (8, dice.choice(NUMBERS)),
        (9, int(dice.random() < 0.3)),
        (10, int(dice.random() < 0.3)),
    ]
    value = b"" if dice.random() < 0.2 else dice.randbytes(dice.choice((0, 1, 30, 127, 128, 300)))
    return Message(pairs + [each for each in more if dice.random() < 0.5], value)


def nested(dice: Dice) -> Message:
    """Whose value looks like messages."""
    inner = b"".join(written(keyed(dice), Writer(dice, 0)) for _ in range(dice.randint(1, 3)))
    return Message(plain(dice).fields, inner)


def _pair(dice: Dice) -> Fields:
    pair = [(1, dice.choice(TEXTS)), (2, dice.choice(TEXTS))]
    return pair if dice.random() < 0.95 else dice.sample(pair, dice.randint(0, 1))


SHAPES: Sequence[Callable[[Dice], Message]] = (plain, alike, alike_keyed, keyed, rich, nested)


def written(message: Message, writer: Writer) -> bytes:
    """A message as it stands in a batch."""
    small = [each for each in message.fields if each[0] < 3]
    large = [each for each in message.fields if each[0] > 3]
    header = writer.write([*small, (3, len(message.value)), *large], SINGLE)
    return struct.pack(">I", len(header)) + header + message.value


# Entries


@dataclass
class Source:
    """Entries of one style: each batch takes messages from a pool that was written once.

    Args:
        dice: they decide.
        shape: of the messages.
        wildness: how often the writer takes liberties; with the probability `spread`, else it writes as clients do.
        widest: see `Writer`.
        pool: so many messages are written.
    """

    dice: Dice
    shape: Callable[[Dice], Message]
    wildness: float
    spread: float = 1.0
    widest: int = 10
    pool: int = 60

    def __post_init__(self) -> None:
        self._wild, self._tame = Writer(self.dice, self.wildness, self.widest), Writer(self.dice, 0)
        self._pool = [written(self.shape(self.dice), self._writer()) for _ in range(self.pool)]

    def entries(self, count: int, most: int, ledger: int) -> Iterator[Stored]:
        """So many entries of at most so many messages."""
        for number in range(count):
            single = self.dice.random() < 0.2
            yield self.single(ledger, number) if single else self.batch(ledger, number, self.dice.randint(0, most))

    def batch(self, ledger: int, entry: int, count: int) -> Stored:
        """A batch, perhaps compacted."""
        payload = b"".join(self.dice.choices(self._pool, k=count))
        more: Fields = []
        total = count
        if count and self.dice.random() < 0.1:
            total = count + self.dice.randint(0, 500)
            more = [(31, index) for index in sorted(self.dice.sample(range(total), count))]
        return self._stored(ledger, entry, [(11, total)], more, payload)

    def single(self, ledger: int, entry: int) -> Stored:
        """A message that is not in a batch."""
        message = self.shape(self.dice)
        names = {1: 4, 2: 6, 5: 12, 6: 17, 7: 18, 8: 2, 9: 25, 10: 30}
        return self._stored(ledger, entry, [], [(names[n], v) for n, v in message.fields if n in names], message.value)

    def _stored(self, ledger: int, entry: int, fields: Fields, more: Fields, payload: bytes) -> Stored:
        dice = self.dice
        codec = dice.choice((0, 0, 0, 1, 2, 3, 4))
        fields = [
            *fields,
            (1, dice.choice((b"standalone-1", b"p\xff", b""))),
            (3, PUBLISHED + dice.choice((entry, *TIMES[:4]))),
        ]
        if codec:
            fields += [(8, codec), (9, len(payload))]
        elif dice.random() < 0.5:
            fields += [(9, dice.choice((len(payload), 0, 7)))]
        fields += [each for each in ((5, b"eu"), (16, b"\0\0\0\1")) if dice.random() < 0.3]
        head = self._writer().write(sorted(fields + more, key=lambda each: each[0]), METADATA)
        broker = dice.choice((None, (PUBLISHED, entry), (None, entry), (-1, -1)))
        return Stored(ledger, entry, broker, head, compressed(dice, payload, codec))

    def _writer(self) -> Writer:
        return self._wild if self.dice.random() < self.spread else self._tame


def compressed(dice: Dice, payload: bytes, codec: int) -> bytes:
    """As clients compress it: Java's ZLIB ends with a SYNC_FLUSH, and nothing may stay nothing."""
    if codec == 0 or (not payload and dice.random() < 0.5):
        return payload
    if codec == 2:
        stream = zlib.compressobj()
        return stream.compress(payload) + stream.flush(dice.choice((zlib.Z_FINISH, zlib.Z_SYNC_FLUSH)))
    return pa.Codec({1: "lz4_raw", 3: "zstd", 4: "snappy"}[codec]).compress(payload, asbytes=True)


def random_source(dice: Dice, widest: int = 10) -> Source:
    """Any style; the more messages are unusual, the rarer, as these take the slow ways."""
    wildness = dice.choice((0, 0.02, 0.1, 0.1, 0.5, 0.9))
    return Source(
        dice, dice.choice(SHAPES), wildness, dice.choice((0.003, 0.003, 0.02, 0.02, 0.3, 1)), widest, pool=100
    )
