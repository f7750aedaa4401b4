"""One round of fuzzing, decided by its seed alone: legal bytes are taken, damaged ones taken or refused by name."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.fuzz.pravega.decoders import Decoder, WrongError
from tests.fuzz.pravega.mutations import mutated

MOST_SECONDS = 2.0
"""CPU time of one input; the slowest takes some hundredths."""
MOST_WORDS = 2000
"""Characters of an error: no answer is quoted as a whole."""


@dataclass
class Done:
    """What rounds did, by decoder."""

    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")


def one(decoder: Decoder, data: bytes, dice: random.Random, done: Done) -> None:
    """Decode some bytes.

    Raises:
        WrongError: they are taken for something else, or refused in another way than by an error with a text.
    """
    began = time.process_time()
    try:
        decoder.decode(data, dice)
    except decoder.refusals as refusal:
        if not 10 < len(str(refusal)) < MOST_WORDS:
            raise WrongError(
                f"{decoder.name}: refused with {len(str(refusal))} characters: {refusal!s:.300}"
            ) from refusal
        done.refused[decoder.name] += 1
    else:
        done.taken[decoder.name] += 1
    took = time.process_time() - began
    if took > MOST_SECONDS:
        raise WrongError(f"{decoder.name}: {len(data)} bytes took {took:.1f} s")
    done.slowest = max(done.slowest, (took, decoder.name))


def legal(decoder: Decoder, seed: int, done: Done) -> None:
    """Bytes that are right.

    Raises:
        WrongError, StreamsError: they are refused.
    """
    dice = random.Random(f"{decoder.name} {seed}")
    data = decoder.legal(dice)
    if decoder.is_moody:
        one(decoder, data, dice, done)
    else:
        decoder.decode(data, dice)
        done.taken[decoder.name] += 1


def damaged(decoder: Decoder, seed: int, done: Done) -> bytes:
    """Bytes with faults; returns them.

    Raises:
        WrongError: see `one`.
        Exception: any other than the decoder's refusals.
    """
    dice = random.Random(f"{decoder.name} {seed}")
    data = mutated(dice, decoder.legal(dice))
    one(decoder, data, dice, done)
    return data
