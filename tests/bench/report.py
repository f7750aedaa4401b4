"""What a benchmark prints: medians of alternating rounds, and the ratio of each contender to the first."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

ROUNDS = 3

Contender = Callable[[], int]
"""Does the work once; returns how many events it saw."""


@dataclass(frozen=True)
class Figure:
    """Median wall time and processor time of one contender."""

    events: int
    seconds: float
    cpu_seconds: float


def race(contenders: Mapping[str, Contender], rounds: int = ROUNDS) -> dict[str, Figure]:
    """Run the contenders in turn, so that whatever else the machine does meets all of them."""
    walls: dict[str, list[float]] = {name: [] for name in contenders}
    cpus: dict[str, list[float]] = {name: [] for name in contenders}
    events: dict[str, int] = {}
    for _ in range(rounds):
        for name, contender in contenders.items():
            wall, cpu = time.perf_counter(), time.process_time()
            events[name] = contender()
            walls[name].append(time.perf_counter() - wall)
            cpus[name].append(time.process_time() - cpu)
    return {
        name: Figure(events[name], statistics.median(walls[name]), statistics.median(cpus[name])) for name in contenders
    }


def show(title: str, figures: Mapping[str, Figure], *, base: str, event_bytes: int) -> None:
    """A table; `base` is the contender whose speed is 1."""
    reference = figures[base].events / figures[base].seconds
    print(f"\n{title}")
    print(f"  {'':<34}{'events/s':>12}{'MB/s':>8}{'wall s':>8}{'cpu s':>8}{'ratio':>8}")
    for name, figure in figures.items():
        rate = figure.events / figure.seconds
        print(
            f"  {name:<34}{rate:>12,.0f}{rate * event_bytes / 1e6:>8.0f}{figure.seconds:>8.2f}"
            f"{figure.cpu_seconds:>8.2f}{rate / reference:>8.2f}",
            flush=True,
        )
