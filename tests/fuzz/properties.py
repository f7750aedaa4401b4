"""New examples for the property tests without servers: `python -m tests.fuzz.properties --minutes 60`."""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import time
from itertools import count

from tests.seeds import EXAMPLES, SEED

PROPERTIES = ("-m", "hypothesis and not slow", "tests/unit", "tests/fuzz")
ROUND = "100"
"""Examples of each round for each hundred that a test usually draws: a round takes about 80 s of one core."""


def main() -> int:
    """Rounds of these tests until the time is over, one at least; the first that fails ends them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, help="of the first round")
    asked = parser.parse_args()
    first = secrets.randbits(24) if asked.seed is None else asked.seed
    end = time.monotonic() + 60 * asked.minutes
    for seed in count(first):
        print(f"seed {seed}; again: python -m tests.fuzz.properties --minutes 0 --seed {seed}", flush=True)
        if code := round_of(seed):
            return code
        if time.monotonic() > end:
            print(f"seeds {first} to {seed}: nothing found")
            return 0
    raise AssertionError


def round_of(seed: int) -> int:
    """The exit code of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "0", *PROPERTIES]
    environment = {**os.environ, SEED: str(seed), EXAMPLES: ROUND}
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
