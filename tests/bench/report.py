"""What a benchmark prints: medians of rounds in turn, and the speed of each contender against some of them.

Where others use the machine too, `nice` alone does not help: Linux weighs sessions first, and a server started here has
one of its own. Give each a weight in /proc/<pid>/autogroup, or believe the CPU seconds rather than the wall.
"""

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
    """Median wall time of one contender, and processor time meanwhile, as a rule of this process."""

    events: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Events in a second."""
        return self.events / self.seconds


def race(
    contenders: Mapping[str, Contender], rounds: int = ROUNDS, cpu_seconds: Callable[[], float] = time.process_time
) -> dict[str, Figure]:
    """Run the contenders in turn, so that whatever else the machine does meets all of them.

    One round before is not measured: it warms servers, caches and imports for all. In each round another contender
    begins, so that none always follows the same one.
    """
    walls: dict[str, list[float]] = {name: [] for name in contenders}
    cpus: dict[str, list[float]] = {name: [] for name in contenders}
    events = {name: contender() for name, contender in contenders.items()}
    names = list(contenders)
    for _ in range(rounds):
        for name in names:
            wall, cpu = time.perf_counter(), cpu_seconds()
            events[name] = contenders[name]()
            walls[name].append(time.perf_counter() - wall)
            cpus[name].append(cpu_seconds() - cpu)
        names = [*names[1:], names[0]]
    return {
        name: Figure(events[name], statistics.median(walls[name]), statistics.median(cpus[name])) for name in contenders
    }


def show(
    title: str, figures: Mapping[str, Figure], *, against: Mapping[str, str], event_bytes: int, cpu_of: str = "reader"
) -> None:
    """A table. `beside`: columns of ratios, and whose speed is 1 in each; `cpu_of`: what this process is."""
    print(f"\n{title}")
    columns = "".join(f"{column:>14}" for column in against)
    print(f"  {'':<34}{'events/s':>12}{'MB/s':>8}{'wall s':>8}{cpu_of + ' cpu s':>14}{columns}")
    for name, figure in figures.items():
        ratios = "".join(f"{figure.rate / figures[other].rate:>14.2f}" for other in against.values())
        print(
            f"  {name:<34}{figure.rate:>12,.0f}{figure.rate * event_bytes / 1e6:>8.0f}{figure.seconds:>8.2f}"
            f"{figure.cpu_seconds:>14.2f}{ratios}",
            flush=True,
        )
