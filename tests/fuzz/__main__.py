"""Fuzzing for as long as you like: `make fuzz MINUTES=60`, or `python -m tests.fuzz --help`."""

from __future__ import annotations

import argparse
import resource
import secrets
import sys
import time
from collections.abc import Iterator

from tests.fuzz import rounds
from tests.fuzz.rounds import Done


def main() -> int:
    """Rounds until the time is over or one fails; its seed repeats it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("legal", "damaged"))
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=secrets.randbits(40), help="of the first round")
    parser.add_argument(
        "--count", type=int, default=sys.maxsize, help="until so many rows are equal (damaged: entries)"
    )
    parser.add_argument("--rounds", type=int, default=sys.maxsize, help="so many at most")
    parser.add_argument("--scale", type=int, default=4, help="size of a round")
    asked = parser.parse_args()
    done = Done()
    for seed in _seeds(asked, done):
        try:
            if asked.what == "legal":
                rounds.legal(seed, done, scale=asked.scale)
            else:
                rounds.damaged(seed, done, count=10 * asked.scale, each=8)
        except BaseException:
            again = f"python -m tests.fuzz {asked.what} --rounds 1 --scale {asked.scale} --seed {seed}"
            print(f"round with seed {seed} failed; again: {again}", flush=True)
            raise
    _report(asked.seed, done)
    return 0


def _seeds(asked: argparse.Namespace, done: Done) -> Iterator[int]:
    end, told = time.monotonic() + 60 * asked.minutes, time.monotonic()
    for number in range(asked.rounds):
        if time.monotonic() > end or (done.rows if asked.what == "legal" else done.entries) >= asked.count:
            return
        if time.monotonic() - told > 60:
            told = time.monotonic()
            _report(asked.seed, done)
        yield asked.seed + number


def _report(seed: int, done: Done) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(
        f"seeds {seed} to {seed + done.rounds - 1}: {done.rows:,} equal rows, {done.entries:,} entries, "
        f"{done.refused:,} refused (slowest {done.slowest:.2f} s), peak {peak} MiB, {dict(done.paths)}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
