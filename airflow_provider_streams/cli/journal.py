"""What `airflow streams journal ..` does."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.output import answer_rows
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.model.window import parse_length


@command
def prune(args: Namespace) -> None:
    """Forget what is older and decides nothing any more; show how much that was, or would be."""
    with open_journal() as journal:
        found = journal.prune(parse_length(args.older_than), dry_run=args.dry_run)
    answer_rows([asdict(one) for one in found], args.output, f"nothing older than {args.older_than} can be forgotten")
