"""Fuzzing the decoders of payloads for as long as you like: `python -m tests.fuzz.formats --minutes 60`."""

from __future__ import annotations

import argparse
import itertools
import resource
import secrets
import sys
import time

from tests.fuzz.formats import resolution
from tests.fuzz.formats.rounds import ROUNDS, Done

_ALL = {**ROUNDS, "resolution": resolution.round_}
_MOST_BYTES = 3 << 30
"""Of memory, Arrow and all: a payload that wants more ends the run with a MemoryError."""


def main() -> int:
    """Rounds of every format in turn until the time is over or one fails; its seed repeats it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=secrets.randbits(40), help="of the first round")
    parser.add_argument("--only", choices=list(_ALL), help="this format, or the resolution of versions")
    parser.add_argument("--rounds", type=int, default=sys.maxsize, help="so many of each at most")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    chosen = {name: round_ for name, round_ in _ALL.items() if asked.only in (None, name)}
    done, began = Done(), time.monotonic()
    told = began
    for seed in itertools.islice(itertools.count(asked.seed), asked.rounds):
        for name, round_ in chosen.items():
            try:
                round_(seed, done)
            except BaseException:
                again = f"python -m tests.fuzz.formats --rounds 1 --only {name} --seed {seed}"
                print(f"failed; again: {again}", flush=True)
                raise
        if time.monotonic() - told > 60:
            told = time.monotonic()
            _report(asked.seed, done)
        if time.monotonic() - began > 60 * asked.minutes:
            break
    _report(asked.seed, done)
    return 0


def _report(first: int, done: Done) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    counts = ", ".join(f"{name} {done.taken[name]:,}/{done.refused[name]:,}" for name in done.taken)
    print(f"seeds from {first}: {done.payloads:,} payloads (taken/refused: {counts}), peak {peak} MiB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
