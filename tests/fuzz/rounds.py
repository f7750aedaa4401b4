"""One round of fuzzing, decided by its seed alone: entries of one style, read by both decoders."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field, replace

from airflow_provider_streams.systems.pulsar.reading.decode.decoder import Decoder
from tests.fuzz.compare import COMPARED, check_equal, check_refused, is_legal
from tests.fuzz.mutations import mutated
from tests.fuzz.plain import Stored
from tests.fuzz.shapes import random_source


@dataclass
class Done:
    """What rounds did."""

    rounds: int = 0
    entries: int = 0
    rows: int = 0
    """Equal in both decoders."""
    refused: int = 0
    """Entries that both refuse, ours by name."""
    paths: Counter[str] = field(default_factory=Counter)
    """Entries by the way they were decoded."""
    slowest: float = 0.0
    """CPU seconds of the slowest refusal."""


def legal(seed: int, done: Done, *, scale: int = 1) -> None:
    """Legal entries in every encoding: the rows of both decoders are equal.

    Raises:
        DifferentError, RefusedError, CorruptFrame: they are not.
    """
    dice = random.Random(seed)
    source = random_source(dice)
    count, most = dice.choice(((1, 600), (3, 300), (40, 20), (100, 1), (40, 100)))
    if scale > 1:
        count, most = dice.choice(((40 * scale, 1000), (400 * scale, 100), (40 * scale, 3)))
    entries = list(source.entries(count, most, 7))
    columns = dice.sample(COMPARED, dice.randint(1, len(COMPARED)))
    rows, decoder = check_equal(entries, columns, dice.choice((None, None, (3, 50))))
    done.rounds += 1
    done.entries += len(entries)
    done.rows += rows
    done.paths += decoder.paths


def damaged(seed: int, done: Done, *, count: int = 20, each: int = 4) -> None:
    """Damaged entries: what the plain decoder takes, ours takes too, row by row; the others it refuses by name.

    Raises:
        DifferentError, RefusedError, CorruptFrame: it does not.
    """
    dice = random.Random(seed)
    source = random_source(dice)
    good = list(source.entries(40, dice.choice((1, 5, 40, 90)), 7))
    whole = [one for one in source.entries(count, dice.choice((1, 3, 10, 70)), 8) for _ in range(each)]
    bad = [mutated(dice, replace(one, entry=number)) for number, one in enumerate(whole)]
    columns = dice.sample(COMPARED, dice.randint(1, len(COMPARED)))
    taken = [one for one in bad if is_legal(one, columns)]
    rows, decoder = check_equal([*good, *taken], columns)
    done.paths += decoder.paths
    places = {one.entry for one in taken}
    for one in bad:
        if one.entry not in places:
            _refuse(one, good if dice.random() < 0.02 else [], decoder, done)
    done.rounds += 1
    done.entries += len(bad)
    done.rows += rows


def _refuse(one: Stored, among: list[Stored], decoder: Decoder, done: Done) -> None:
    began = time.process_time()
    check_refused(one, among, decoder)
    done.slowest = max(done.slowest, time.process_time() - began)
    done.refused += 1
