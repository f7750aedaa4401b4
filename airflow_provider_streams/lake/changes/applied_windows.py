"""The windows whose changes a table reflects, as its list of markers names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_provider_streams.model.window.window import Window, moment_of_us

Run = Sequence[int]
"""Where a run of equal, adjacent windows begins, and their length, both in microseconds; and how many they are."""


def windows_to_json(windows: Iterable[Window]) -> list[Run]:
    """Windows as runs: those of a schedule are few runs, however many they are."""
    runs: list[list[int]] = []
    for window in sorted(windows):
        length = window.end_us - window.start_us
        if runs and runs[-1][1] == length and runs[-1][0] + length * runs[-1][2] == window.start_us:
            runs[-1][2] += 1
        else:
            runs.append([window.start_us, length, 1])
    return list(runs)


def windows_from_json(runs: Iterable[Run]) -> frozenset[Window]:
    """The reverse of `windows_to_json`."""
    return frozenset(
        Window(moment_of_us(start + at * length), moment_of_us(start + (at + 1) * length))
        for start, length, count in runs
        for at in range(count)
    )
