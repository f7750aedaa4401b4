"""Reads a plan and is killed with its connections open: `python -m tests.integration.leaving_reader <told as JSON>`."""

from __future__ import annotations

import json
import os
import signal
import sys

from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.systems.registry import load_system


def main(system: str, options: dict[str, str], plan: Plan) -> None:
    """Open a reader of every split, take the first batch of each, and die."""
    batches = [iter(load_system(system).from_options(options).read(plan, split)) for split in plan.splits]
    print(sum(len(next(one)) for one in batches), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    main(told["system"], told["options"], Plan.from_json(told["plan"]))
