"""What a run of pytest recorded, and what follows from it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MOST_FAILURES = 10
"""With more of them, their cause is one, and to repeat them tells nothing new."""

BROKEN = 70
"""The exit code where an exception left pytest: what it does at its end failed."""

_FINISHED = {0, 1}
"""Exit codes of pytest: all passed, some failed."""

_OTHERS = {
    2: "pytest was interrupted",
    3: "pytest failed in itself",
    4: "pytest was called in a wrong way, or a conftest.py cannot be imported",
    5: "no test was chosen",
    BROKEN: "what pytest does at its end failed",
}
"""Other exit codes: what says more is in the output above."""


@dataclass(frozen=True, slots=True)
class Record:
    """One run of pytest."""

    lane: str
    exit_code: int
    finished: int | None = None
    """The exit code that was written down; None: the process ended before."""
    collected: tuple[str, ...] = ()
    ended: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Test to the first line of its first error."""
    final: frozenset[str] = frozenset()
    """Those of them that another run cannot excuse."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """What could not be collected."""
    unseen_failures: int = 0
    """So many more than were written down."""

    @property
    def cut_short(self) -> str:
        """Why this run says nothing about some of its tests; empty: it ran to its end."""
        if self.finished is None or self.finished != self.exit_code:
            return f"pytest's process ended with {self.exit_code}{self._last_test}"
        if self.exit_code not in _FINISHED:
            reason = _OTHERS.get(self.exit_code, f"pytest ended with {self.exit_code}")
            return f"{reason}: see its output above"
        if self.unseen_failures or (self.exit_code == 1 and not self.failed):
            return "pytest failed, and recorded no failure"
        if missing := len(set(self.collected) - self.ended):
            return f"{missing:,} of {len(self.collected):,} tests did not run"
        return ""

    @property
    def _last_test(self) -> str:
        left = [test for test in self.collected if test not in self.ended]
        return f" before the end of {left[0]}" if left else ""


def record_of(lane: str, exit_code: int, lines: Iterable[str]) -> Record:
    """What was written; a last line that was cut off counts as none."""
    tests: dict[str, list[str]] = {name: [] for name in ("collected", "ended", "passed", "skipped")}
    failed: dict[str, str] = {}
    final: set[str] = set()
    broken: dict[str, str] = {}
    finished, unseen = None, 0
    for line in filter(lambda line: line.endswith("}\n"), lines):
        match json.loads(line):
            case {"failed": str(test), "error": str(error), "final": bool(is_final)}:
                failed.setdefault(test, error)
                final |= {test} if is_final else set()
            case {"broken": str(test), "error": str(error)}:
                broken[test] = error
            case {"failures_of_pytest": int(counted), "failures_seen": int(seen)}:
                unseen = counted - seen
            case {"finished": int(code)}:
                finished = code
            case dict(told):
                ((name, test),) = told.items()
                tests[name].append(test)
    return Record(
        lane,
        exit_code,
        finished,
        tuple(tests["collected"]),
        frozenset(tests["ended"]),
        frozenset(tests["passed"]),
        frozenset(tests["skipped"]),
        failed,
        frozenset(final),
        broken,
        unseen,
    )


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
    final = frozenset[str]().union(*(one.final for one in records))
    if len(failed) > MOST_FAILURES:
        return Verdict({**broken, **cut, **failed}, note=f"{len(failed)} tests failed: none was repeated.")
    if cut or broken:
        return Verdict({**broken, **cut, **failed}, note="The run is not complete: no test was repeated.")
    return Verdict(
        {test: error for test, error in failed.items() if test in final},
        {test: error for test, error in failed.items() if test not in final},
    )


def second_verdict(first: Verdict, repeated: Mapping[str, Record]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Red and flaky tests: those that failed twice, and those that passed alone; each with its first error."""
    passed = {test for test, one in repeated.items() if not one.cut_short and not one.failed and test in one.passed}
    flaky = {test: error for test, error in first.repeat.items() if test in passed}
    red = {test: error for test, error in first.repeat.items() if test not in passed}
    return {**first.red, **red}, flaky
