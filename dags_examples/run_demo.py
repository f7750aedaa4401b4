"""The main job from nothing: a real server, 200,000 events, adjacent windows through Airflow in a table, and the proof.

    python dags_examples/run_demo.py [pulsar] [pravega] [--events 200000]

Everything it starts listens on loopback, lives in a temporary folder and is gone at its end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
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
    for system in arguments.system:  # a process for each: Airflow's settings are made once in a process
        say(f"\n##### {system.title()}")
        command = [sys.executable, __file__, system, "--events", str(arguments.events)]
        if code := subprocess.run(command, check=False).returncode:  # noqa: S603 - this very script
            sys.exit(code)


if __name__ == "__main__":
    main()
