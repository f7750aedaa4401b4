"""Fuzzing Pravega's decoders for as long as you like: `python -m tests.fuzz.pravega --minutes 60`."""

from __future__ import annotations

import argparse
import itertools
import resource
import secrets
import sys
import time

from tests.fuzz.pravega import rounds
from tests.fuzz.pravega.decoders import DECODERS
from tests.fuzz.pravega.rounds import Done

_MOST_BYTES = 2 << 30
"""Of memory, Arrow and all: an input that wants more ends the run with a MemoryError."""
_MOODY = 50
"""One of so many rounds waits for whom it cannot hurry."""


def main() -> int:
    """Rounds of every decoder in turn until the time is over or one fails; its seed repeats it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=secrets.randbits(40), help="of the first round")
    parser.add_argument("--only", choices=[one.name for one in DECODERS], help="this decoder")
    parser.add_argument("--rounds", type=int, default=sys.maxsize, help="so many at most")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    chosen = [one for one in DECODERS if asked.only in (None, one.name)]
    done, began = Done(), time.monotonic()
    told = began
    for seed in itertools.islice(itertools.count(asked.seed), asked.rounds):
        for decoder in chosen:
            if decoder.is_moody and seed % _MOODY and asked.only is None:
                continue
            try:
                rounds.legal(decoder, seed, done)
                rounds.damaged(decoder, seed, done)
            except BaseException:
                again = f'python -m tests.fuzz.pravega --rounds 1 --only "{decoder.name}" --seed {seed}'
                print(f"failed; again: {again}", flush=True)
                raise
        now = time.monotonic()
        if now - told > 60 or now - began > 60 * asked.minutes:
            told = now
            _report(asked.seed, seed, done)
        if now - began > 60 * asked.minutes:
            return 0
    _report(asked.seed, asked.seed + asked.rounds - 1, done)
    return 0


def _report(first: int, last: int, done: Done) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    counts = ", ".join(f"{name} {done.taken[name]:,}/{done.refused[name]:,}" for name in done.taken)
    print(
        f"seeds {first} to {last}: taken/refused {counts}; slowest {done.slowest[0]:.2f} s ({done.slowest[1]}), "
        f"peak {peak} MiB",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
