"""What `airflow streams holds` does."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.arguments import source_of_args
from airflow_provider_streams.cli.output import answer_rows, for_people
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.stream.hold import Hold


@command
def holds(args: Namespace) -> None:
    """Show the holds on a source, oldest first."""
    source = source_of_args(args)
    now = datetime.now(UTC)
    with open_journal() as journal:
        readers = [reader for key, reader in journal.sources() if key == source.key]
    with closing(hook_for(source)) as hook:
        found = sorted(hook.holds(source, readers), key=lambda hold: (hold.placed or now, hold.name))
    rows = [row_of(hold, now) if for_people(args.output) else hold.to_json(now) for hold in found]
    answer_rows(rows, args.output, f"No holds on {source}.")


def row_of(hold: Hold, now: datetime) -> dict[str, Any]:
    """One line per hold; `?`: not known."""
    age = hold.age(now)
    return {
        "hold": hold.name,
        "reader": hold.reader or "?",
        "shards": len(hold.positions) or "?",
        "age": "?" if age is None else timedelta(seconds=round(age.total_seconds())),
        "keeps": "?" if hold.bytes is None else f"{hold.bytes:,} B",
        "from": hold.since.isoformat() if hold.since else "",
    }
