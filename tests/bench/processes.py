"""Processor time of processes and of all that they started, as Linux tells it."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """Of this process and its descendants, those included that have ended and were waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        process = int(stat.parent.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))  # its own and its children's, in user and in system mode
    return sum(ticks[process] for process in ticks if _descends(process, root, parents)) / _TICKS


def _descends(process: int, root: int, parents: dict[int, int]) -> bool:
    while process != root and process in parents:
        process = parents[process]
    return process == root
