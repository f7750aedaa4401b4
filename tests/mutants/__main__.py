"""`python -m tests.mutants [names]`: break one rule of the package after the other, and see that tests notice.

Each patch of this folder is applied to a copy of the tracked files, and the tests that it names run there. A test that
is also red without the patch does not count. Exit 1 if a mutant survives, or cannot be tried.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.gate.record import Record, record_of
from tests.gate.recorder import RECORD
from tests.mutants.clean_copy import apply, check_import, clean_copy, environment_of
from tests.mutants.mutant import Mutant, mutants

CAUGHT, SURVIVED, STALE, BROKEN = "caught", "SURVIVED", "does not apply", "CANNOT BE TRIED"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant."""

    mutant: Mutant
    verdict: str
    seconds: float = 0.0
    by: str = ""
    """The first test that noticed; or why there is no verdict."""

    def __str__(self) -> str:
        return f"{self.mutant.name:<44} {self.verdict:<15} {self.seconds:6.1f} s  {self.by}"


@dataclass(frozen=True, slots=True)
class Trial:
    """Tries mutants, and remembers which of their tests are red without them."""

    clean: Path
    """A tree without any mutant."""
    marks: Sequence[str]
    known: dict[tuple[str, ...], Record] = field(default_factory=dict)

    def of(self, mutant: Mutant) -> Result:
        """Whether a mutant's tests notice it."""
        with clean_copy() as tree:
            if why := apply(mutant.path, tree):
                return Result(mutant, STALE, by=why.splitlines()[0])
            before = self._without(mutant.tests)
            if not set(before.collected) - before.failed.keys():
                return Result(mutant, BROKEN, by=f"no green test without it: {before.cut_short or mutant.tests}")
            began = time.monotonic()
            found = self._run(tree, mutant.tests, red=before.failed, first_only=True)
            again = self._run(tree, [next(iter(found.failed))]) if found.failed else found
        return _result(mutant, found, again, time.monotonic() - began)

    def _without(self, tests: tuple[str, ...]) -> Record:
        if tests not in self.known:
            self.known[tests] = self._run(self.clean, tests)
        return self.known[tests]

    def _run(self, tree: Path, tests: Sequence[str], red: Collection[str] = (), *, first_only: bool = False) -> Record:
        record = tree.parent / "record.jsonl"
        record.write_text("")
        command = [sys.executable, "-m", "tests.gate.recorder", "-q", "-p", "no:cacheprovider"]
        command += [*self.marks, *(["-x"] if first_only else []), *(f"--deselect={test}" for test in red), *tests]
        environment = {**environment_of(tree), RECORD: str(record)}
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False)
        with record.open() as lines:
            return record_of(tree.name, done.returncode, lines)


def _result(mutant: Mutant, found: Record, again: Record, seconds: float) -> Result:
    if found.failed and not again.failed:
        return Result(mutant, SURVIVED, seconds, f"{next(iter(found.failed))} fails now and then")
    if found.failed:
        return Result(mutant, CAUGHT, seconds, next(iter(found.failed)))
    if found.exit_code == 0:
        return Result(mutant, SURVIVED, seconds)
    # it breaks more than a rule: any test at all would notice
    return Result(mutant, BROKEN, seconds, next(iter(found.broken.values()), found.cut_short))


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """A request to end is an exception, so that copies are removed."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def try_all(chosen: Sequence[Mutant], marks: Sequence[str]) -> list[Result]:
    """One mutant after the other; each result is shown when it is known."""
    results = []
    with _ended_in_order(), clean_copy() as clean:
        check_import(clean)
        trial = Trial(clean, marks)
        for mutant in chosen:
            results.append(trial.of(mutant))
            print(results[-1], flush=True)
    return results


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="which mutants; default: all")
    parser.add_argument("--all", action="store_true", help="also tests marked slow")
    args = parser.parse_args()
    try:
        chosen = mutants(args.names)
    except ValueError as error:
        parser.error(str(error))
    try:
        results = try_all(chosen, [] if args.all else ["-m", "not slow"])
    except KeyboardInterrupt:
        return 130
    caught = sum(one.verdict == CAUGHT for one in results)
    print(f"\n{caught} of {len(results)} mutants were caught")
    return int(caught < len(results))


if __name__ == "__main__":
    sys.exit(main())
