"""What `airflow streams holds` does."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.arguments import source_of_args
from airflow_provider_streams.cli.output import answer
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.model.hold import Hold


@command
def holds(args: Namespace) -> None:
    """Show the holds on a source, oldest first."""
    source = source_of_args(args)
    now = datetime.now(UTC)
    with open_journal() as journal:
        readers = [reader for key, reader in journal.sources() if key == source.key]
    with closing(hook_for(source)) as hook:
        found = sorted(hook.holds(source, readers), key=lambda hold: (hold.placed or now, hold.name))
    if args.output == "json":
        answer(json.dumps([hold.to_json(now) for hold in found], indent=2))
    elif found:
        answer(holds_table(found, now))
    else:
        answer(f"No holds on {source}.")


def holds_table(found: Sequence[Hold], now: datetime) -> str:
    """One line per hold; `?`: not known."""
    rows = [("hold", "reader", "shards", "age", "keeps", "from")]
    rows += [
        (
            hold.name,
            hold.reader or "?",
            str(len(hold.positions) or "?"),
            "?" if (age := hold.age(now)) is None else str(timedelta(seconds=round(age.total_seconds()))),
            "?" if hold.bytes is None else f"{hold.bytes:,} B",
            hold.since.isoformat() if hold.since else "",
        )
        for hold in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
