"""`python -m tests.gate quick|all|fast`: run a tier of the suite; exit 1 if a test failed twice.

A test that fails runs once more after all others, alone, in a new process. One that passes then is flaky: it is listed,
and does not make the run red.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.gate.lanes import TIERS, Lane, Tier
from tests.gate.record import MOST_FAILURES, Record, first_verdict, record_of, second_verdict
from tests.gate.recorder import RECORD
from tests.seeds import VARIABLES

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a new folder in it
_ROOM_BYTES = 6 << 30
"""So much must be free."""


@dataclass
class Runner:
    """Starts pytest, and keeps what it says and records in a folder."""

    folder: Path
    marks: str
    temporary: Mapping[str, str] = field(default_factory=dict)
    """Variables that say where tests and servers keep their files."""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    is_ended: bool = False

    def run(self, lane: Lane, *, shown: bool = False) -> Record:
        """One process of pytest to its end; its output goes to a file unless it is shown."""
        if self.is_ended:
            raise InterruptedError(lane.name)
        record, log = self.folder / f"{lane.name}.jsonl", self.log(lane.name)
        record.touch()
        with log.open("wb") as output:
            process = subprocess.Popen(
                self.command(lane),
                env={**_without_options_of_pytest(os.environ), RECORD: str(record), **self.temporary},
                stdout=None if shown else output,
                stderr=None if shown else subprocess.STDOUT,
            )
            self.processes.append(process)
            exit_code = process.wait()
        with record.open() as lines:
            return record_of(lane.name, exit_code, lines)

    def command(self, lane: Lane) -> list[str]:
        """How to run a lane."""
        marks = ["-m", self.marks] if self.marks else []
        return [sys.executable, "-m", "tests.gate.recorder", f"--maxfail={MOST_FAILURES + 1}", *marks, *lane.arguments]

    def log(self, name: str) -> Path:
        """Where a lane's output goes."""
        return self.folder / f"{name}.log"

    def end(self) -> None:
        """End what still runs, and start no other lane: pytest ends its servers when it is interrupted."""
        self.is_ended = True
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in self.processes:
            process.wait()


def _without_options_of_pytest(environment: Mapping[str, str]) -> dict[str, str]:
    """A tier is the same whatever a shell adds to other runs of pytest."""
    return {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}


def _memory() -> str | None:
    """The folder of a file system in memory; None: there is none, or it has too little room, as in most containers."""
    try:
        return _SHARED_MEMORY if shutil.disk_usage(_SHARED_MEMORY).free > _ROOM_BYTES else None
    except OSError:
        return None


@contextmanager
def _temporary() -> Iterator[dict[str, str]]:
    """Files of tests and servers in memory, where there is room: else they mostly wait for the machine's disk."""
    memory = _memory()
    if memory is None:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="streams-gate-", dir=memory) as folder:
        Path(folder).chmod(0o1777)  # as of any folder for temporary files: some servers and tests run as other users
        yield {"TMPDIR": folder}


@contextmanager
def _runner(marks: str) -> Iterator[Runner]:
    with tempfile.TemporaryDirectory(prefix="streams-gate-") as folder, _temporary() as temporary:
        runner = Runner(Path(folder), marks, temporary)
        # A script's shell lets what it runs in the background ignore interrupts, and lanes inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield runner
        finally:
            runner.end()


def run_lanes(runner: Runner, tier: Tier) -> list[Record]:
    """All lanes; the output of the first is shown as it comes, the output of the others when all have ended."""
    first, *others = tier.lanes
    with ThreadPoolExecutor(tier.at_once) as pool:
        records = [pool.submit(runner.run, lane, shown=lane is first) for lane in tier.lanes]
        try:
            return [record.result() for record in records]
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            runner.end()  # the pool would wait for all its lanes first
            raise
        finally:
            for lane in (lane for lane in others if runner.log(lane.name).exists()):
                print(f"\n{lane.name}:\n{runner.log(lane.name).read_text(errors='replace')}", flush=True)


def repeat(runner: Runner, tests: Mapping[str, str], options: Sequence[str]) -> dict[str, Record]:
    """Each test alone, in a process of its own, with the options of its first run."""
    records = {}
    for number, test in enumerate(tests):
        print(f"\nAgain, alone: {test}", flush=True)
        records[test] = runner.run(Lane(f"again {number}", [*options, test]), shown=True)
    return records


def command_of(test: str, make: str) -> str:
    """What repeats a test alone, for a shell: make and its shell each take one layer of the quotes away."""
    told = [f"{name}={shlex.quote(os.environ[name])} " for name in VARIABLES if os.environ.get(name)]
    return f"{''.join(told)}{make} ARGS={shlex.quote(shlex.quote(test).replace('$', '$$'))}"


def report(red: Mapping[str, str], flaky: Mapping[str, str], note: str, make: str) -> None:
    """The last lines of the run."""
    for test, error in flaky.items():
        print(f"flaky: {test}\n    {error}")
    for test, error in red.items():
        print(f"RED: {test}\n    {error}")
        if "::" in test or Path(test).is_file():
            print(f"    {command_of(test, make)}")
    if note:
        print(note)


def run_tier(tier: Tier, options: Sequence[str] = ()) -> int:
    """Run a tier; the exit code.

    Args:
        tier: what to run.
        options: those among its arguments that also hold for the second run of a test.
    """
    began = time.monotonic()
    with _runner(tier.marks) as runner:
        records = run_lanes(runner, tier)
        first = first_verdict(records)
        red, flaky = second_verdict(first, repeat(runner, first.repeat, options))
    skipped = sum(len(one.skipped) for one in records)
    ran = sum(len(one.ended) for one in records)
    minutes = (time.monotonic() - began) / 60
    print(f"\n{ran:,} tests in {minutes:.1f} min: {len(red)} red, {len(flaky)} flaky, {skipped} skipped")
    report(red, flaky, first.note, tier.make)
    return int(bool(red))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.gate", description=__doc__)
    parser.add_argument("tier", choices=TIERS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for pytest: run only these tests of the tier")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tier = TIERS[args.tier]
    if not args.arguments:
        return run_tier(tier)
    options = [one for one in args.arguments if not Path(one.partition("::")[0]).exists()]
    return run_tier(replace(tier, lanes=[Lane("chosen", args.arguments)]), options)


if __name__ == "__main__":
    sys.exit(main())
