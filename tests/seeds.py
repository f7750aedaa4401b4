"""The seeds of tests. The suite draws the same each time: it is red for a change, and not for luck."""

from __future__ import annotations

import os
import random

DEFAULT_SEED = 20261127
SEED, EXAMPLES = "STREAMS_SEED", "STREAMS_EXAMPLES"
VARIABLES = (SEED, EXAMPLES)
"""The environment variables that make a run draw others, or more."""


def chosen_seed() -> int:
    """The seed in the environment variable STREAMS_SEED, or always the same one."""
    return int(os.environ.get(SEED) or DEFAULT_SEED)


def random_bytes(count: int) -> bytes:
    """So many random bytes, which no codec makes shorter."""
    return random.Random(chosen_seed()).randbytes(count)  # noqa: S311 - a test's


def examples(usual: int) -> int:
    """How many examples a test draws: as many as usual, or so many for each hundred as STREAMS_EXAMPLES says."""
    return max(1, usual * int(os.environ.get(EXAMPLES) or 100) // 100)
