"""The main job from nothing: a real server, 200,000 events, adjacent windows through Airflow in a table, and the proof.

    python dags_examples/run_demo.py [pulsar] [pravega] [--events 200000]

Everything it starts listens on loopback, lives in a temporary folder and is gone at its end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

from demo.pravega import demo_pravega
from demo.pulsar import demo_pulsar
from demo.steps import quiet_stderr, say

DEMOS: dict[str, Callable[[Path, int], None]] = {"pulsar": demo_pulsar, "pravega": demo_pravega}


def main() -> None:
    """Run the demos that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", nargs="*", default=list(DEMOS), help=f"of {', '.join(DEMOS)}; default all")
    parser.add_argument("--events", type=int, default=200_000)
    arguments = parser.parse_args()
    if unknown := set(arguments.system) - set(DEMOS):
        parser.error(f"no demo of {', '.join(sorted(unknown))}")
    if len(arguments.system) == 1:
        with tempfile.TemporaryDirectory(prefix="streams-demo-") as folder, quiet_stderr(Path(folder) / "demo.log"):
            DEMOS[arguments.system[0]](Path(folder), arguments.events)
        return
    sys.exit(run_together(arguments.system, arguments.events))


def run_together(systems: Sequence[str], events: int) -> int:
    """All at the same time, each in a process, as Airflow's settings are made once in one; the worst exit code."""
    with ThreadPoolExecutor(len(systems)) as pool:
        return max(pool.map(run_one, systems, repeat(events)))


def run_one(system: str, events: int) -> int:
    """One in a process of its own; its lines begin with its name."""
    command = [sys.executable, __file__, system, "--events", str(events)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - this very script
        for line in process.stdout or ():
            say(f"{system:>7} | {line.rstrip()}")
    return abs(process.returncode)


if __name__ == "__main__":
    main()
