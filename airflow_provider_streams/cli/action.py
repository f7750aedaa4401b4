"""What every command of `airflow streams ..` has in common. An error of this package is one line, and exit code 1."""

from __future__ import annotations

import functools
import getpass
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, datetime

from airflow_provider_streams.cli.option_names import as_options, logs_as_options
from airflow_provider_streams.cli.output import stdout_for_answers
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey


def command(action: Callable[[Namespace], None]) -> Callable[[Namespace], None]:
    """An action as a command: it sees connections as the server does, and its errors are one line."""

    @functools.wraps(action)
    def run(args: Namespace) -> None:
        # as `airflow connections get` does: without it only connections of the environment are found
        os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
        try:
            with warnings.catch_warnings(), stdout_for_answers(), logs_as_options(args):
                # Airflow prints Python's warnings to stdout, into what another program may be reading
                warnings.simplefilter("ignore")
                action(args)
        except StreamsError as error:
            print(f"{type(error).__name__}: {as_options(str(error.name_doctor()), args)}", file=sys.stderr)
            raise SystemExit(1) from error

    return run


def task_instance_key(task_id: str) -> TaskInstanceKey:
    """Who reads by hand, as the journal records it."""
    return TaskInstanceKey("cli", f"{getpass.getuser()}@{datetime.now(UTC):%Y%m%dT%H%M%SZ}", task_id, 1)
