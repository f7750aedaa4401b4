"""Random adjacent windows of streams to which everything happens equal Java's batch client, event by event.

More of them: `PRAVEGA_WINDOWS=600 pytest tests/integration/pravega/test_random_windows.py`; `STREAMS_SEED` repeats one.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable
from contextlib import closing

import pytest

from airflow_provider_streams.errors import StartTrimmed
from airflow_provider_streams.systems.pravega.client.controller import segment_calls, stream_calls
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from tests.seeds import chosen_seed

pytestmark = [pytest.mark.pravega, pytest.mark.timeout(7200)]

WINDOWS = int(os.environ.get("PRAVEGA_WINDOWS", "20"))
STEPS = 16
"""Of the incarnation of one stream."""


class Life:
    """A stream to which random things happen; after each of them its tail is a cut."""

    def __init__(self, lab, peer, stream: str, chance: random.Random) -> None:
        self.lab, self.peer, self.stream, self.chance = lab, peer, stream, chance
        self.cuts: list[StreamCut] = [lab.tail(stream)]
        self.held = 0
        """The first cut at or after the head."""
        self.windows = 0
        self.writer = PravegaWriter(lab.system.endpoint, stream)

    def step(self) -> None:
        acts: list[Callable[[], object]] = [
            self.java,
            self.java,
            self.ours,
            self.ours,
            self.transaction,
            self.rolled_transaction,
            self.nothing,
            self.split,
            self.merge,
            self.roll,
        ]
        for act in self.chance.choices(acts, k=self.chance.randint(1, 3)):
            act()
        self.cuts.append(self.lab.tail(self.stream))

    def java(self) -> None:
        size = self.chance.choice([0, 1, 10, 100, 1000])
        self.peer.write(self.stream, self.chance.randint(1, 60), size, self.chance.choice([1, 3, 50]))

    def ours(self) -> None:
        self.writer.write(self._events(self.chance.choice([[0], [0, 1, 7], [100], [5, 3000], [1 << 20]])))

    def transaction(self) -> None:
        self.writer.transaction(self._events([0, 10, 200]))

    def rolled_transaction(self) -> None:
        """One that a scaling overtakes: two epochs more."""
        self.writer.transaction(self._events([30]), before_commit=self.roll)

    def _events(self, sizes: list[int]) -> list[tuple[str, bytes]]:
        count = self.chance.randint(1, 3 if max(sizes) > 1 << 16 else 40)
        return [
            (f"k{self.chance.randrange(20)}", self.chance.randbytes(self.chance.choice(sizes))) for _ in range(count)
        ]

    def nothing(self) -> None:
        """Two cuts at one place."""

    def split(self) -> None:
        if len(self.lab.call(segment_calls.current_segments(self.stream))) < 5:
            self.lab.split(self.stream)

    def merge(self) -> None:
        if len(self.lab.call(segment_calls.current_segments(self.stream))) > 1:
            self.lab.merge(self.stream)

    def roll(self) -> None:
        self.lab.roll(self.stream)

    def truncate(self) -> None:
        """Windows before it are reported as lost; those after it are as they were."""
        self.held = self.chance.randint(self.held, len(self.cuts) - 1)
        self.lab.call(stream_calls.truncate_stream(self.stream, self.cuts[self.held].offsets))

    def compare(self) -> None:
        """Each window equals Java's; a window before the head is refused or reported."""
        places = range(self.held, len(self.cuts))
        adjacent = sum(self._equal(*pair) for pair in itertools.pairwise(places))
        assert adjacent == self._equal(places[0], places[-1]), "adjacent windows tile"
        for _ in range(3):
            self._equal(*sorted(self.chance.choices(places, k=2)))
        for number in range(self.held):
            self._lost(self.cuts[number], self.cuts[number + 1])

    def _equal(self, first: int, last: int) -> int:
        """Whether both clients read the same between two cuts; how many events these are."""
        start, end = self.cuts[first], self.cuts[last]
        ours = self.lab.digests(self.lab.plan(self.stream, start, end, on_unproven="fail"))
        assert ours == self.peer.digests(self.stream, start, end), (first, last)
        self.windows += 1
        return sum(one[2] for one in ours.values())

    def _lost(self, start: StreamCut, end: StreamCut) -> None:
        """A window before the head is lost as a whole, unless nothing was in it."""
        try:
            assert self.lab.plan(self.stream, start, end).is_empty
        except StartTrimmed:
            plan = self.lab.plan(self.stream, start, end, on_loss="record")
            events, receipt = self.lab.read(plan, on_loss="record")
            assert (events, receipt.verdict) == ([], "loss recorded")


def test_random_adjacent_windows_equal_the_java_batch_client(lab, peer):
    seed = chosen_seed()
    chance = random.Random(seed)  # noqa: S311 - repeatable by its seed
    compared = 0
    for number in itertools.count():
        life = Life(lab, peer, lab.create(f"life{number}"), chance)
        with closing(life.writer):
            for step in range(1, STEPS + 1):
                life.step()
                if step % 8 == 0:
                    try:
                        life.compare()
                    except AssertionError as error:
                        raise AssertionError(f"STREAMS_SEED={seed}, stream {number}, step {step}: {error}") from error
                    life.truncate()
        compared += life.windows
        print(f"STREAMS_SEED={seed}: {compared} windows of {number + 1} streams equal Java's")
        if compared >= WINDOWS:
            return
