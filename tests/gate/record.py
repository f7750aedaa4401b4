"""What a run of pytest recorded, and what follows from it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MOST_FAILURES = 10
"""With more of them, their cause is one, and to repeat them tells nothing new."""

_FINISHED = {0, 1}
"""Exit codes of pytest: all passed, some failed. Any other: interrupted, broken, or killed."""
_NOTHING_CHOSEN = 5


@dataclass(frozen=True, slots=True)
class Record:
    """One run of pytest."""

    lane: str
    exit_code: int
    collected: tuple[str, ...] = ()
    ended: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Test to the first line of its first error."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """What could not be collected."""

    @property
    def cut_short(self) -> str:
        """Why this run says nothing about some of its tests; empty: it ran to its end."""
        if self.exit_code == _NOTHING_CHOSEN and not self.broken:
            return ""
        if self.exit_code not in _FINISHED:
            return f"pytest ended with {self.exit_code}{self._last_test}"
        if self.exit_code == 1 and not self.failed:
            return "pytest failed, and recorded no failure"
        if missing := len(set(self.collected) - self.ended):
            return f"{missing:,} of {len(self.collected):,} tests did not run"
        return ""

    @property
    def _last_test(self) -> str:
        left = [test for test in self.collected if test not in self.ended]
        return f" before the end of {left[0]}" if left else ""


def record_of(lane: str, exit_code: int, lines: Iterable[str]) -> Record:
    """What the plugin wrote; a last line that was cut off counts as none."""
    collected: list[str] = []
    ended: set[str] = set()
    failed: dict[str, str] = {}
    broken: dict[str, str] = {}
    for line in filter(lambda line: line.endswith("}\n"), lines):
        match json.loads(line):
            case {"collected": str(test)}:
                collected.append(test)
            case {"ended": str(test)}:
                ended.add(test)
            case {"failed": str(test), "error": str(error)}:
                failed.setdefault(test, error)
            case {"broken": str(test), "error": str(error)}:
                broken[test] = error
    return Record(lane, exit_code, tuple(collected), frozenset(ended), failed, broken)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What all lanes say together."""

    red: Mapping[str, str]
    """Tests, or lanes that were cut short, each with its first error."""
    repeat: Mapping[str, str] = field(default_factory=dict)
    """Tests that decide by a second run, alone."""
    note: str = ""


def first_verdict(records: Iterable[Record]) -> Verdict:
    """After the lanes: what is red at once, and which tests run once more."""
    records = list(records)
    cut = {f"the lane {one.lane}": one.cut_short for one in records if one.cut_short}
    broken = {test: error for one in records for test, error in one.broken.items()}
    failed = {test: error for one in records for test, error in one.failed.items()}
    if not any(one.collected for one in records):
        return Verdict({**broken, **cut, "the whole run": "no test was chosen"})
    if len(failed) > MOST_FAILURES:
        return Verdict({**broken, **cut, **failed}, note=f"{len(failed)} tests failed: none was repeated.")
    if cut or broken:
        return Verdict({**broken, **cut, **failed}, note="The run is not complete: no test was repeated.")
    return Verdict({}, failed)


def second_verdict(first: Verdict, repeated: Mapping[str, Record]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Red and flaky tests: those that failed twice, and those that passed alone; each with its first error."""
    passed = {test for test, one in repeated.items() if one.exit_code == 0 and test in one.ended}
    flaky = {test: error for test, error in first.repeat.items() if test in passed}
    red = {test: error for test, error in first.repeat.items() if test not in passed}
    return {**first.red, **red}, flaky
